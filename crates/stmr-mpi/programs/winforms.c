/* Each way to reach memory of others, by itself: waited for by a fence, and by a request of its own;
   and what windows carry.  bigwinforms.c is the same with large counts. */
#include <stdlib.h>

#include "want.h"

#ifndef COUNT
#define COUNT int
#endif

/* Of 30 numbers, MPICH 4.0.2 at times puts those in front elsewhere. */
enum { N = 32, ROUNDS = 3 };

static int rank, size, right, left, n_heard;

#include "cells.h"

/* The right one's memory is written, read, added to, and read while it is added to. */
static long by_fences(MPI_Win win, int *cells, int k) {
    int own[N], got[N];
    COUNT n = N;
    fill(own, k), memset(cells, 0, N * sizeof *cells);
    WANT(!MPI_Win_fence(0, win));
    WANT(!MPI_Put(own, n, MPI_INT, right, 0, n, MPI_INT, win));
    WANT(!MPI_Win_fence(0, win));
    long sum = sum_of(cells, left, k);
    WANT(!MPI_Get(got, n, MPI_INT, right, 0, n, MPI_INT, win));
    WANT(!MPI_Win_fence(0, win));
    sum += sum_of(got, rank, k);
    WANT(!MPI_Accumulate(own, n, MPI_INT, right, 0, n, MPI_INT, MPI_SUM, win));
    WANT(!MPI_Win_fence(0, win));
    for (int i = 0; i < N; i++) WANT(cells[i] == 2 * (1000 * left + 10 * i + k));
    for (int i = 0; i < N; i++) own[i] = -own[i], got[i] = 0;
    WANT(!MPI_Win_fence(0, win));
    WANT(!MPI_Get_accumulate(own, n, MPI_INT, got, n, MPI_INT, right, 0, n, MPI_INT, MPI_SUM, win));
    WANT(!MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int i = 0; i < N; i++) WANT(got[i] == 2 * (1000 * rank + 10 * i + k));
    return sum + sum_of(cells, left, k);
}

/* The same, where each that asks has its request. */
static long by_requests(MPI_Win win, int *cells, int k) {
    int own[N], got[N];
    COUNT n = N;
    MPI_Request request;
    fill(own, k), memset(cells, 0, N * sizeof *cells);
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win));
    WANT(!MPI_Rput(own, n, MPI_INT, right, 0, n, MPI_INT, win, &request));
    WANT(!MPI_Wait(&request, MPI_STATUS_IGNORE) && request == MPI_REQUEST_NULL && !MPI_Win_flush(right, win));
    WANT(!MPI_Rget(got, n, MPI_INT, right, 0, n, MPI_INT, win, &request));
    WANT(!MPI_Wait(&request, MPI_STATUS_IGNORE) && request == MPI_REQUEST_NULL);
    long sum = sum_of(got, rank, k);
    WANT(!MPI_Raccumulate(own, n, MPI_INT, right, 0, n, MPI_INT, MPI_SUM, win, &request));
    WANT(!MPI_Wait(&request, MPI_STATUS_IGNORE) && !MPI_Win_flush(right, win));
    for (int i = 0; i < N; i++) own[i] = -own[i], got[i] = 0;
    WANT(!MPI_Rget_accumulate(own, n, MPI_INT, got, n, MPI_INT, right, 0, n, MPI_INT, MPI_SUM, win, &request));
    WANT(!MPI_Wait(&request, MPI_STATUS_IGNORE) && !MPI_Win_unlock(right, win));
    for (int i = 0; i < N; i++) WANT(got[i] == 2 * (1000 * rank + 10 * i + k));
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    sum += sum_of(cells, left, k);
    WANT(!MPI_Win_unlock(rank, win));
    return sum;
}

/* That a window has the unit and the size which it was made with. */
static void is_made_so(MPI_Win win, int flavor) {
    int flag, *unit, *kind;
    MPI_Aint *bytes;
    WANT(!MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag) && flag && *unit == sizeof(int));
    WANT(!MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag) && flag && *bytes == N * sizeof(int));
    WANT(!MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &kind, &flag) && flag && *kind == flavor);
}

