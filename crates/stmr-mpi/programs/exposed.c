/* What the processes compute with lies in windows: neighbours put to it, get from it and add to it
   by fences, by groups, under locks and in memory attached later, and collectives of each kind come
   between the epochs and while one is open.
   usage: exposed [rounds] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N 300
#define MOST 16

/* What a flip is aimed at: what is computed with, what others put and add, what was attached, and
   what collectives leave. */
double data[4][N];
static int rank, size, right, left;

static void mix(const double *by, double part) {
    for (int i = 0; i < N; i++) data[0][i] = (1 - part) * data[0][i] + part * by[i];
}

static void by_fences(MPI_Win win) {
    double got[N];
    MPI_Win_fence(0, win);
    MPI_Put(data[0], N, MPI_DOUBLE, right, N, N, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    MPI_Accumulate(data[0], N, MPI_DOUBLE, left, N, N, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Get(got, N, MPI_DOUBLE, right, N, N, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < N; i++) got[i] = 0.25 * (got[i] + data[1][i]);
    mix(got, 0.3);
}

/* A sum while the epoch is open: who leads here may not be who leads there. */
static void by_groups(MPI_Win win, int round) {
    MPI_Group all, to, from;
    double got[N], sum[N];
    int done = 0;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &right, &to), MPI_Group_incl(all, 1, &left, &from);
    MPI_Win_post(from, 0, win), MPI_Win_start(to, 0, win);
    MPI_Put(data[3], N, MPI_DOUBLE, right, N, N, MPI_DOUBLE, win);
    MPI_Get(got, N, MPI_DOUBLE, right, 0, N, MPI_DOUBLE, win);
    MPI_Allreduce(data[0], sum, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_complete(win);
    while (round % 2 && !done) MPI_Win_test(win, &done);
    if (!done) MPI_Win_wait(win);
    MPI_Group_free(&to), MPI_Group_free(&from), MPI_Group_free(&all);
    mix(got, 0.1), mix(data[1], 0.1), mix(sum, 0.1 / size);
}

/* Whole numbers, which come to the same in any order. */
static double by_locks(MPI_Win win, MPI_Win tally, double *count) {
    double one = 1, got[2][N], before;
    MPI_Request requests[2];
    for (int i = 0; i < 3; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, i % size, 0, tally);
        MPI_Accumulate(&one, 1, MPI_DOUBLE, i % size, 0, 1, MPI_DOUBLE, MPI_SUM, tally);
        MPI_Win_unlock(i % size, tally);
    }
    MPI_Win_lock_all(0, tally);
    MPI_Fetch_and_op(&one, &before, MPI_DOUBLE, 0, 1, MPI_SUM, tally);
    MPI_Win_flush(0, tally);
    MPI_Win_unlock_all(tally);
    /* All have what they compute with before any gets it, and have got it before any changes it. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Rget(got[0], N, MPI_DOUBLE, right, 0, N, MPI_DOUBLE, win, &requests[0]);
    MPI_Rget(got[1], N, MPI_DOUBLE, left, 0, N, MPI_DOUBLE, win, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    mix(got[0], 0.1), mix(got[1], 0.2);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, tally);
    double counted = count[0] + count[1] * (rank == 0);
    MPI_Win_unlock(rank, tally);
    MPI_Barrier(MPI_COMM_WORLD);
    return counted;
}

static void attached(MPI_Win dynamic, MPI_Aint mine) {
    MPI_Aint there[MOST];
    double got[N];
    MPI_Allgather(&mine, 1, MPI_AINT, there, 1, MPI_AINT, MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) data[2][i] = data[0][N - 1 - i];
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, dynamic);
    MPI_Get(got, N, MPI_DOUBLE, right, there[right], N, MPI_DOUBLE, dynamic);
    MPI_Win_unlock(right, dynamic);
    MPI_Barrier(MPI_COMM_WORLD);
    mix(got, 0.1);
}

/* Complete in any order, beside messages. */
static void at_any(int round) {
    double sum[N], sent[N], got[N];
    MPI_Request requests[5];
    int at, n_done = 0;
    for (int i = 0; i < N; i++) sent[i] = data[0][i] * (1 + 1e-3 * i);
    for (int i = 0; i < N; i++) data[3][i] = rank == round % size ? data[0][i] : 0;
    MPI_Irecv(got, N, MPI_DOUBLE, MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(data[0], sum, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Ibcast(data[3], N, MPI_DOUBLE, round % size, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(sent, N, MPI_DOUBLE, right, round, MPI_COMM_WORLD, &requests[3]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[4]);
    while (n_done < 5) {
        if (round % 3 == 0) {
            MPI_Waitany(5, requests, &at, MPI_STATUS_IGNORE), n_done++;
        } else if (round % 3 == 1) {
            int flag;
            MPI_Testany(5, requests, &at, &flag, MPI_STATUS_IGNORE), n_done += flag;
        } else {
            int which[5], n;
            MPI_Waitsome(5, requests, &n, which, MPI_STATUSES_IGNORE), n_done += n;
        }
    }
    mix(sum, 0.1 / size), mix(data[3], 0.1), mix(got, 0.1);
}

/* Collectives whose parts are added in an order of the MPI's own. */
static void in_turn(int round) {
    double many[N], little[N];
    MPI_Scan(data[0], many, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) many[i] /= rank + 1;
    mix(many, 0.1);
    for (int i = 0; i < N; i++) little[i] = 1 + 1 / (1 + data[0][i] * data[0][i]);
    MPI_Allreduce(little, many, N, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD);
    mix(many, 0.1);
    MPI_Reduce_scatter_block(data[0], many, N / size, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < N / size; i++) data[0][i] = 0.9 * data[0][i] + 0.1 * many[i] / size;
    MPI_Alltoall(data[0], N / size, MPI_DOUBLE, many, N / size, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < N / size * size; i++) data[0][i] = 0.9 * data[0][i] + 0.1 * many[i];
    for (int i = 0; i < N; i++) many[i] = 0;
    MPI_Reduce(data[0], many, N, MPI_DOUBLE, MPI_SUM, round % size, MPI_COMM_WORLD);
    mix(many, 0.1 / size);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    MPI_Win win, tally, dynamic;
    MPI_Aint mine;
    double *count;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < N; i++) data[0][i] = 1 + rank + i * 0.01;
    MPI_Win_create(data, 2 * sizeof data[0], sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_allocate(2 * sizeof *count, sizeof *count, MPI_INFO_NULL, MPI_COMM_WORLD, &count, &tally);
    count[0] = count[1] = 0;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_attach(dynamic, data[2], sizeof data[2]);
    MPI_Get_address(data[2], &mine);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < rounds; round++) {
        double counted, sum = 0, all;
        by_fences(win);
        at_any(round);
        by_groups(win, round);
        in_turn(round);
        counted = by_locks(win, tally, count);
        attached(dynamic, mine);
        for (int i = 0; i < N; i++) sum += data[0][i] * (1 + (i + round) % 7);
        MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, round % size, MPI_COMM_WORLD);
        if (rank == round % size) printf("round %d: %.17g, %g counted\n", round, all, counted);
    }
    MPI_Win_detach(dynamic, data[2]);
    MPI_Win_free(&dynamic), MPI_Win_free(&tally), MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
