/* Blocks signals and takes them where it asks for them, SIGUSR1 by sigtimedwait and SIGUSR2 by a
   descriptor, and sends what it took in every round, until each process has taken both.  One that
   comes at another call in one replica makes it send something else. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, size, taken[2] = {0, 0}, sums[2] = {0, 0};
    sigset_t first, second;
    sigemptyset(&first);
    sigaddset(&first, SIGUSR1);
    sigemptyset(&second);
    sigaddset(&second, SIGUSR2);
    sigprocmask(SIG_BLOCK, &first, NULL);
    sigprocmask(SIG_BLOCK, &second, NULL);
    /* MPI's threads block what is blocked here. */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int fd = signalfd(-1, &second, SFD_NONBLOCK);
    for (int round = 1; sums[0] < size || sums[1] < size; round++) {
        struct timespec none = {0, 0};
        struct signalfd_siginfo info;
        taken[0] += sigtimedwait(&first, NULL, &none) == SIGUSR1;
        taken[1] += read(fd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR2;
        MPI_Allreduce(taken, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (round == 1 && rank == 0) {
            printf("begun\n");
            fflush(stdout);
        }
        if (round % 64 == 0) usleep(500);
    }
    printf("rank %d: %d and %d\n", rank, taken[0], taken[1]);
    MPI_Finalize();
    return 0;
}
