/* What holds, or else the process says where it does not, and all end. */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define WANT(it)                                                                                  \
    do {                                                                                          \
        if (!(it)) {                                                                              \
            fprintf(stderr, "rank %d: line %d: %s (%s)\n", rank, __LINE__, #it, strerror(errno)); \
            MPI_Abort(MPI_COMM_WORLD, 9);                                                         \
        }                                                                                         \
    } while (0)
