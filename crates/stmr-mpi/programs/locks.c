/* Windows that are locked, by one or by many, whatever their process waits for meanwhile; every answer
 * is checked, and none hangs on who comes first. */
#include <stdlib.h>
#include <unistd.h>

#include "want.h"

static int rank, size;
static MPI_Comm all;

static int near(int by) { return ((rank + by) % size + size) % size; }

/* Nobody comes between what one reads and what it writes. */
static void for_itself(int round) {
    long *cells, before;
    MPI_Win win;
    WANT(!MPI_Win_allocate(4 * sizeof *cells, sizeof *cells, MPI_INFO_NULL, all, &cells, &win));
    memset(cells, 0, 4 * sizeof *cells);
    MPI_Barrier(all);
    for (int i = 0; i < size; i++) {
        int to = near(i);
        WANT(!MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));
        WANT(!MPI_Get(&before, 1, MPI_LONG, to, 1, 1, MPI_LONG, win) && !MPI_Win_flush(to, win));
        before += rank + round;
        WANT(!MPI_Put(&before, 1, MPI_LONG, to, 1, 1, MPI_LONG, win) && !MPI_Win_unlock(to, win));
        before = -1;
    }
    /* One's own is looked at like memory. */
    WANT(!MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    cells[2] += cells[1] < 0;
    WANT(!MPI_Win_unlock(rank, win));
    MPI_Barrier(all);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    WANT(cells[1] == size * (size - 1) / 2 + size * round && cells[2] == 0);
    MPI_Win_unlock(rank, win);
    WANT(!MPI_Win_free(&win) && win == MPI_WIN_NULL);
}

/* All share all, and draw numbers. */
static void shared(int round) {
    enum { DRAWS = 8 };
    int one = 1, zero = 0, drawn[DRAWS], *seen = calloc(DRAWS * size, sizeof *seen), old, *cells;
    double part = rank + 0.5, sum;
    MPI_Win win, sums;
    WANT(!MPI_Win_allocate(8 * sizeof *cells, sizeof *cells, MPI_INFO_NULL, all, &cells, &win));
    WANT(!MPI_Win_allocate(sizeof(double) * 2, 8, MPI_INFO_NULL, all, &cells, &sums));
    WANT(!MPI_Win_lock_all(0, sums) && !MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    double none[2] = {0, 0};
    int zeros[8] = {0};
    MPI_Put(none, 2, MPI_DOUBLE, rank, 0, 2, MPI_DOUBLE, sums), MPI_Win_flush(rank, sums);
    MPI_Put(zeros, 8, MPI_INT, rank, 0, 8, MPI_INT, win), MPI_Win_flush_all(win);
    MPI_Barrier(all);
    for (int i = 0; i < DRAWS; i++) {
        MPI_Fetch_and_op(&one, &drawn[i], MPI_INT, 0, 0, MPI_SUM, win);
        WANT(!(i % 2 ? MPI_Win_flush(0, win) : MPI_Win_flush_local(0, win)));
        WANT(0 <= drawn[i] && drawn[i] < DRAWS * size && (!i || drawn[i - 1] < drawn[i]));
        seen[drawn[i]]++;
    }
    MPI_Allreduce(MPI_IN_PLACE, seen, DRAWS * size, MPI_INT, MPI_SUM, all);
    for (int i = 0; i < DRAWS * size; i++) WANT(seen[i] == 1);
    for (int to = 0; to < size; to++) MPI_Accumulate(&part, 1, MPI_DOUBLE, to, 1, 1, MPI_DOUBLE, MPI_SUM, sums);
    WANT(!MPI_Win_flush_local_all(sums) && !MPI_Win_flush_all(sums));
    MPI_Barrier(all);
    WANT(!MPI_Get(&sum, 1, MPI_DOUBLE, near(1), 1, 1, MPI_DOUBLE, sums) && !MPI_Win_unlock_all(sums));
    WANT(sum == size * size / 2.0);
    /* A lock of the program's own, which turns till it has it. */
    int place = size - 1, wanted = 0, mine = rank + 1;
    for (int turn = 0; turn < 2; turn++) {
        do {
            MPI_Compare_and_swap(&mine, &wanted, &old, MPI_INT, place, 3, win), MPI_Win_flush(place, win);
        } while (old != 0);
        int count;
        MPI_Get(&count, 1, MPI_INT, place, 4, 1, MPI_INT, win), MPI_Win_flush(place, win);
        count++;
        MPI_Put(&count, 1, MPI_INT, place, 4, 1, MPI_INT, win), MPI_Win_flush(place, win);
        MPI_Fetch_and_op(&zero, &old, MPI_INT, place, 3, MPI_REPLACE, win), MPI_Win_flush(place, win);
        WANT(old == mine);
    }
    MPI_Barrier(all);
    MPI_Fetch_and_op(NULL, &old, MPI_INT, place, 4, MPI_NO_OP, win), MPI_Win_flush_local_all(win);
    WANT(old == 2 * size);
    WANT(!MPI_Win_unlock_all(win) && !MPI_Win_free(&sums) && !MPI_Win_free(&win));
    free(seen);
}

/* Some have it for themselves while others share it, and go on before they have got it. */
__attribute__((unused)) static void by_both(int round) {
    int *cell, one = 1, before[2], flag;
    MPI_Status status;
    MPI_Win win;
    WANT(!MPI_Win_allocate(sizeof *cell, sizeof *cell, MPI_INFO_NULL, all, &cell, &win));
    *cell = 0;
    MPI_Barrier(all);
    for (int turn = 0; turn < 6; turn++) {
        int to = (turn + round) % size;
        if (rank % 2) {
            int count;
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
            MPI_Get(&count, 1, MPI_INT, to, 0, 1, MPI_INT, win), MPI_Win_flush(to, win);
            count += 2;
            MPI_Iprobe(0, 98, all, &flag, &status);
            MPI_Put(&count, 1, MPI_INT, to, 0, 1, MPI_INT, win), MPI_Win_unlock(to, win);
        } else {
            MPI_Win_lock_all(0, win);
            MPI_Fetch_and_op(&one, &before[0], MPI_INT, to, 0, MPI_SUM, win);
            MPI_Iprobe(0, 98, all, &flag, &status);
            MPI_Fetch_and_op(&one, &before[1], MPI_INT, to, 0, MPI_SUM, win);
            MPI_Win_unlock_all(win);
            WANT(0 <= before[0] && before[0] < before[1] && before[1] < 12 * size);
        }
    }
    MPI_Barrier(all);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    int sum = 0, own = *cell;
    MPI_Win_unlock(rank, win);
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, all);
    WANT(sum == 12 * size);
    MPI_Win_free(&win);
}

