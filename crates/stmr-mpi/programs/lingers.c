/* Waits for a thread of its own, and for an alarm, by looking at clocks again and again: as often as
 * that takes, which is another number in each replica.  What it comes to after that is the same, also
 * what clocks show then, and none has gone back. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

static atomic_int done;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t signalled = PTHREAD_COND_INITIALIZER;
static volatile sig_atomic_t alarms;

/* Takes longer in one replica than in another. */
static void *work(void *how_long) {
    const char *set = getenv("SELVEDGE_SET");
    usleep(*(int *)how_long * (1 + 3 * (set ? atoi(set) : 0)) % 17000);
    pthread_mutex_lock(&mutex);
    done = 1;
    pthread_cond_signal(&signalled);
    pthread_mutex_unlock(&mutex);
    return 0;
}

static void ring(int signal) {
    (void)signal;
    alarms++;
}

static struct timespec now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at;
}

static double in_s(struct timespec at) { return at.tv_sec + at.tv_nsec / 1e9; }

enum { CLOCKS = 7 };

static double read_clock(int which) {
    struct timeval at;
    struct rusage used;
    struct tms row;
    switch (which) {
    case 0: return in_s(now(CLOCK_MONOTONIC));
    case 1: gettimeofday(&at, 0); return at.tv_sec + at.tv_usec / 1e6;
    case 2: getrusage(RUSAGE_SELF, &used); return used.ru_utime.tv_sec + used.ru_utime.tv_usec / 1e6;
    case 3: return times(&row) / 100.;
    case 4: return in_s(now(CLOCK_PROCESS_CPUTIME_ID));
    case 5: return clock() / (double)CLOCKS_PER_SEC;
    default: return MPI_Wtime();
    }
}

/* What a clock shows, which is not before what it showed. */
static double shown(int which) {
    static double before[CLOCKS];
    const double is = read_clock(which);
    if (is < before[which]) printf("clock %d goes back\n", which), fflush(stdout);
    return before[which] = is;
}

/* Looks until the thread has done its work, each way to look by turns. */
static void look(int round) {
    const double began = shown(6);
    while (!done) {
        shown(round % CLOCKS);
        if (round % 4 == 3) shown((round + 1) % CLOCKS), usleep(500);
        if (60 < shown(6) - began) printf("a minute has gone\n"), exit(3);
    }
}

/* Waits for it, and looks whenever it has waited for a millisecond. */
static void wait(void) {
    pthread_mutex_lock(&mutex);
    while (!done) {
        struct timespec at = now(CLOCK_REALTIME);
        at.tv_nsec += 1000000;
        if (1000000000 <= at.tv_nsec) at.tv_sec++, at.tv_nsec -= 1000000000;
        pthread_cond_timedwait(&signalled, &mutex, &at);
    }
    pthread_mutex_unlock(&mutex);
}

int main(int argc, char **argv) {
    int rank, n_rounds = atoi(argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    signal(SIGALRM, ring);
    for (int round = 0; round < n_rounds; round++) {
        pthread_t thread;
        int how_long = 1000 + 977 * (round * 7 + rank) % 9000, sum;
        done = 0;
        pthread_create(&thread, 0, work, &how_long);
        round % 3 == 2 ? wait() : look(round);
        /* Something that all do, or nothing, before what is sent. */
        if (round % 4 == 1) access("stop", F_OK);
        double last[CLOCKS], most[CLOCKS];
        for (int which = 0; which < CLOCKS; which++) last[which] = shown(which);
        MPI_Allreduce(last, most, CLOCKS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        /* Who looked more often than others so far does not wait for their looks. */
        const double until = MPI_Wtime() + 0.01;
        while (MPI_Wtime() < until) continue;
        pthread_join(thread, 0);
        const double since = MPI_Wtime();
        MPI_Allreduce(&how_long, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (MPI_Wtime() < since) printf("time goes back\n");
        if (rank == 0) printf("round %d: %d\n", round, sum), fflush(stdout);
    }
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    setitimer(ITIMER_REAL, &soon, 0);
    while (!alarms) usleep(1000);
    const struct itimerval again = {.it_value = {.tv_usec = 20000}};
    setitimer(ITIMER_REAL, &again, 0);
    while (alarms < 2) MPI_Wtime();
    int sum, own = alarms;
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%d alarms, and %d heard here\n", sum, (int)alarms);
    MPI_Finalize();
    return 0;
}
