/* Memory that the processes of a host share: a bar whose parts lie behind each other and warm each other,
 * by loads and stores alone, and what is put there by calls. */
#include <stdlib.h>

#include "want.h"

enum { CELLS = 96, STEPS = 5 };

static int rank, size;
static MPI_Comm host;

static double warm(int round) {
    double *own, *first, sum = 0, all;
    int cells = CELLS + 8 * rank, unit, n = 0;
    MPI_Aint bytes;
    MPI_Win win, next;
    double *own_next, *first_next;
    WANT(!MPI_Win_allocate_shared(sizeof(double) * cells, sizeof(double), MPI_INFO_NULL, host, &own, &win));
    WANT(!MPI_Win_allocate_shared(sizeof(double) * cells, sizeof(double), MPI_INFO_NULL, host, &own_next, &next));
    for (int i = 0; i < cells; i++) own[i] = (i * 37 + rank + round) % 101;
    for (int r = 0; r < size; r++) {
        double *at;
        WANT(!MPI_Win_shared_query(win, r, &bytes, &unit, &at));
        WANT(bytes == (MPI_Aint)sizeof(double) * (CELLS + 8 * r) && unit == sizeof(double));
        n += bytes / sizeof(double);
        if (r == rank) WANT(at == own);
    }
    WANT(!MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first));
    WANT(!MPI_Win_shared_query(next, 0, &bytes, &unit, &first_next));
    int begin = own - first, end = begin + cells;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win), MPI_Win_lock_all(MPI_MODE_NOCHECK, next);
    for (int step = 0; step < STEPS; step++) {
        MPI_Win_sync(win), MPI_Barrier(host), MPI_Win_sync(win);
        for (int i = begin; i < end; i++)
            first_next[i] = (first[i ? i - 1 : n - 1] + 2 * first[i] + first[i < n - 1 ? i + 1 : 0]) / 4;
        MPI_Win_sync(next), MPI_Barrier(host), MPI_Win_sync(next);
        memcpy(own, own_next, sizeof(double) * cells);
    }
    for (int i = 0; i < cells; i++) sum += own[i];
    MPI_Win_unlock_all(next), MPI_Win_unlock_all(win);
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, host);
    /* What is put there by a call is there for all. */
    double put = 1000 * rank + round;
    MPI_Win_fence(0, win);
    WANT(!MPI_Put(&put, 1, MPI_DOUBLE, (rank + 1) % size, 5, 1, MPI_DOUBLE, win));
    MPI_Win_fence(0, win);
    WANT(own[5] == 1000 * ((rank + size - 1) % size) + round);
    WANT(!MPI_Win_free(&next) && !MPI_Win_free(&win) && win == MPI_WIN_NULL);
    return all;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3, unit, none, *flavor, flag;
    void *at;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    WANT(!MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    MPI_Comm_size(host, &none);
    WANT(none == size);
    /* Of those who give nothing. */
    WANT(!MPI_Win_allocate_shared(rank == 1 ? 24 : 0, 4, MPI_INFO_NULL, host, &at, &win));
    WANT(!MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &at));
    WANT(bytes == (size > 1 ? 24 : 0));
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
    WANT(flag && *flavor == MPI_WIN_FLAVOR_SHARED);
    MPI_Win_free(&win);
    for (int round = 0; round < rounds; round++) {
        double all = warm(round);
        if (rank == 0) printf("round %d: %.6f\n", round, all), fflush(stdout);
    }
    MPI_Comm_free(&host);
    MPI_Finalize();
    if (rank == 0) printf("%d processes, %d rounds\n", size, rounds);
    return 0;
}
