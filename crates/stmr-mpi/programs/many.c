/* Many sends at once, of all that do not block: short and long ones, in all modes, persistent ones, and
   some after which a process computes before it waits.  Every message is checked.
   usage: many [rounds] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "want.h"

enum { MOST = 16, SIZES = 5, LONGEST = 60000 };
static const int sizes[SIZES] = {0, 1, 300, 9000, LONGEST};
static int rank, size, *out[SIZES], *in[MOST][SIZES];

static int value(int from, int to, int k, int round, int i) { return from * 7919 + to * 104729 + k + round * 31 + i; }

static int (*const begin[4])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
    MPI_Isend, MPI_Issend, MPI_Irsend, MPI_Ibsend};

/* Each process to each, itself among them. */
static long exchange(int round) {
    MPI_Request gets[MOST * SIZES], gives[MOST * SIZES];
    int n = 0, is_over = 0;
    long sum = 0;
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < SIZES; k++, n++)
            MPI_Irecv(in[peer][k], sizes[k], MPI_INT, peer, k, MPI_COMM_WORLD, &gets[n]);
    for (int k = 0; k < SIZES; k++)
        for (int i = 0; i < sizes[k]; i++) out[k][i] = value(rank, 0, k, round, i);
    /* What is sent as ready finds its receive. */
    MPI_Barrier(MPI_COMM_WORLD);
    n = 0;
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < SIZES; k++, n++)
            begin[sizes[k] == LONGEST ? 0 : (peer + k + round) % 4](out[k], sizes[k], MPI_INT, peer, k, MPI_COMM_WORLD, &gives[n]);
    if (round % 4 == 3) {
        volatile double x = 1;
        for (int i = 0; i < 1000000; i++) x = x * 0.999 + 1;
        sum += (long)x;
    }
    switch (round % 3) {
    case 0: MPI_Waitall(n, gives, MPI_STATUSES_IGNORE), MPI_Waitall(n, gets, MPI_STATUSES_IGNORE); break;
    case 1: MPI_Waitall(n, gets, MPI_STATUSES_IGNORE), MPI_Waitall(n, gives, MPI_STATUSES_IGNORE); break;
    default:
        while (!is_over) MPI_Testall(n, gives, &is_over, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++) MPI_Wait(&gets[i], MPI_STATUS_IGNORE);
    }
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < SIZES; k++)
            for (int i = 0; i < sizes[k]; i++) {
                WANT(in[peer][k][i] == value(peer, 0, k, round, i));
                sum += in[peer][k][i] % 1009;
            }
    return sum;
}

/* Persistent sends around a ring, started one by one and all at once, with others between. */
static long around(int rounds) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size, more = 0, got = 0;
    long sum = 0;
    MPI_Request all[5];
    MPI_Send_init(out[2], sizes[2], MPI_INT, right, 11, MPI_COMM_WORLD, &all[0]);
    MPI_Ssend_init(out[3], sizes[3], MPI_INT, left, 12, MPI_COMM_WORLD, &all[1]);
    MPI_Recv_init(in[0][2], sizes[2], MPI_INT, left, 11, MPI_COMM_WORLD, &all[2]);
    MPI_Recv_init(in[0][3], sizes[3], MPI_INT, right, 12, MPI_COMM_WORLD, &all[3]);
    for (int round = 0; round < rounds; round++) {
        for (int k = 2; k < 4; k++)
            for (int i = 0; i < sizes[k]; i++) out[k][i] = value(rank, 1, k, round, i);
        if (round % 2) {
            MPI_Startall(4, all);
        } else {
            for (int i = 0; i < 4; i++) MPI_Start(&all[i]);
        }
        more = rank + round;
        MPI_Isend(&more, 1, MPI_INT, right, 13, MPI_COMM_WORLD, &all[4]);
        MPI_Recv(&got, 1, MPI_INT, left, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        WANT(got == left + round);
        MPI_Waitall(5, all, MPI_STATUSES_IGNORE);
        for (int i = 0; i < sizes[2]; i++) WANT(in[0][2][i] == value(left, 1, 2, round, i));
        for (int i = 0; i < sizes[3]; i++) WANT(in[0][3][i] == value(right, 1, 3, round, i));
        sum += in[0][2][round % sizes[2]];
    }
    for (int i = 0; i < 4; i++) MPI_Request_free(&all[i]);
    return sum;
}

int main(int argc, char **argv) {
    int rounds = 1 < argc ? atoi(argv[1]) : 8;
    long own = 0, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    WANT(size <= MOST);
    for (int k = 0; k < SIZES; k++) {
        out[k] = malloc((sizes[k] + 1) * sizeof(int));
        for (int peer = 0; peer < size; peer++) in[peer][k] = malloc((sizes[k] + 1) * sizeof(int));
    }
    int room = 1 << 22;
    void *buffer = malloc(room);
    MPI_Buffer_attach(buffer, room);
    for (int round = 0; round < rounds; round++) own += exchange(round);
    own += around(rounds);
    MPI_Buffer_detach(&buffer, &room);
    MPI_Reduce(&own, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank) printf("many: %ld\n", all);
    MPI_Finalize();
    return 0;
}
