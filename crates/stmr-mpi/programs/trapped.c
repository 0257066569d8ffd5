/* A program that reads the cycle counter, which traps in its replicas, and does with signals, threads
 * and other programs what the trap could disturb. */
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>
#include <mpi.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

#include "want.h"

static int rank;
static volatile sig_atomic_t n_heard;
static volatile unsigned long long cycles;

static void hear(int signal) {
    cycles = __builtin_ia32_rdtsc();
    n_heard++;
}

static void *count(void *nothing) {
    cycles = __builtin_ia32_rdtsc();
    return nothing;
}

static void expire(union sigval value) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *(volatile int *)value.sival_ptr = 1;
}

static void handle(int signal, void (*handler)(int), int blocks) {
    struct sigaction action = {0};
    action.sa_handler = handler;
    if (blocks) sigfillset(&action.sa_mask);
    WANT(sigaction(signal, &action, 0) == 0);
}

/* Signals that come where all others are blocked. */
static void masks(void) {
    sigset_t all, before, but_one;
    sigfillset(&all);
    but_one = all;
    sigdelset(&but_one, SIGCHLD);
    handle(SIGCHLD, hear, 1);
    WANT(sigprocmask(SIG_SETMASK, &all, &before) == 0);
    cycles = __builtin_ia32_rdtsc();
    raise(SIGCHLD);
    WANT(sigsuspend(&but_one) == -1 && n_heard == 1);
    pthread_t thread;
    WANT(pthread_create(&thread, 0, count, 0) == 0 && pthread_join(thread, 0) == 0);
    WANT(sigprocmask(SIG_SETMASK, &before, 0) == 0);
    handle(SIGCHLD, SIG_DFL, 0);
}

/* Threads that the C library makes for itself. */
static void threads(void) {
    char text[] = "words", name[] = "/tmp/selvedge-trapped-XXXXXX";
    struct aiocb control = {0};
    control.aio_fildes = mkstemp(name);
    control.aio_buf = text;
    control.aio_nbytes = sizeof text;
    WANT(0 <= control.aio_fildes && aio_write(&control) == 0);
    while (aio_error(&control) == EINPROGRESS) usleep(1000);
    WANT(aio_return(&control) == sizeof text);
    close(control.aio_fildes);
    unlink(name);
    volatile int expired = 0;
    struct sigevent event = {0};
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = expire;
    event.sigev_value.sival_ptr = (void *)&expired;
    timer_t timer;
    struct itimerspec soon = {{0, 0}, {0, 1000000}};
    WANT(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &soon, 0) == 0);
    while (!expired) usleep(1000);
    timer_delete(timer);
}

/* Programs that it starts, whose loaders read the counter. */
static void programs(void) {
    int status = 0, child = vfork();
    if (child == 0) {
        execlp("sh", "sh", "-c", "exit 5", (char *)0);
        _exit(1);
    }
    WANT(0 < child && waitpid(child, &status, 0) == child);
    WANT(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    wordexp_t words;
    WANT(wordexp("$(echo two words)", &words, 0) == 0 && words.we_wordc == 2);
    wordfree(&words);
    errno = 0;
    WANT(system("exit 3") == 3 << 8);
}

/* What a bad access to memory is to the program. */
static void faults(void) {
    handle(SIGSEGV, SIG_IGN, 0);
    raise(SIGSEGV);
    raise(SIGSEGV);
    n_heard = 0;
    struct sigaction action = {0};
    action.sa_handler = hear;
    action.sa_flags = SA_RESETHAND;
    WANT(sigaction(SIGSEGV, &action, 0) == 0);
    raise(SIGSEGV);
    WANT(n_heard == 1 && sigaction(SIGSEGV, 0, &action) == 0 && action.sa_handler == SIG_DFL);
}

/* Alarms that it waits for without a call of MPI. */
static void alarms(void) {
    n_heard = 0;
    handle(SIGALRM, hear, 0);
    alarm(1);
    while (n_heard == 0) pause();
    alarm(1);
    while (n_heard == 1) sleep(10);
    handle(SIGALRM, SIG_DFL, 0);
}

int main(int argc, char **argv) {
    int sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned long long first = __builtin_ia32_rdtsc();
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    masks();
    threads();
    programs();
    faults();
    alarms();
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d: done %d\n", rank, sum);
    MPI_Finalize();
    return 0;
}
