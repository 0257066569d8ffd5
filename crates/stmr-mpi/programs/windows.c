/* Memory that other processes put to and get from, by fences and by groups; every answer is checked. */
#include <stdlib.h>

#include "want.h"

static int rank, size, n_errors;

static int near(int by) { return ((rank + by) % size + size) % size; }

/* Each process puts its row to all, gets it back, and adds to a sum that all share. */
static void by_fences(int round) {
    enum { N = 24 };
    int *at, row[N], got[N];
    double *sum, one = rank + round, before = -1;
    MPI_Win rows, sums;
    WANT(!MPI_Win_allocate(sizeof(int) * N * size, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &at,
                           &rows));
    /* MPICH 4.0.2 adds nothing to windows on the stack. */
    MPI_Alloc_mem(sizeof *sum, MPI_INFO_NULL, &sum), *sum = 0;
    WANT(!MPI_Win_create(sum, sizeof *sum, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &sums));
    for (int i = 0; i < N; i++) row[i] = 1000 * rank + i + round;
    WANT(!MPI_Win_fence(MPI_MODE_NOPRECEDE, rows));
    for (int to = 0; to < size; to++) WANT(!MPI_Put(row, N, MPI_INT, to, N * rank, N, MPI_INT, rows));
    WANT(!MPI_Put(row, N, MPI_INT, MPI_PROC_NULL, 0, N, MPI_INT, rows));
    WANT(!MPI_Win_fence(0, rows));
    for (int from = 0; from < size; from++)
        for (int i = 0; i < N; i++) WANT(at[N * from + i] == 1000 * from + i + round);
    WANT(!MPI_Get(got, N, MPI_INT, near(1), N * near(-1), N, MPI_INT, rows));
    WANT(!MPI_Win_fence(MPI_MODE_NOSUCCEED, rows));
    for (int i = 0; i < N; i++) WANT(got[i] == 1000 * near(-1) + i + round);

    MPI_Win_fence(0, sums);
    for (int to = 0; to < size; to++) MPI_Accumulate(&one, 1, MPI_DOUBLE, to, 0, 1, MPI_DOUBLE, MPI_SUM, sums);
    MPI_Win_fence(0, sums);
    WANT(*sum == size * round + size * (size - 1) / 2.0);
    /* All are told what was there before theirs, in whichever order. */
    MPI_Fetch_and_op(&one, &before, MPI_DOUBLE, 0, 0, MPI_SUM, sums);
    MPI_Win_fence(0, sums);
    double least = size * round + size * (size - 1) / 2.0;
    WANT(least <= before && before + one <= 2 * least);
    MPI_Fetch_and_op(NULL, &before, MPI_DOUBLE, 0, 0, MPI_NO_OP, sums);
    MPI_Win_fence(0, sums);
    WANT(before == size * 2 * round + size * (size - 1));
    before = -1;
    MPI_Get_accumulate(&one, 1, MPI_DOUBLE, &before, 1, MPI_DOUBLE, near(1), 0, 1, MPI_DOUBLE,
                       MPI_REPLACE, sums);
    MPI_Win_fence(0, sums);
    WANT(*sum == near(-1) + round && before >= 0);
    WANT(!MPI_Win_free(&sums) && sums == MPI_WIN_NULL && !MPI_Win_free(&rows));
    MPI_Free_mem(sum);
}

