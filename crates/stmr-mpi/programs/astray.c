/* In one replica of process 1, whose number is the argument, a receive asks for a tag that nobody sends. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "want.h"

int main(int argc, char **argv) {
    int rank, size, sum, bad = 1 < argc ? atoi(argv[1]) : 0, set = getenv("SELVEDGE_SET") ? atoi(getenv("SELVEDGE_SET")) : -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size;
    for (int round = 0; round < 10; round++) {
        int out = rank + round, in, tag = round == 5 && set == bad && rank == 1 ? 6 : 5;
        MPI_Request give;
        MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, &give);
        MPI_Recv(&in, 1, MPI_INT, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&give, MPI_STATUS_IGNORE);
        WANT(in == left + round);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("done %d\n", sum);
    MPI_Finalize();
    return 0;
}
