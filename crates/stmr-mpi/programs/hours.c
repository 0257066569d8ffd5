/* Clocks that nobody sets go on and never back: from before MPI_Init to after it, from one answer to
 * the next, whoever gives it; and who sleeps or waits until one of their times does so until then. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

enum { N = 9, MINUTE = 60 };

static const char *const names[N] = {"CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_MONOTONIC_COARSE",
                                     "CLOCK_BOOTTIME",  "times",               "MPI_Wtime",
                                     "clock",           "getrusage",           "times of this process"};

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static double used(void) {
    struct rusage row;
    getrusage(RUSAGE_SELF, &row);
    return row.ru_utime.tv_sec + row.ru_stime.tv_sec + (row.ru_utime.tv_usec + row.ru_stime.tv_usec) * 1e-6;
}

/* Holds every clock against what it was; one that begins with the process against nothing before. */
static void look(const char *when, int has_begun, double was[N]) {
    struct tms row;
    const double tick = sysconf(_SC_CLK_TCK), since = times(&row) / tick;
    const double now[N] = {seconds(CLOCK_MONOTONIC), seconds(CLOCK_MONOTONIC_RAW), seconds(CLOCK_MONOTONIC_COARSE),
                           seconds(CLOCK_BOOTTIME),  since,                        has_begun ? MPI_Wtime() : 0,
                           clock() / 1e6,            used(),                       (row.tms_utime + row.tms_stime) / tick};
    for (int i = 0; i < N; i++) {
        if (was[i] != 0 && (now[i] < was[i] || was[i] + MINUTE < now[i]))
            printf("%s: %s was %.6f and is %.6f\n", when, names[i], was[i], now[i]);
        was[i] = now[i];
    }
}

static struct timespec soon(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += 2000000;
    if (1000000000 <= at.tv_nsec) at.tv_sec++, at.tv_nsec -= 1000000000;
    return at;
}

/* Every way to wait until a time of that clock. */
static void wait(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_condattr_t kind;
    pthread_cond_t never;
    sem_t none;
    sem_init(&none, 0, 0);
    pthread_condattr_init(&kind);
    pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
    pthread_cond_init(&never, &kind);
    struct timespec at = soon();
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
    pthread_mutex_lock(&mutex);
    at = soon();
    pthread_cond_timedwait(&never, &mutex, &at);
    at = soon();
    pthread_cond_clockwait(&never, &mutex, CLOCK_MONOTONIC, &at);
    at = soon();
    pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at);
    pthread_mutex_unlock(&mutex);
    at = soon();
    sem_clockwait(&none, CLOCK_MONOTONIC, &at);
    const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    const struct itimerspec once = {.it_value = soon()};
    uint64_t n = 0;
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &once, 0);
    if (read(timer, &n, sizeof n) != sizeof n || n != 1) printf("a timer rang %d times\n", (int)n);
    close(timer);
}

/* What the first set has used of its processors is more than what the others have. */
static void use(void) {
    const char *set = getenv("SELVEDGE_SET");
    const long n = set && *set == '0' ? 300000000 : 0;
    for (volatile long i = 0; i < n; i++) continue;
}

int main(int argc, char **argv) {
    double was[N] = {0};
    use();
    look("at first", 0, was);
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    look("after MPI_Init", 1, was);
    for (int round = 0; round < atoi(argv[1]); round++) {
        int n = round, sum;
        wait();
        MPI_Allreduce(&n, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        look("after a round", 1, was);
        if (rank == 0) printf("round %d: %d\n", round, sum);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
