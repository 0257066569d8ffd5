/* Whether calls of MPI leave what they were given on the stack, below the program: in replicas they
 * do not, since handles are not alike there.  Each is made twice: at the first time the loader has
 * looked for it. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "want.h"

#define N 1000
#define BELOW 8192

static int rank, row[N];

__attribute__((noinline)) static void forget(void) {
    volatile char below[BELOW];
    for (int i = 0; i < BELOW; i++) below[i] = 1;
}

/* How often it stands there. */
__attribute__((noinline)) static int find(unsigned long it) {
    volatile unsigned long below[BELOW / sizeof(long)];
    int n = 0;
    for (int i = 0; i < BELOW / sizeof(long); i++) n += below[i] == it;
    return n;
}

#define LOOK(call)                                                                             \
    do {                                                                                       \
        forget();                                                                              \
        call;                                                                                  \
        int n = find((unsigned long)comm) + find((unsigned long)row);                          \
        if (n) printf("rank %d: what %s was given stands there %d times\n", rank, #call, n);   \
    } while (0)

int main(int argc, char **argv) {
    MPI_Comm comm;
    MPI_Status status;
    int size, position;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 2; i++) {
        position = 0;
        LOOK(MPI_Barrier(comm));
        LOOK(MPI_Bcast(row, N, MPI_INT, 0, comm));
        LOOK(MPI_Allreduce(MPI_IN_PLACE, row, N, MPI_INT, MPI_MAX, comm));
        LOOK(MPI_Comm_size(comm, &size));
        LOOK(MPI_Pack(row, 1, MPI_INT, row + 1, 8, &position, comm));
        LOOK(MPI_Sendrecv(row, 1, MPI_INT, rank, 1, row + 1, 1, MPI_INT, rank, 1, comm, &status));
    }
    printf("rank %d: done\n", rank);
    MPI_Finalize();
    return 0;
}