/* A queue in which each tells its next one that it is its turn, and looks at its own memory meanwhile: what it
 * tells is not waited for. */
static void in_turn(int round) {
    enum { TURN, NEXT, LAST, COUNT };
    int *cells, nobody = -1, yes = 1, no = 0, before, init[4] = {0, -1, -1, 0};
    MPI_Win win;
    WANT(!MPI_Win_allocate(sizeof(int) * 4, sizeof(int), MPI_INFO_NULL, all, &cells, &win));
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    MPI_Accumulate(init, 4, MPI_INT, rank, 0, 4, MPI_INT, MPI_REPLACE, win);
    MPI_Win_unlock(rank, win);
    MPI_Barrier(all);
    volatile int *own = cells;
    for (int turn = 0; turn < 3; turn++) {
        MPI_Win_lock_all(0, win);
        MPI_Accumulate(&nobody, 1, MPI_INT, rank, NEXT, 1, MPI_INT, MPI_REPLACE, win);
        MPI_Fetch_and_op(&rank, &before, MPI_INT, 0, LAST, MPI_REPLACE, win), MPI_Win_flush(0, win);
        if (before != -1) {
            MPI_Accumulate(&rank, 1, MPI_INT, before, NEXT, 1, MPI_INT, MPI_REPLACE, win);
            for (MPI_Win_sync(win); !own[TURN]; MPI_Win_sync(win)) MPI_Win_flush(rank, win);
        }
        int count;
        MPI_Get(&count, 1, MPI_INT, size - 1, COUNT, 1, MPI_INT, win), MPI_Win_flush(size - 1, win);
        count++;
        MPI_Put(&count, 1, MPI_INT, size - 1, COUNT, 1, MPI_INT, win), MPI_Win_flush(size - 1, win);
        MPI_Compare_and_swap(&nobody, &rank, &before, MPI_INT, 0, LAST, win), MPI_Win_flush(0, win);
        if (before != rank) {
            for (MPI_Win_sync(win); own[NEXT] == -1; MPI_Win_sync(win)) MPI_Win_flush(rank, win);
            MPI_Accumulate(&yes, 1, MPI_INT, own[NEXT], TURN, 1, MPI_INT, MPI_REPLACE, win);
        }
        MPI_Accumulate(&no, 1, MPI_INT, rank, TURN, 1, MPI_INT, MPI_REPLACE, win);
        MPI_Win_unlock_all(win);
    }
    MPI_Barrier(all);
    if (rank == size - 1) WANT(cells[COUNT] == 3 * size);
    MPI_Win_free(&win);
}

