/* Collectives in one form or another: by counts of 64 bits if LARGE is defined and MPI has them, and
   persistent where those can be used. */
#include <mpi.h>

#if defined LARGE && MPI_VERSION >= 4
#define CALL(name) MPI_##name##_c
typedef MPI_Count Number;
typedef MPI_Aint Place;
#else
#define CALL(name) MPI_##name
typedef int Number, Place;
#endif
/* MPICH 4.0.2 has its persistent collectives give what was there when they were made, or fail, and takes
   those that are over for complete again and again; its MPI_Ialltoallw in place mixes up numbers where the
   types differ. */
#if defined MPICH && MPICH_NUMVERSION < 40100000
#define IS_MPICH_4_0 1
#else
#define IS_MPICH_4_0 0
#endif
#if MPI_VERSION >= 4 && !IS_MPICH_4_0
#define HAS_PERSISTENT 1
#define INIT(call, ...) call(__VA_ARGS__)
#else
#define HAS_PERSISTENT 0
#define INIT(call, ...) MPI_ERR_OTHER
#endif
