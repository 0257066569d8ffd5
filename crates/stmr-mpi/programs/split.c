/* The replica of process 1 in set s draws as many random numbers as digit s of the argument says. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

int main(int argc, char **argv) {
    const char *set = getenv("SELVEDGE_SET");
    int rank, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int n = rank == 1 && set ? argv[1][atoi(set)] - '0' : 0; 0 < n; n--) {
        unsigned drawn;
        if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return 3;
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d\n", sum);
    MPI_Finalize();
    return 0;
}