/* Accesses that are waited for one by one. */
static void with_requests(int round) {
    enum { MANY = 50000 };
    int *cells, *many = malloc(sizeof(int) * MANY), *got = malloc(sizeof(int) * MANY), old[2], add[2] = {5, 7};
    MPI_Request requests[4];
    MPI_Status status;
    MPI_Win win;
    WANT(!MPI_Win_allocate(sizeof(int) * (MANY + 8), sizeof(int), MPI_INFO_NULL, all, &cells, &win));
    for (int i = 0; i < MANY; i++) many[i] = rank + i * round, cells[i] = -1;
    cells[MANY] = cells[MANY + 1] = 0;
    MPI_Barrier(all);
    MPI_Win_lock_all(0, win);
    WANT(!MPI_Rput(many, MANY, MPI_INT, near(1), 0, MANY, MPI_INT, win, &requests[0]));
    WANT(!MPI_Raccumulate(add, 2, MPI_INT, near(2), MANY, 2, MPI_INT, MPI_SUM, win, &requests[1]));
    WANT(!MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) && requests[0] == MPI_REQUEST_NULL);
    memset(many, 0, sizeof(int) * MANY);
    MPI_Win_flush_all(win), MPI_Barrier(all);
    WANT(!MPI_Rget(got, MANY, MPI_INT, near(1), 0, MANY, MPI_INT, win, &requests[0]));
    WANT(!MPI_Rget_accumulate(add, 2, MPI_INT, old, 2, MPI_INT, near(2), MANY, 2, MPI_INT, MPI_SUM, win, &requests[1]));
    WANT(!MPI_Rget(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, 0, MPI_INT, win, &requests[2]));
    requests[3] = MPI_REQUEST_NULL;
    int flag = 0;
    while (!flag) MPI_Test(&requests[1], &flag, &status);
    WANT(old[0] == 5 && old[1] == 7);
    for (int left = 2; left > 0; left--) {
        int which;
        MPI_Waitany(4, requests, &which, &status);
        WANT(which == 0 || which == 2);
        if (which == 0)
            for (int i = 0; i < MANY; i++) WANT(got[i] == rank + i * round);
    }
    WANT(!MPI_Win_unlock_all(win));
    MPI_Barrier(all);
    WANT(cells[MANY] == 10 && cells[MANY + 1] == 14);
    MPI_Win_free(&win), free(many), free(got);
}

/* Whose window it is waits for something of who has it locked. */
static void meanwhile(int round) {
    int *cells, word = 0, got = -1, flag = 0, big = 60000, *many = calloc(big, sizeof *many);
    MPI_Win win, no_locks;
    MPI_Request request;
    MPI_Comm again;
    MPI_Status status;
    MPI_Info info;
    MPI_Message message;
    WANT(!MPI_Win_allocate(sizeof(int) * 16, sizeof(int), MPI_INFO_NULL, all, &cells, &win));
    memset(cells, 0, sizeof(int) * 16);
    MPI_Info_create(&info), MPI_Info_set(info, "no_locks", "true");
    WANT(!MPI_Win_create(many, big * sizeof *many, sizeof *many, info, all, &no_locks));
    MPI_Info_free(&info);
    for (int way = 0; way < 11; way++) {
        MPI_Barrier(all);
        if (rank == 0) {
            /* Each of these is over only when the others have been here. */
            if (way == 0) MPI_Barrier(all);
            if (way == 1 && size > 1) MPI_Recv(&got, 1, MPI_INT, size - 1, way, all, &status);
            if (way == 2 && size > 1) {
                MPI_Irecv(&got, 1, MPI_INT, size - 1, way, all, &request);
                for (flag = 0; !flag;) MPI_Test(&request, &flag, &status);
            }
            if (way == 3 && size > 1) {
                for (flag = 0; !flag;) MPI_Iprobe(size - 1, way, all, &flag, &status);
                MPI_Recv(&got, 1, MPI_INT, size - 1, way, all, &status);
            }
            if (way == 4 && size > 1) {
                MPI_Mprobe(size - 1, way, all, &message, &status);
                MPI_Mrecv(&got, 1, MPI_INT, &message, &status);
            }
            if (way == 5 && size > 1) MPI_Ssend(&way, 1, MPI_INT, size - 1, way, all);
            if (way == 6 && size > 1) MPI_Sendrecv(many, big, MPI_INT, size - 1, 6, &got, 1, MPI_INT, size - 1, 6, all, &status);
            if (way == 7) MPI_Comm_dup(all, &again), MPI_Comm_free(&again);
            if (way == 8) MPI_Allreduce(&rank, &got, 1, MPI_INT, MPI_MAX, all);
            if (way >= 9) {
                /* It waits for what is put to it; who says that no lock is in the way has none itself. */
                MPI_Win_lock_all(way == 10 ? MPI_MODE_NOCHECK : 0, win);
                volatile int *there = &cells[way];
                /* MPICH looks at nothing in MPI_Win_sync. */
                while (*there < size - 1) MPI_Win_sync(win), MPI_Iprobe(0, 99, all, &flag, &status);
                MPI_Win_unlock_all(win);
            }
        } else {
            int one = 1;
            MPI_Win_lock(way % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win);
            MPI_Accumulate(&one, 1, MPI_INT, 0, way, 1, MPI_INT, MPI_SUM, win);
            MPI_Win_unlock(0, win);
            if (way == 6 && rank == size - 1) {
                MPI_Send(&rank, 1, MPI_INT, 0, 6, all);
                MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win), MPI_Win_unlock(0, win);
                MPI_Recv(many, big, MPI_INT, 0, 6, all, &status);
            }
            if (way == 0) MPI_Barrier(all);
            if (1 <= way && way <= 4 && rank == size - 1) MPI_Send(&rank, 1, MPI_INT, 0, way, all);
            if (way == 5 && rank == size - 1) MPI_Recv(&word, 1, MPI_INT, 0, way, all, &status);
            if (way == 7) MPI_Comm_dup(all, &again), MPI_Comm_free(&again);
            if (way == 8) MPI_Allreduce(&rank, &got, 1, MPI_INT, MPI_MAX, all);
        }
    }
    MPI_Win_fence(0, no_locks);
    int put = 100 * rank + round;
    MPI_Put(&put, 1, MPI_INT, near(1), 3, 1, MPI_INT, no_locks);
    MPI_Win_fence(0, no_locks);
    WANT(many[3] == 100 * near(-1) + round);
    MPI_Barrier(all);
    if (rank == 0)
        for (int way = 0; way < 10; way++) WANT(cells[way] == size - 1);
    MPI_Win_free(&win), MPI_Win_free(&no_locks), free(many);
}

