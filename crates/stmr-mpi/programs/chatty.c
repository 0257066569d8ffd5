/* Prints so many lines of 1000 bytes in each of so many rounds, and waits for the others after each.
   argv[1]: rounds, argv[2]: lines. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < atoi(argv[1]); round++) {
        for (int line = 0; line < atoi(argv[2]); line++) printf("%d %d %-990d\n", rank, round, line);
        MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != round * size) return 3;
    }
    MPI_Finalize();
    return 0;
}