/* Windows on memory of the program's, of MPI's, and of all processes. */
static void of_all_kinds(int k) {
    int *cells, unit;
    MPI_Aint bytes;
    MPI_Win win;
    long sums[3], all[3];
    MPI_Alloc_mem(N * sizeof *cells, MPI_INFO_NULL, &cells);
    WANT(!MPI_Win_create(cells, N * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    is_made_so(win, MPI_WIN_FLAVOR_CREATE);
    sums[0] = by_fences(win, cells, k) + by_requests(win, cells, k + 1);
    WANT(!MPI_Win_free(&win) && win == MPI_WIN_NULL && !MPI_Free_mem(cells));
    WANT(!MPI_Win_allocate(N * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &win));
    is_made_so(win, MPI_WIN_FLAVOR_ALLOCATE);
    sums[1] = by_fences(win, cells, k) + by_requests(win, cells, k + 1);
    WANT(!MPI_Win_free(&win) && win == MPI_WIN_NULL);
    WANT(!MPI_Win_allocate_shared(N * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &win));
    is_made_so(win, MPI_WIN_FLAVOR_SHARED);
    int *others = NULL;
    WANT(!MPI_Win_shared_query(win, right, &bytes, &unit, &others) && bytes == N * sizeof *cells);
    WANT(unit == sizeof *cells && !MPI_Win_fence(0, win));
    fill(cells, k);
    WANT(!MPI_Win_fence(0, win));
    sums[2] = sum_of(others, right, k);
    WANT(!MPI_Win_fence(0, win) && !MPI_Win_free(&win));
    MPI_Reduce(sums, all, 3, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("round %d: %ld %ld %ld\n", k, all[0], all[1], all[2]), fflush(stdout);
}

static void hear(MPI_Win *win, int *code, ...) {
    int class;
    MPI_Error_class(*code, &class);
    n_heard += 1 + 100 * (class == MPI_ERR_OTHER);
}

static int n_forgotten;
static int forget(MPI_Win win, int keyval, void *value, void *extra) {
    n_forgotten += *(int *)value + *(int *)extra;
    return MPI_SUCCESS;
}

/* What a window carries: numbers of Fortran, an error's handler, attributes, hints. */
static void carried(void) {
    int *cells, keyval, flag, n, seven = 7, thirty = 30;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    void *got;
    MPI_Win win;
    MPI_Info info;
    MPI_Errhandler handler;
    WANT(!MPI_Win_allocate(N * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &win));
    /* In parentheses these are the functions: MPICH 5 has macros of these names too, and MPICH 4 nothing else. */
#if !defined MPI_ABI_VERSION && !(defined MPICH && MPI_VERSION < 5)
    WANT((MPI_Win_f2c)((MPI_Win_c2f)(win)) == win && (MPI_Win_f2c)((MPI_Win_c2f)(MPI_WIN_NULL)) == MPI_WIN_NULL);
#endif
#if MPI_VERSION >= 5
    WANT(MPI_Win_fromint(MPI_Win_toint(win)) == win);
    WANT(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
#endif
    WANT(!MPI_Win_create_errhandler(hear, &handler) && !MPI_Win_set_errhandler(win, handler));
    WANT(!MPI_Win_call_errhandler(win, MPI_ERR_OTHER) && n_heard == 101);
    WANT(!MPI_Errhandler_free(&handler));
    WANT(!MPI_Win_call_errhandler(win, MPI_ERR_ARG) && n_heard == 102);
    WANT(!MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, forget, &keyval, &thirty));
    WANT(!MPI_Win_set_attr(win, keyval, &seven));
    WANT(!MPI_Win_get_attr(win, keyval, &got, &flag) && flag && got == &seven);
    WANT(!MPI_Win_delete_attr(win, keyval) && n_forgotten == 37);
    WANT(!MPI_Win_get_attr(win, keyval, &got, &flag) && !flag);
    WANT(!MPI_Win_free_keyval(&keyval) && keyval == MPI_KEYVAL_INVALID);
    WANT(!MPI_Info_create(&info) && !MPI_Info_set(info, "no_locks", "false"));
    WANT(!MPI_Win_set_info(win, info) && !MPI_Info_free(&info));
    /* MPI need not keep the hint, but may not make another of it. */
    WANT(!MPI_Win_get_info(win, &info) && info != MPI_INFO_NULL && !MPI_Info_get_nkeys(info, &n) && n >= 0);
    WANT(!MPI_Info_get(info, "no_locks", MPI_MAX_INFO_VAL, value, &flag));
    WANT(!flag || !strcmp(value, "false"));
    WANT(!MPI_Info_free(&info));
    WANT(!MPI_Win_free(&win) && n_forgotten == 37);
    if (rank == 0) printf("carried: %d %d\n", n_heard, n_forgotten), fflush(stdout);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size, left = (rank + size - 1) % size;
    carried();
    for (int round = 0; round < ROUNDS; round++) of_all_kinds(round);
    MPI_Finalize();
    return 0;
}
