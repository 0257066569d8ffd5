/* Sets timers, whose alarms come to each replica by itself, and hears of them in loops of calls and
 * in sleeps; ends timers, and puts the default back; asks what is left of their time. */
#define _GNU_SOURCE
#include "want.h"
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t n;
static int rank;
static sigset_t usual;

static void hear(int signal) {
    (void)signal;
    n++;
}

static double sum(double of) {
    double all;
    MPI_Allreduce(&of, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Sends it, which is compared, to this process itself. */
static void tell(long of) {
    long got;
    MPI_Sendrecv(&of, 1, MPI_LONG, rank, 1, &got, 1, MPI_LONG, rank, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void ring(long us, long interval_us) {
    const struct itimerval it = {{0, interval_us}, {us / 1000000, us % 1000000}};
    WANT(setitimer(ITIMER_REAL, &it, 0) == 0);
}

/* An alarm that came just before its timer was ended is none. */
static void end(void) {
    for (int round = 0; round < 12; round++) {
        signal(SIGALRM, hear);
        ring(2000, 2000);
        for (int i = 0; i < 60; i++) sum(i);
        ring(0, 0);
        const int then = n;
        for (int i = 0; i < 20; i++) sum(i);
        WANT(n == then);
        signal(SIGALRM, SIG_DFL);
        for (int i = 0; i < 20; i++) sum(i);
    }
}

/* Alarms come in a loop of calls, and in each kind of sleep. */
static void mix(void) {
    struct timespec second = {1, 0};
    for (int round = 0; round < 45; round++) {
        n = 0;
        signal(SIGALRM, hear);
        ring(1000 + round * 37 % 9 * 1000, 0);
        const int way = round % 9;
        while (way == 0 && sum(n != 0) < 4) continue;
        while (way == 1 && !n) pause();
        while (way == 2 && !n) usleep(2000);
        while (way == 3 && !n) select(0, 0, 0, 0, 0);
        while (way == 4 && !n) poll(0, 0, -1);
        while (way == 5 && !n) clock_nanosleep(CLOCK_MONOTONIC, 0, &second, 0);
        if (way < 6) goto heard;
        sigset_t blocked;
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGALRM);
        sigprocmask(SIG_BLOCK, &blocked, &usual);
        while (way == 6 && !n) sigsuspend(&usual);
        while (way == 7 && !n) WANT(pselect(0, 0, 0, 0, 0, &usual) == -1 && errno == EINTR);
        while (way == 8 && !n) WANT(ppoll(0, 0, &second, &usual) == -1 && errno == EINTR);
        sigprocmask(SIG_SETMASK, &usual, 0);
    heard:
        WANT(n == 1);
        signal(SIGALRM, SIG_DFL);
        if (round % 2) sum(n);
    }
}

/* How many come in sleeps is the same in all, and what is left of these. */
static void count(void) {
    signal(SIGALRM, hear);
    ring(20000, 20000);
    for (int round = 0; round < 4; round++) {
        struct timespec left = {0, 50000000};
        while (nanosleep(&left, &left) == -1 && errno == EINTR) tell(left.tv_nsec);
        sum(n);
    }
    ring(0, 0);
}

/* What is left of a timer is somebody's time, and the same in all. */
static void rest(void) {
    struct itimerval none = {{0, 0}, {0, 0}}, left;
    ring(100000000, 0);
    sum(1);
    WANT(setitimer(ITIMER_REAL, &none, &left) == 0);
    WANT(left.it_value.tv_sec < 100 && sum(left.it_value.tv_usec) >= 0);
    WANT(alarm(50) == 0 && alarm(0) == 50);
    struct timespec time = {5, 0}, rest = {0, 0};
    n = 0;
    signal(SIGALRM, hear);
    ring(20000, 0);
    WANT(nanosleep(&time, &rest) == -1 && errno == EINTR && n == 1 && rest.tv_sec == 4);
    sum(rest.tv_nsec);
}

static void create(void) {
    timer_t timer;
    struct itimerspec soon = {{0, 0}, {0, 5000000}}, late = {{0, 0}, {90, 0}}, left;
    WANT(timer_create(CLOCK_MONOTONIC, 0, &timer) == 0);
    n = 0;
    signal(SIGALRM, hear);
    WANT(timer_settime(timer, 0, &soon, 0) == 0);
    while (sum(n != 0) < 4) continue;
    WANT(n == 1);
    WANT(timer_settime(timer, 0, &late, 0) == 0);
    WANT(timer_gettime(timer, &left) == 0 && sum(left.it_value.tv_nsec) >= 0);
    WANT(timer_settime(timer, 0, &soon, &left) == 0 && sum(left.it_value.tv_nsec) >= 0);
    pause();
    WANT(n == 2);
    signal(SIGALRM, SIG_DFL);
    for (int i = 0; i < 5; i++) usleep(3000), sum(i);
    WANT(timer_delete(timer) == 0);
}

int main(int argc, char **argv) {
    void (*const parts[])(void) = {end, mix, count, rest, create};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    parts[atoi(argv[1])]();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("part %s: heard\n", argv[1]);
    MPI_Finalize();
    return 0;
}
