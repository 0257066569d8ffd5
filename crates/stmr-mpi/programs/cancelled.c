/* Receives that are cancelled: some while nothing can come, some when it has, some while it may.  Which of these
   last are cancelled, nobody knows; what was sent comes all the same, to a receive after them.
   usage: cancelled [rounds] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "want.h"

static int rank, size;

/* Cancels a receive; returns whether it was. */
static int cancel(MPI_Request *request, MPI_Status *status) {
    int cancelled;
    MPI_Cancel(request);
    MPI_Wait(request, status);
    MPI_Test_cancelled(status, &cancelled);
    return cancelled;
}

/* Nothing was sent to them; one can be started again. */
static void alone(void) {
    MPI_Request request;
    MPI_Status status;
    int box = 7;
    for (int from = 0; from < 2; from++) {
        MPI_Irecv(&box, 1, MPI_INT, from ? MPI_ANY_SOURCE : (rank + 1) % size, 90, MPI_COMM_WORLD, &request);
        WANT(cancel(&request, &status) && request == MPI_REQUEST_NULL && box == 7);
    }
    MPI_Recv_init(&box, 1, MPI_INT, MPI_ANY_SOURCE, 91, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&request);
        WANT(cancel(&request, &status) && request != MPI_REQUEST_NULL);
    }
    MPI_Request_free(&request);
}

/* What has come is not cancelled. */
static void there(void) {
    MPI_Request request;
    MPI_Status status;
    int out = rank, in = -1;
    MPI_Irecv(&in, 1, MPI_INT, (rank + 1) % size, 92, MPI_COMM_WORLD, &request);
    MPI_Send(&out, 1, MPI_INT, (rank + size - 1) % size, 92, MPI_COMM_WORLD);
    int flag = 0;
    while (!flag) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    WANT(!cancel(&request, &status) && in == (rank + 1) % size);
}

/* All others send two; the first receive of three is cancelled, whether something came or not, and the rest is
   received by as many more. */
static int race(int round) {
    int in[64] = {0}, sum = 0, n = 2 * (size - 1), was, mine[2] = {100 * rank + round, 100 * rank + round + 1};
    MPI_Request all[2];
    MPI_Status status;
    if (rank) {
        for (int i = 0; i < 2; i++) MPI_Send(&mine[i], 1, MPI_INT, 0, 93, MPI_COMM_WORLD);
        return 0;
    }
    int from = round % 3 == 0 ? 1 : MPI_ANY_SOURCE;
    MPI_Irecv(&in[0], 1, MPI_INT, from, 93, MPI_COMM_WORLD, &all[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, round % 2 ? 1 : MPI_ANY_SOURCE, 93, MPI_COMM_WORLD, &all[1]);
    was = cancel(&all[0], &status);
    MPI_Wait(&all[1], MPI_STATUS_IGNORE);
    for (int i = 2 - was; i < n; i++) {
        MPI_Recv(&in[i + was], 1, MPI_INT, MPI_ANY_SOURCE, 93, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 64; i++) sum += in[i];
    return sum;
}

int main(int argc, char **argv) {
    int rounds = 1 < argc ? atoi(argv[1]) : 12, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < rounds; round++) {
        alone();
        there();
        sum += race(round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (!rank) printf("cancelled: %d\n", sum);
    MPI_Finalize();
    return 0;
}
