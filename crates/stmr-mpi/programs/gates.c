/* One replica gives a wrong value once, so that another leads in one process alone, while a window
 * is there whose locks are served beside collectives, of those who wait in one already, too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 40, WRONG = 5, N = 500 };

int main(int argc, char **argv) {
    static double mine[N], all[N], there[N];
    const char *set = getenv("SELVEDGE_SET");
    int rank, n;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Win_create(there, sizeof there, sizeof there[0], MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) mine[i] = 1 + (rank + round + i) % 3 * 1e-3;
        double right = mine[0];
        if (set && atoi(set) == 0 && rank == 0 && round == WRONG) mine[0] += 1;
        MPI_Allreduce(mine, all, N, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD);
        mine[0] = right;
        if (rank == n - 1) {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
            MPI_Get(&right, 1, MPI_DOUBLE, 0, 1, 1, MPI_DOUBLE, window);
            MPI_Win_unlock(0, window);
        }
        MPI_Scan(mine, all + N / 2, N / 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Reduce(mine, all, N / 2, MPI_DOUBLE, MPI_SUM, round % n, MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Accumulate(mine, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_MAX, window);
        MPI_Win_unlock(0, window);
        if (rank == round % n) printf("%d: %.17g %.17g\n", round, all[0], all[N - 1]);
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
