/* Sends that wait for receives from anybody, which the program asks for behind them alone, or behind a
   reduction or a new communicator; every message is checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 100000, KINDS = 8 };
static int rank, size, right, out[MANY], in[MANY];

static void check(int kind, int round, int n, MPI_Status *state) {
    int left = (rank + size - 1) % size;
    for (int i = 0; i < n; i++) {
        if (in[i] != left + kind + round + i || state->MPI_SOURCE != left) {
            fprintf(stderr, "rank %d: kind %d, round %d: %d\n", rank, kind, round, i);
            MPI_Abort(MPI_COMM_WORLD, 9);
        }
    }
}

static void pass(int kind, int round) {
    int n = kind % 2 ? MANY : 100, any = MPI_ANY_SOURCE, tag = kind, sum;
    MPI_Comm half;
    MPI_Request both[2];
    MPI_Status states[2];
    for (int i = 0; i < n; i++) out[i] = rank + kind + round + i;
    switch (kind) {
    case 0:
        MPI_Irecv(in, n, MPI_INT, any, tag, MPI_COMM_WORLD, &both[1]);
        MPI_Ssend(out, n, MPI_INT, right, tag, MPI_COMM_WORLD);
        MPI_Wait(&both[1], &states[1]);
        break;
    case 1:
        MPI_Irecv(in, n, MPI_INT, any, tag, MPI_COMM_WORLD, &both[1]);
        MPI_Send(out, n, MPI_INT, right, tag, MPI_COMM_WORLD);
        MPI_Wait(&both[1], &states[1]);
        break;
    case 2:
        MPI_Issend(out, n, MPI_INT, right, tag, MPI_COMM_WORLD, &both[0]);
        MPI_Irecv(in, n, MPI_INT, any, tag, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, states);
        break;
    case 3:
        MPI_Isend(out, n, MPI_INT, right, tag, MPI_COMM_WORLD, &both[0]);
        MPI_Irecv(in, n, MPI_INT, any, MPI_ANY_TAG, MPI_COMM_WORLD, &both[1]);
        MPI_Wait(&both[0], MPI_STATUS_IGNORE);
        MPI_Wait(&both[1], &states[1]);
        break;
    case 4:
        MPI_Ssend_init(out, n, MPI_INT, right, tag, MPI_COMM_WORLD, &both[0]);
        MPI_Recv_init(in, n, MPI_INT, any, tag, MPI_COMM_WORLD, &both[1]);
        MPI_Startall(2, both);
        MPI_Waitall(2, both, states);
        MPI_Request_free(&both[0]), MPI_Request_free(&both[1]);
        break;
    case 5:
    case 6:
        MPI_Irecv(in, n, MPI_INT, any, tag, MPI_COMM_WORLD, &both[1]);
        MPI_Ssend(out, n, MPI_INT, right, tag, MPI_COMM_WORLD);
        if (kind == 5) {
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        } else {
            MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
            MPI_Comm_free(&half);
        }
        MPI_Wait(&both[1], &states[1]);
        break;
    default:
        MPI_Sendrecv(out, n, MPI_INT, right, tag, in, n, MPI_INT, any, tag, MPI_COMM_WORLD, &states[1]);
    }
    check(kind, round, n, &states[1]);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size;
    for (int round = 0; round < rounds; round++) {
        for (int kind = 0; kind < KINDS; kind++) pass(kind, round);
        if (rank == 0) printf("round %d\n", round), fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
