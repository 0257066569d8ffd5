/* What a process prints by lines has come out when another ends the program.
   usage: lines CODE */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 4, STEP_US = 50000 };

int main(int argc, char **argv) {
    int rank, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < STEPS; step++) {
        if (rank == 0) printf("step %d, to %s\n", step, isatty(STDOUT_FILENO) ? "a terminal" : "a pipe");
        MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        usleep(STEP_US);
    }
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, atoi(argv[1]));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
