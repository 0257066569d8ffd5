/* Sends that wait for receives from anybody, which the program asks for behind them alone, or behind a
   reduction or a new communicator, of a few, or (the word sides) of two sides; every message is checked.  Plain, MPICH 5.0.2
   stands still in the last. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 100000, KINDS = 12 };
static int rank, size, right, out[MANY], in[MANY];
static MPI_Comm side;

static void check(int kind, int round, int n, MPI_Status *state) {
    int left = (rank + size - 1) % size;
    for (int i = 0; i < n; i++) {
        if (in[i] != left + kind + round + i || state->MPI_SOURCE != left) {
            fprintf(stderr, "rank %d: kind %d, round %d: %d\n", rank, kind, round, i);
            MPI_Abort(MPI_COMM_WORLD, 9);
        }
    }
}

/* Each process of an even rank makes one with the next. */
static void pair(void) {
    MPI_Group all, both;
    MPI_Comm comm;
    int first = rank / 2 * 2, sum, ranks[2] = {first, first + 1};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, first + 1 < size ? 2 : 1, ranks, &both);
    MPI_Comm_create_group(MPI_COMM_WORLD, both, 3, &comm);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum != (first + 1 < size ? 2 * first + 1 : first)) MPI_Abort(MPI_COMM_WORLD, 8);
    MPI_Comm_free(&comm), MPI_Group_free(&all), MPI_Group_free(&both);
}

/* Even and odd ranks, who add what the others have, or become one again. */
static void two_sides(int adds) {
    MPI_Comm both, one;
    int sum;
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - rank % 2, 4, &both);
    if (adds) {
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both);
    } else {
        MPI_Intercomm_merge(both, rank % 2, &one);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, one);
        MPI_Comm_free(&one);
    }
    MPI_Comm_free(&both);
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
    case 8:
    case 9:
    case 10:
    case 11:
        MPI_Irecv(in, n, MPI_INT, any, tag, MPI_COMM_WORLD, &both[1]);
        if (rank % 2) MPI_Ssend(out, n, MPI_INT, right, tag, MPI_COMM_WORLD);
        if (kind < 10) pair();
        else two_sides(kind == 10);
        if (rank % 2 == 0) MPI_Send(out, n, MPI_INT, right, tag, MPI_COMM_WORLD);
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
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
    for (int round = 0; round < rounds; round++) {
        for (int kind = argc > 2 ? 10 : 0; kind < (argc > 2 ? KINDS : 10); kind++) pass(kind, round);
        if (rank == 0) printf("round %d\n", round), fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
