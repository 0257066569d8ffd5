/* What forms.c does, by the calls with counts of 64 bits where MPI has them. */
#define LARGE
#include "forms.c"
