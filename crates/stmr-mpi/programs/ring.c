/* A ring of messages, in several modes and sizes, between sums over all processes.
   usage: ring [rounds] [doubles] [exit code] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    /* Whole lines, so that those of two processes do not run into each other. */
    setvbuf(stdout, NULL, _IOLBF, 1 << 12);
    MPI_Init(&argc, &argv);
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 50, n = argc > 2 ? atoi(argv[2]) : 1000;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    double *own = malloc(n * sizeof *own), *got = malloc((n + 5) * sizeof *got);
    for (int i = 0; i < n; i++) own[i] = rank * 1000 + i;
    double total = 0;
    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        switch (round % 4) {
        case 0:
            MPI_Irecv(got, n, MPI_DOUBLE, left, round, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(own, n, MPI_DOUBLE, right, round, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, statuses);
            if (statuses[0].MPI_SOURCE != left || statuses[0].MPI_TAG != round) MPI_Abort(MPI_COMM_WORLD, 3);
            break;
        case 1:
            MPI_Sendrecv(own, n, MPI_DOUBLE, right, 7, got, n, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, &statuses[0]);
            break;
        case 2:
            if (rank % 2) {
                MPI_Recv(got, n, MPI_DOUBLE, left, 8, MPI_COMM_WORLD, &statuses[0]);
                MPI_Ssend(own, n, MPI_DOUBLE, right, 8, MPI_COMM_WORLD);
            } else {
                MPI_Ssend(own, n, MPI_DOUBLE, right, 8, MPI_COMM_WORLD);
                MPI_Recv(got, n, MPI_DOUBLE, left, 8, MPI_COMM_WORLD, &statuses[0]);
            }
            break;
        default:
            MPI_Irecv(got, n + 5, MPI_DOUBLE, left, 9, MPI_COMM_WORLD, &requests[0]);
            MPI_Send(own, n, MPI_DOUBLE, right, 9, MPI_COMM_WORLD);
            MPI_Wait(&requests[0], &statuses[0]);
            int count;
            MPI_Get_count(&statuses[0], MPI_DOUBLE, &count);
            if (count != n) MPI_Abort(MPI_COMM_WORLD, 4);
        }
        double sum = 0, all;
        for (int i = 0; i < n; i++) {
            own[i] = 0.5 * own[i] + 0.25 * got[i] + round;
            sum += own[i];
        }
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        total += all / n;
        if (rank == 0 && round % 10 == 0) printf("round %d: %.17g\n", round, all);
    }
    printf("rank %d of %d: %.17g\n", rank, size, total + own[n / 2]);
    MPI_Finalize();
    return argc > 3 ? atoi(argv[3]) : 0;
}
