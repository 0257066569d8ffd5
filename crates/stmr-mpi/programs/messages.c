/* All modes of sending, round a ring of processes: blocking, not blocking, persistent, and what else
   sends and receives; what completes in parts; messages that are matched first.
   bigmessages.c is the same with large counts. */
#include <stdlib.h>

#include "want.h"

#ifndef COUNT
#define COUNT int
#endif

enum { N = 50, MODES = 4, PARTS = 6, TURNS = 3 };

static int rank, size, right, left;

typedef int Send(const void *, COUNT, MPI_Datatype, int, int, MPI_Comm);
typedef int Isend(const void *, COUNT, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static Send *const blocking[MODES] = {MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend};
static Isend *const starting[MODES] = {MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend};
static Isend *const persistent[MODES] = {MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init};

#include "cells.h"

static void expect(const MPI_Status *status, int source, int tag, int wanted) {
    COUNT n = -1;
    WANT(status->MPI_SOURCE == source && status->MPI_TAG == tag);
    WANT(!MPI_Get_count(status, MPI_INT, &n) && n == wanted);
}

static long send_blocking(void) {
    int own[N], got[N];
    long sum = 0;
    MPI_Request request;
    MPI_Status status;
    for (int mode = 0; mode < MODES; mode++) {
        fill(own, mode);
        WANT(!MPI_Irecv(got, N, MPI_INT, left, mode, MPI_COMM_WORLD, &request));
        /* The ready mode wants that all receive by now. */
        MPI_Barrier(MPI_COMM_WORLD);
        WANT(!blocking[mode](own, N - mode, MPI_INT, right, mode, MPI_COMM_WORLD));
        WANT(!MPI_Wait(&request, &status) && request == MPI_REQUEST_NULL);
        expect(&status, left, mode, N - mode);
        for (int i = N - mode; i < N; i++) got[i] = 1000 * left + 10 * i + mode;
        sum += sum_of(got, left, mode);
        WANT(!blocking[mode](own, N, MPI_INT, MPI_PROC_NULL, mode, MPI_COMM_WORLD));
    }
    fill(own, 9);
    WANT(!MPI_Bsend(own, N, MPI_INT, right, 9, MPI_COMM_WORLD));
    WANT(!MPI_Recv(got, N, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &status));
    expect(&status, left, 9, N);
    return sum + sum_of(got, left, 9);
}

static long send_starting(void) {
    int own[MODES][N], got[MODES][N];
    long sum = 0;
    MPI_Request requests[2 * MODES];
    MPI_Status statuses[2 * MODES];
    for (int mode = 0; mode < MODES; mode++) {
        fill(own[mode], mode);
        WANT(!MPI_Irecv(got[mode], N, MPI_INT, left, mode, MPI_COMM_WORLD, &requests[mode]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int mode = MODES - 1; mode >= 0; mode--)
        WANT(!starting[mode](own[mode], N, MPI_INT, right, mode, MPI_COMM_WORLD, &requests[MODES + mode]));
    WANT(!MPI_Waitall(2 * MODES, requests, statuses));
    for (int mode = 0; mode < MODES; mode++) {
        WANT(requests[mode] == MPI_REQUEST_NULL && requests[MODES + mode] == MPI_REQUEST_NULL);
        expect(&statuses[mode], left, mode, N);
        sum += sum_of(got[mode], left, mode);
    }
    return sum;
}

static long send_persistent(void) {
    int own[MODES][N], got[MODES][N];
    long sum = 0;
    MPI_Request receives[MODES], sends[MODES];
    MPI_Status statuses[MODES];
    for (int mode = 0; mode < MODES; mode++) {
        WANT(!MPI_Recv_init(got[mode], N, MPI_INT, left, mode, MPI_COMM_WORLD, &receives[mode]));
        WANT(!persistent[mode](own[mode], N, MPI_INT, right, mode, MPI_COMM_WORLD, &sends[mode]));
    }
    for (int turn = 0; turn < TURNS; turn++) {
        memset(got, 0, sizeof got);
        for (int mode = 0; mode < MODES; mode++) fill(own[mode], mode + turn);
        WANT(!MPI_Startall(MODES, receives));
        MPI_Barrier(MPI_COMM_WORLD);
        for (int mode = 0; mode < MODES; mode++) WANT(!MPI_Start(&sends[mode]));
        WANT(!MPI_Waitall(MODES, sends, statuses) && !MPI_Waitall(MODES, receives, statuses));
        for (int mode = 0; mode < MODES; mode++) {
            WANT(sends[mode] != MPI_REQUEST_NULL && receives[mode] != MPI_REQUEST_NULL);
            expect(&statuses[mode], left, mode, N);
            sum += sum_of(got[mode], left, mode + turn);
        }
    }
    for (int mode = 0; mode < MODES; mode++) {
        WANT(!MPI_Request_free(&sends[mode]) && sends[mode] == MPI_REQUEST_NULL);
        WANT(!MPI_Request_free(&receives[mode]) && receives[mode] == MPI_REQUEST_NULL);
    }
    return sum;
}

/* What has come of many messages, some at a time, until none is open. */
static long in_parts(int is_wait) {
    int own[PARTS][N], got[PARTS][N], places[PARTS], seen[PARTS] = {0}, n = 0, n_all = 0;
    long sum = 0;
    MPI_Request receives[PARTS], sends[PARTS];
    MPI_Status statuses[PARTS];
    for (int i = 0; i < PARTS; i++)
        WANT(!MPI_Irecv(got[i], N, MPI_INT, i % 2 ? left : right, i, MPI_COMM_WORLD, &receives[i]));
    for (int i = PARTS - 1; i >= 0; i--) {
        fill(own[i], i);
        WANT(!MPI_Isend(own[i], N, MPI_INT, i % 2 ? right : left, i, MPI_COMM_WORLD, &sends[i]));
    }
    while (n != MPI_UNDEFINED) {
        WANT(!(is_wait ? MPI_Waitsome : MPI_Testsome)(PARTS, receives, &n, places, statuses));
        WANT(n == MPI_UNDEFINED || (is_wait ? 1 : 0) <= n);
        for (int i = 0; n != MPI_UNDEFINED && i < n; i++) {
            int at = places[i], from = at % 2 ? left : right;
            WANT(0 <= at && at < PARTS && !seen[at]++ && receives[at] == MPI_REQUEST_NULL);
            expect(&statuses[i], from, at, N);
            sum += sum_of(got[at], from, at);
            n_all++;
        }
    }
    WANT(n_all == PARTS);
    for (n_all = 0; n_all < PARTS; n_all += n) {
        WANT(!(is_wait ? MPI_Waitsome : MPI_Testsome)(PARTS, sends, &n, places, statuses));
        WANT(n != MPI_UNDEFINED);
    }
    WANT(n_all == PARTS);
    return sum;
}

/* Messages that are taken first, and received later and in another order. */
static long matched(void) {
    int own[2][N], got[2][N], flag = 0;
    long sum = 0;
    MPI_Request sends[2], request;
    MPI_Message first, second = MPI_MESSAGE_NULL;
    MPI_Status status, statuses[2];
    for (int i = 0; i < 2; i++) {
        fill(own[i], i);
        WANT(!MPI_Isend(own[i], N, MPI_INT, right, 5, MPI_COMM_WORLD, &sends[i]));
    }
    WANT(!MPI_Mprobe(left, 5, MPI_COMM_WORLD, &first, &status) && first != MPI_MESSAGE_NULL);
    expect(&status, left, 5, N);
    while (!flag) WANT(!MPI_Improbe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &second, &status));
    expect(&status, left, 5, N);
    WANT(!MPI_Imrecv(got[1], N, MPI_INT, &second, &request) && second == MPI_MESSAGE_NULL);
    WANT(!MPI_Wait(&request, &status));
    expect(&status, left, 5, N);
    WANT(!MPI_Mrecv(got[0], N, MPI_INT, &first, &status) && first == MPI_MESSAGE_NULL);
    expect(&status, left, 5, N);
    for (int i = 0; i < 2; i++) sum += sum_of(got[i], left, i);
    WANT(!MPI_Waitall(2, sends, statuses));
    WANT(!MPI_Mprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &first, &status) && first == MPI_MESSAGE_NO_PROC);
    WANT(!MPI_Imrecv(got[0], N, MPI_INT, &first, &request) && first == MPI_MESSAGE_NULL);
    WANT(!MPI_Wait(&request, &status));
    expect(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    return sum;
}

/* What sends and receives at once. */
static long swapped(void) {
    int own[N], got[N];
    MPI_Status status;
    fill(own, 1);
    WANT(!MPI_Sendrecv(own, N, MPI_INT, right, 1, got, N, MPI_INT, left, 1, MPI_COMM_WORLD, &status));
    expect(&status, left, 1, N);
    long sum = sum_of(got, left, 1);
    WANT(!MPI_Sendrecv_replace(own, N, MPI_INT, right, 2, left, 2, MPI_COMM_WORLD, &status));
    expect(&status, left, 2, N);
    sum += sum_of(own, left, 1);
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
    int back[N];
    MPI_Request requests[2];
    MPI_Status statuses[2];
    fill(own, 3), fill(back, 4);
    WANT(!MPI_Isendrecv(own, N, MPI_INT, right, 3, got, N, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[0]));
    WANT(!MPI_Isendrecv_replace(back, N, MPI_INT, left, 4, right, 4, MPI_COMM_WORLD, &requests[1]));
    WANT(!MPI_Waitall(2, requests, statuses));
    /* MPICH 4.0.2 and 5.0 leave these statuses empty. */
#ifdef OPEN_MPI
    expect(&statuses[0], left, 3, N), expect(&statuses[1], right, 4, N);
#endif
    WANT(sum_of(got, left, 3) + sum_of(back, right, 4) > 0);
#endif
    return sum;
}

static void show(const char *what, long own) {
    long all = 0;
    MPI_Reduce(&own, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s: %ld\n", what, all), fflush(stdout);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size, left = (rank + size - 1) % size;
    COUNT bytes = 16 * (N * sizeof(int) + MPI_BSEND_OVERHEAD), got = 0;
    void *room = malloc(bytes), *back = NULL;
    for (int turn = 0; turn < TURNS; turn++) {
        WANT(!MPI_Buffer_attach(room, bytes));
        show("blocking", send_blocking());
        show("not blocking", send_starting());
        show("persistent", send_persistent());
        WANT(!MPI_Buffer_detach(&back, &got) && back == room && got == bytes);
        show("some that are awaited", in_parts(1));
        show("some that are tested", in_parts(0));
        show("matched", matched());
        show("swapped", swapped());
    }
    free(room);
    MPI_Finalize();
    return 0;
}
