/* Replica 0 of process 0 errs while its receives from anybody are under way, again and again, so that
   another leads and then it again.  All others send to it at the same time, a little later: whose message
   comes first is another in each set, and decided by one that leads.
   usage: demoted [rounds] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "want.h"

enum { RECEIVES = 3, LONG = 20000, EVERY = 18 };

int main(int argc, char **argv) {
    static int in[RECEIVES][LONG], out[LONG];
    int rank, size, rounds = 1 < argc ? atoi(argv[1]) : 60, set = getenv("SELVEDGE_SET") ? atoi(getenv("SELVEDGE_SET")) : -1;
    long order = 0, told = 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    WANT(size == RECEIVES + 1);
    for (int round = 0; round < rounds; round++) {
        /* Some messages wait for their receivers. */
        int n = round % 3 ? 100 : LONG;
        if (rank == 0) {
            MPI_Request gets[RECEIVES];
            MPI_Status states[RECEIVES];
            for (int i = 0; i < RECEIVES; i++) MPI_Irecv(in[i], n, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &gets[i]);
            long value = round + (set == 0 && round % EVERY == 3);
            MPI_Send(&value, 1, MPI_LONG, 1, 9, MPI_COMM_WORLD);
            MPI_Waitall(RECEIVES, gets, states);
            for (int i = 0; i < RECEIVES; i++) {
                WANT(in[i][0] == states[i].MPI_SOURCE && in[i][n - 1] == round);
                order = (order * 31 + states[i].MPI_SOURCE) % 1000003, sum += states[i].MPI_SOURCE;
            }
            /* That of all replicas, or one of them is found to differ. */
            MPI_Send(&order, 1, MPI_LONG, 1, 9, MPI_COMM_WORLD);
        } else {
            usleep(round % 4 * 300);
            out[0] = rank, out[n - 1] = round;
            MPI_Request give;
            MPI_Isend(out, n, MPI_INT, 0, 5, MPI_COMM_WORLD, &give);
            if (rank == 1) {
                MPI_Recv(&told, 1, MPI_LONG, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                WANT(told == round);
                MPI_Wait(&give, MPI_STATUS_IGNORE);
                MPI_Recv(&told, 1, MPI_LONG, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Wait(&give, MPI_STATUS_IGNORE);
            }
        }
        /* No message of the next round comes to a receive of this one. */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) printf("sum %ld\n", sum);
    MPI_Finalize();
    return 0;
}
