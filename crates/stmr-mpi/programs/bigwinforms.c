/* The windows of winforms.c, by the calls with large counts, where MPI has them. */
#include "want.h"

#if MPI_VERSION >= 4
#define COUNT MPI_Count
#define MPI_Put MPI_Put_c
#define MPI_Get MPI_Get_c
#define MPI_Accumulate MPI_Accumulate_c
#define MPI_Get_accumulate MPI_Get_accumulate_c
#define MPI_Rput MPI_Rput_c
#define MPI_Rget MPI_Rget_c
#define MPI_Raccumulate MPI_Raccumulate_c
#define MPI_Rget_accumulate MPI_Rget_accumulate_c
#define MPI_Win_create MPI_Win_create_c
#define MPI_Win_allocate MPI_Win_allocate_c
#define MPI_Win_allocate_shared MPI_Win_allocate_shared_c
#endif

#include "winforms.c"
