/* Handlers as System V has them, which run once: `signal` is that to a program of standard C alone.  Then
   the program ends by the signal whose handler has run. */
#define _XOPEN_SOURCE 600
#include <mpi.h>
#include <signal.h>
#include <stdio.h>

void (*sysv_signal(int, void (*)(int)))(int);
void (*bsd_signal(int, void (*)(int)))(int);
void (*sigset(int, void (*)(int)))(int);

static volatile sig_atomic_t n, was_default;

static void count(int number) {
    n++;
    was_default = signal(number, SIG_IGN) == SIG_DFL;
    signal(number, SIG_DFL);
}

static void count_only(int number) {
    n += 10 + 0 * number;
}

int main(int argc, char **argv) {
    int rank, sum, mine;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    bsd_signal(SIGUSR1, count_only);
    raise(SIGUSR1);
    raise(SIGUSR1);
    if (n != 20 || sigset(SIGUSR1, count_only) != count_only) return 4;
    raise(SIGUSR1);
    if (n != 30 || signal(SIGUSR1, count) != count_only) return 5;
    raise(SIGUSR1);
    if (n != 31 || !was_default) return 6;
    if (sysv_signal(SIGUSR2, count_only) != SIG_DFL || signal(SIGUSR1, count_only) != SIG_DFL) return 7;
    raise(SIGUSR2);
    raise(SIGUSR1);
    mine = n;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("heard of %d\n", sum);
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    raise(SIGUSR1);
    return 8;
}