/* Memory that is attached to a window, whose places are addresses. */
static void attached(int round) {
    double *row = malloc(sizeof(double) * 40), *other = malloc(sizeof(double) * 10), got[5];
    MPI_Aint mine[2], *places = malloc(sizeof(MPI_Aint) * 2 * size);
    MPI_Win win;
    for (int i = 0; i < 40; i++) row[i] = rank + i * 0.5 + round;
    WANT(!MPI_Win_create_dynamic(MPI_INFO_NULL, all, &win));
    WANT(!MPI_Win_attach(win, row, sizeof(double) * 40) && !MPI_Win_attach(win, other, sizeof(double) * 10));
    MPI_Get_address(row, &mine[0]), MPI_Get_address(other, &mine[1]);
    MPI_Allgather(mine, 2, MPI_AINT, places, 2, MPI_AINT, all);
    int to = near(1);
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
    MPI_Get(got, 5, MPI_DOUBLE, to, MPI_Aint_add(places[2 * to], 8 * sizeof(double)), 5, MPI_DOUBLE, win);
    MPI_Put(row + 30, 10, MPI_DOUBLE, to, places[2 * to + 1], 10, MPI_DOUBLE, win);
    MPI_Win_unlock(to, win);
    for (int i = 0; i < 5; i++) WANT(got[i] == to + (8 + i) * 0.5 + round);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 10; i++) WANT(other[i] == near(-1) + (30 + i) * 0.5 + round);
    MPI_Get(got, 1, MPI_DOUBLE, near(-1), places[2 * near(-1)], 1, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    WANT(got[0] == near(-1) + round);
    WANT(!MPI_Win_detach(win, row) && !MPI_Win_detach(win, other) && !MPI_Win_free(&win));
    free(row), free(other), free(places);
}

/* What is wrong. */
static void errors(void) {
    int cells[2] = {0, 0}, class;
    MPI_Win win;
    MPI_Win_create(cells, sizeof cells, sizeof *cells, MPI_INFO_NULL, all, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    WANT(!MPI_Error_class(MPI_Win_unlock(rank, win), &class) && class == MPI_ERR_RMA_SYNC);
    WANT(!MPI_Error_class(MPI_Win_flush(rank, win), &class) && class == MPI_ERR_RMA_SYNC);
    WANT(!MPI_Error_class(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), &class) && class == MPI_ERR_RANK);
    WANT(!MPI_Win_lock(MPI_LOCK_SHARED, near(1), 0, win));
    WANT(!MPI_Win_unlock(near(1), win));
    MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    errors();
    for (int round = 0; round < rounds; round++) {
        for_itself(round);
        shared(round);
#if !defined(MPICH_NUMVERSION) || MPICH_NUMVERSION >= 50000000
        /* MPICH 4.0.2 itself lets in who shares while another has it alone: sums are too small. */
        by_both(round);
#endif
        in_turn(round);
        with_requests(round);
        meanwhile(round);
        attached(round);
        if (rank == 0) printf("round %d\n", round), fflush(stdout);
    }
    MPI_Comm_free(&all);
    MPI_Finalize();
    if (rank == 0) printf("%d processes, %d rounds\n", size, rounds);
    return 0;
}
