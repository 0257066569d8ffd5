/* Compiled as standard C alone, it has System V's `signal`, whose handlers run once.
   Counts signals, and sends what it counted in every round, until all processes have been asked to
   end.  A handler that runs at another call in one replica makes it send something else. */
#ifdef __STRICT_ANSI__
#define _XOPEN_SOURCE 600
#endif
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t asked, counted, heard_at, round_now;

static void on_usr(int number) {
    counted++;
    heard_at = heard_at * 31 + round_now + number;
    signal(number, on_usr);
}

static void on_term(int signal, siginfo_t *info, void *context) {
    (void)context;
    asked += info && signal == SIGTERM;
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    signal(SIGUSR1, on_usr);
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_term;
    action.sa_flags = SA_SIGINFO;
    if (sigaction(SIGTERM, &action, NULL) || sigaction(SIGTERM, NULL, &before)) return 3;
    if (before.sa_sigaction != on_term || signal(SIGUSR1, on_usr) != on_usr) return 4;
    int sums[2] = {0, 0};
    while (sums[0] < size) {
        int mine[2] = {asked > 0, heard_at % 1000};
        MPI_Allreduce(mine, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        int next = (rank + 1) % size, other = (rank + size - 1) % size, from;
        MPI_Sendrecv((int *)&heard_at, 1, MPI_INT, next, 1, &from, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (++round_now == 1 && rank == 0) {
            printf("begun\n");
            fflush(stdout);
        }
        if (round_now % 64 == 0) usleep(500);
    }
    printf("rank %d: %d signals\n", rank, (int)counted);
    MPI_Finalize();
    return 0;
}
