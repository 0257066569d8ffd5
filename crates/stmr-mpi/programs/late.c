// What a process that left MPI at a death is still sent must not reach the program's memory.
//
// Argument: a file that is not there.  On four processes, the even ones on one side, the odd ones,
// their neighbours, on the other.  In set 0, process 0 reads nothing from its sockets from when a
// thread of it is in MPI for a collective, which makes the file FILE.in; when there is something to
// read it makes the file.  Its neighbours, whose threads are there too, send nothing before FILE.in
// is there, and make FILE.1 or FILE.3 when they have sent and wait.  Process 2 of set 0, which is
// there with its thread, waits for all of that and dies, so that process 0 leaves the collective
// while its contents wait, and nobody writes to the dead, which would end him in Open MPI's TCP.
// When it is over for the program it writes something else where it brought it, and only then lets
// the thread that was left in MPI read.  To be run over TCP, linked so that the functions here are
// found before the C library's (-rdynamic).
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { N = 128, RANKS = 4 };

static atomic_int shut;
static atomic_long came;
static const char *sign;
static char sign_in[4096], sign_sent[RANKS][4096];
/* Which process of set 0 this is, from the collective on; -1 before it, and in other sets. */
static atomic_int plays = -1;
static pthread_t first;

/* Files that one replica alone makes and looks for are no part of what replicas share. */
static void make(const char *path) {
    syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY, 0600));
}

static void await(const char *path) {
    while (syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0) usleep(1000);
}

/* A process waits in MPI, or has not had to: only the first has to, since nobody sends before. */
static void play(int rank) {
    static atomic_int has_played;
    if (rank == -1 || atomic_exchange(&has_played, 1)) return;
    if (rank == 0) {
        atomic_store(&shut, 1);
        make(sign_in);
    } else if (rank == 2) {
        await(sign);
        await(sign_sent[1]);
        await(sign_sent[3]);
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    } else {
        make(sign_sent[rank]);
    }
}

/* Who waits in MPI lets others run. */
int sched_yield(void) {
    if (!pthread_equal(pthread_self(), first)) play(atomic_load(&plays));
    return syscall(SYS_sched_yield);
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
    if (atomic_load(&plays) % 2 == 1 && !pthread_equal(pthread_self(), first)) await(sign_in);
    return syscall(SYS_writev, fd, parts, n);
}

ssize_t readv(int fd, const struct iovec *parts, int n) {
    if (atomic_load(&shut)) {
        make(sign);
        while (atomic_load(&shut)) usleep(1000);
    }
    ssize_t length = syscall(SYS_readv, fd, parts, n);
    if (0 < length) atomic_fetch_add(&came, length);
    return length;
}

/* Who is left in MPI is given only the time that nobody else wants, which on a busy machine is none. */
int sched_setscheduler(pid_t thread, int kind, const struct sched_param *how) {
    (void)thread, (void)kind, (void)how;
    return 0;
}

static double sum(const double *row, int n) {
    double all = 0;
    for (int i = 0; i < n; i++) all = all * 0.5 + row[i];
    return all;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    sign = argv[1];
    snprintf(sign_in, sizeof sign_in, "%s.in", sign);
    for (int i = 0; i < RANKS; i++) snprintf(sign_sent[i], sizeof sign_sent[i], "%s.%d", sign, i);
    first = pthread_self();
    int rank, dims = RANKS, periods = 1;
    MPI_Comm ring, side, sides;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periods, 0, &ring);
    MPI_Comm_rank(ring, &rank);
    MPI_Comm_split(ring, rank % 2, rank, &side);
    MPI_Intercomm_create(side, 0, ring, 1 - rank % 2, 1, &sides);
    double given[RANKS * N], got[2 * N], all[RANKS * N];
    for (int i = 0; i < RANKS * N; i++) given[i] = rank * 1000 + i;
    // All sockets are there from here on.
    MPI_Alltoall(given, N, MPI_DOUBLE, all, N, MPI_DOUBLE, ring);
    MPI_Alltoall(given, N, MPI_DOUBLE, got, N, MPI_DOUBLE, sides);
    const char *set = getenv("SELVEDGE_SET");
    int is_first = set && atoi(set) == 0;
    if (is_first) atomic_store(&plays, rank);
    MPI_Alltoall(given, N, MPI_DOUBLE, got, N, MPI_DOUBLE, sides);
    if (rank != 0) play(atomic_load(&plays));
    double summed = sum(got, 2 * N);
    for (int i = 0; i < RANKS * N; i++) all[i] = given[i] = -i;
    memcpy(got, all, sizeof got);
    if (atomic_load(&shut)) {
        // Of the two neighbours at least one has sent its message by now.
        long before = atomic_load(&came), wanted = N * sizeof(double);
        atomic_store(&shut, 0);
        for (int i = 0; i < 20000 && atomic_load(&came) - before < wanted; i++) usleep(1000);
        usleep(100000);
        fprintf(stderr, "%s\n", wanted <= atomic_load(&came) - before ? "it came" : "nothing came");
    }
    double sent[2] = {summed, sum(got, 2 * N)}, rows[2 * RANKS];
    MPI_Gather(sent, 2, MPI_DOUBLE, rows, 2, MPI_DOUBLE, 0, ring);
    if (rank == 0)
        for (int i = 0; i < 2 * RANKS; i++) printf("%d %.17g\n", i, rows[i]);
    MPI_Finalize();
    return 0;
}