/* Types with holes, whose parts stand in another order at either side. */
static void of_types(int round) {
    double matrix[6][6], column[6], row[6];
    struct { double value; int place; } own = {rank % 3, rank}, *best;
    long double wide[3] = {1, 2, 3}, told[3];
    int lengths[3] = {2, 1, 3}, places[3] = {20, 4, 9}, flat[6];
    MPI_Datatype down, rows, mixed;
    MPI_Win win;
    for (int i = 0; i < 36; i++) matrix[i / 6][i % 6] = 100 * rank + i + round;
    for (int i = 0; i < 6; i++) row[i] = 100 * rank + 6 + i + round;
    MPI_Type_vector(6, 1, 6, MPI_DOUBLE, &down);
    MPI_Type_indexed(3, lengths, places, MPI_INT, &mixed);
    MPI_Type_contiguous(6, MPI_DOUBLE, &rows);
    MPI_Type_commit(&down), MPI_Type_commit(&mixed), MPI_Type_commit(&rows);
    WANT(!MPI_Win_create(matrix, sizeof matrix, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_fence(0, win);
    /* A row of mine is the third column there. */
    MPI_Put(row, 1, rows, near(1), 2, 1, down, win);
    MPI_Get(column, 6, MPI_DOUBLE, near(1), 4, 1, down, win);
    MPI_Type_free(&down), MPI_Type_free(&rows);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 6; i++) {
        WANT(matrix[i][2] == 100 * near(-1) + 6 + i + round);
        WANT(column[i] == 100 * near(1) + 6 * i + 4 + round);
    }
    WANT(!MPI_Win_free(&win));
    int *cells = calloc(64, sizeof *cells);
    WANT(!MPI_Win_create(cells, 64 * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int i = 0; i < 6; i++) flat[i] = 10 * rank + i;
    MPI_Win_fence(0, win);
    MPI_Accumulate(flat, 6, MPI_INT, near(2), 1, 1, mixed, MPI_SUM, win);
    MPI_Accumulate(flat, 6, MPI_INT, near(2), 1, 1, mixed, MPI_SUM, win);
    MPI_Win_fence(0, win);
    int at[6] = {21, 22, 5, 10, 11, 12};
    for (int i = 0; i < 6; i++) WANT(cells[at[i]] == 2 * (10 * near(-2) + i));
    MPI_Type_free(&mixed), MPI_Win_free(&win), free(cells);
    WANT(!MPI_Win_allocate(sizeof *best, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &best, &win));
    best->value = best->place = -1;
    MPI_Win_fence(0, win);
    MPI_Accumulate(&own, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
    MPI_Win_fence(0, win);
    if (rank == 0) WANT(best->value == (size < 3 ? size - 1 : 2) && best->place == (size < 3 ? size - 1 : 2));
    MPI_Win_free(&win);
    WANT(!MPI_Win_create(wide, sizeof wide, sizeof *wide, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_fence(0, win);
    MPI_Get(told, 3, MPI_LONG_DOUBLE, near(1), 0, 3, MPI_LONG_DOUBLE, win);
    MPI_Win_fence(0, win);
    WANT(told[0] == 1 && told[1] == 2 && told[2] == 3);
    MPI_Win_free(&win);
}

/* Each is open to its neighbours and gets from them at once: who completes has to serve. */
static void by_groups(int round, MPI_Win win, int *cells) {
    MPI_Group all, beside;
    int near_ones[2] = {near(1), near(-1)}, n = near(1) == near(-1) ? 1 : 2, got[2], old = -1, done = 0;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, n, near_ones, &beside);
    for (int i = 0; i < 8; i++) cells[i] = 100 * rank + i + round;
    int big = 100000, *many = malloc(sizeof(int) * big);
    for (int i = 0; i < big; i++) many[i] = rank + i;
    WANT(!MPI_Win_post(beside, 0, win) && !MPI_Win_start(beside, 0, win));
    for (int i = 0; i < n; i++) MPI_Get(&got[i], 1, MPI_INT, near_ones[i], 3, 1, MPI_INT, win);
    /* More than is sent before it is asked for. */
    MPI_Put(many, big, MPI_INT, near(1), 64, big, MPI_INT, win);
    WANT(!MPI_Win_complete(win));
    if (round % 2) {
        WANT(!MPI_Win_wait(win));
    } else {
        while (!done) MPI_Win_test(win, &done);
    }
    for (int i = 0; i < n; i++) WANT(got[i] == 100 * near_ones[i] + 3 + round);
    for (int i = 0; i < big; i++) WANT(cells[64 + i] == near(-1) + i);
    free(many);
    /* Of those who swap, one finds what it thinks is there. */
    MPI_Win_fence(0, win);
    cells[40] = -7;
    int mine = rank, wanted = -7;
    MPI_Win_fence(0, win);
    MPI_Compare_and_swap(&mine, &wanted, &old, MPI_INT, size - 1, 40, win);
    MPI_Win_fence(0, win);
    int found = old == -7, n_found;
    MPI_Allreduce(&found, &n_found, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    WANT(n_found == 1 && (found || (0 <= old && old < size)));
    if (rank == size - 1) WANT(0 <= cells[40] && cells[40] < size);
    /* Oneself may be among them. */
    MPI_Group self;
    MPI_Group_incl(all, 1, &rank, &self);
    MPI_Win_post(self, 0, win), MPI_Win_start(self, 0, win);
    MPI_Put(&mine, 1, MPI_INT, rank, 41, 1, MPI_INT, win);
    MPI_Win_complete(win), MPI_Win_wait(win);
    WANT(cells[41] == rank);
    MPI_Group_free(&self), MPI_Group_free(&beside), MPI_Group_free(&all);
}

/* Each gets from its neighbour's window while the neighbour gets from its own. */
static void by_two(int round) {
    int cells[1], others[1], got = -1, one = near(1), other = near(-1);
    MPI_Win mine, theirs;
    MPI_Group all, next, last;
    MPI_Win_create(cells, sizeof cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &mine);
    MPI_Win_create(others, sizeof others, sizeof *others, MPI_INFO_NULL, MPI_COMM_WORLD, &theirs);
    MPI_Win even = rank % 2 ? theirs : mine, odd = rank % 2 ? mine : theirs;
    *cells = *others = 10 * rank + round;
    MPI_Win_get_group(mine, &all);
    MPI_Group_incl(all, 1, &one, &next), MPI_Group_incl(all, 1, &other, &last);
    if (size % 2 == 0) {
        MPI_Win_post(last, 0, even), MPI_Win_start(next, 0, odd);
        MPI_Get(&got, 1, MPI_INT, one, 0, 1, MPI_INT, odd);
        MPI_Win_complete(odd), MPI_Win_wait(even);
        WANT(got == 10 * one + round);
    }
    MPI_Group_free(&all), MPI_Group_free(&next), MPI_Group_free(&last);
    MPI_Win_free(&theirs), MPI_Win_free(&mine);
}

static void hear(MPI_Win *win, int *code, ...) {
    int class;
    MPI_Error_class(*code, &class);
    n_errors += class == MPI_ERR_RANK || class == MPI_ERR_RMA_RANGE || class == MPI_ERR_RMA_SYNC;
}

static int forgotten;
static int forget(MPI_Win win, int keyval, void *value, void *extra) {
    forgotten += *(int *)value + *(int *)extra;
    return MPI_SUCCESS;
}

/* What a window knows of itself, and what is wrong. */
static void about(void) {
    static int cells[4], seven = 7, thirty = 30;
    char name[MPI_MAX_OBJECT_NAME];
    int flag, length, keyval, *unit, *flavor, class, one = 1;
    MPI_Aint *bytes;
    void *base, *value;
    MPI_Win win;
    MPI_Errhandler handler, got;
    WANT(!MPI_Win_create(cells, sizeof cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
    WANT(flag && base == cells);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag);
    WANT(flag && *bytes == sizeof cells);
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag);
    WANT(flag && *unit == sizeof *cells);
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
    WANT(flag && *flavor == MPI_WIN_FLAVOR_CREATE);
    MPI_Win_set_name(win, "cells"), MPI_Win_get_name(win, name, &length);
    WANT(length == 5 && !strcmp(name, "cells"));
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, forget, &keyval, &thirty);
    MPI_Win_get_attr(win, keyval, &value, &flag);
    WANT(!flag);
    MPI_Win_set_attr(win, keyval, &seven), MPI_Win_get_attr(win, keyval, &value, &flag);
    WANT(flag && value == &seven);
#ifndef MPI_ABI_VERSION
    WANT(MPI_Win_f2c(MPI_Win_c2f(win)) == win && MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);
#endif
    /* What it gets is its own to free, as often as it asks. */
    for (int i = 0; i < 9; i++) {
        MPI_Win_get_errhandler(win, &got);
        WANT(got == MPI_ERRORS_ARE_FATAL && !MPI_Errhandler_free(&got));
    }
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    WANT(!MPI_Error_class(MPI_Put(&one, 1, MPI_INT, size, 0, 1, MPI_INT, win), &class) && class == MPI_ERR_RANK);
    MPI_Win_fence(0, win);
    MPI_Win_create_errhandler(hear, &handler);
    MPI_Win_set_errhandler(win, handler), MPI_Errhandler_free(&handler);
    MPI_Win_get_errhandler(win, &got), MPI_Win_set_errhandler(win, got), MPI_Errhandler_free(&got);
    MPI_Put(&one, 1, MPI_INT, -5, 0, 1, MPI_INT, win);
    WANT(n_errors == 1);
    MPI_Win_fence(0, win);
    WANT(!MPI_Win_free(&win) && forgotten == 37);
    MPI_Win_free_keyval(&keyval);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3, *cells;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    about();
    MPI_Win_allocate(sizeof(int) * 100064, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &win);
    for (int round = 0; round < rounds; round++) {
        by_fences(round);
        of_types(round);
        by_two(round);
        by_groups(round, win, cells);
        if (rank == 0) printf("round %d\n", round), fflush(stdout);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    if (rank == 0) printf("%d processes, %d rounds\n", size, rounds);
    return 0;
}
