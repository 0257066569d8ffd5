/* Signals that a process sends itself and handles: the handler has run when the call returns, as plain. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t got, is_own;

static void count(int signal) { got += signal == SIGUSR1; }

static void ask(int signal, siginfo_t *info, void *context) {
    got += 10;
    is_own = info->si_pid == getpid();
}

static void *beside(void *nothing) {
    raise(SIGUSR1);
    return nothing;
}

int main(int argc, char **argv) {
    signal(SIGUSR1, count);
    raise(SIGUSR1);
    int rank, all, own = got;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d: before MPI_Init %d\n", rank, own);
    pthread_t thread;
    pthread_create(&thread, NULL, beside, NULL);
    pthread_join(thread, NULL);
    printf("rank %d: raised by another thread %d\n", rank, got);
    raise(SIGUSR1);
    printf("rank %d: raised %d\n", rank, got);
    kill(getpid(), SIGUSR1);
    printf("rank %d: sent %d\n", rank, got);
    pthread_kill(pthread_self(), SIGUSR1);
    printf("rank %d: sent to its thread %d\n", rank, got);
    struct sigaction action = {.sa_sigaction = ask, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR2, &action, NULL);
    sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = rank});
    printf("rank %d: queued %d, from %s\n", rank, got, is_own ? "itself" : "another");
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    raise(SIGUSR1);
    raise(SIGUSR1);
    printf("rank %d: blocked %d\n", rank, got);
    sigprocmask(SIG_UNBLOCK, &mask, NULL);
    printf("rank %d: let through %d\n", rank, got);
    for (int i = 0; i < 3; i++) MPI_Barrier(MPI_COMM_WORLD);
    own = got;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d: %d of all %d\n", rank, own, all);
    MPI_Finalize();
    return 0;
}
