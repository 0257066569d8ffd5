/* Ends without MPI_Finalize, with the code that it is given, when all have begun. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!rank) printf("quits\n");
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    exit(argc > 1 ? atoi(argv[1]) : 0);
}
