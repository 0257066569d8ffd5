/* What process 0 asks of its standard input where nothing is there yet, and then where something
   is: each answer is a plain run's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "want.h"

static int rank;

/* Times that are none, and more descriptors than a set has room for. */
static void ask_oddly(void) {
    fd_set in[2];
    struct pollfd row = {.fd = 0, .events = POLLIN};
    struct timeval times[] = {{-1, -500000}, {-1, 0}, {5, -1000000}, {-2, 500000}};
    struct timespec parts[] = {{-1, 0}, {0, -1}, {0, 1000000000}};
    for (int idx = 0; idx < 4; idx++) {
        memset(in, 0, sizeof in);
        FD_SET(0, in);
        WANT(select(1, in, NULL, NULL, &times[idx]) == -1 && errno == EINVAL);
    }
    for (int idx = 0; idx < 3; idx++) {
        WANT(ppoll(&row, 1, &parts[idx], NULL) == -1 && errno == EINVAL);
    }
    WANT(select(1, in, NULL, NULL, &(struct timeval){0, 2000000 - 1990000}) == 0);
    FD_SET(0, in);
    WANT(select(2 * FD_SETSIZE, in, NULL, NULL, &(struct timeval){0}) == 0);
    WANT(ppoll(&row, 1, &(struct timespec){0}, NULL) == 0);
}

static volatile sig_atomic_t n_alarms;

static void hear(int signal) {
    (void)signal;
    n_alarms++;
}

static void alarm_soon(void) {
    struct itimerval soon = {.it_value = {0, 100000}};
    setitimer(ITIMER_REAL, &soon, NULL);
}

static int restarts(void) {
    struct sigaction now;
    sigaction(SIGALRM, NULL, &now);
    return (now.sa_flags & SA_RESTART) != 0;
}

int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);

/* An alarm ends a wait as its program has said that it is to. */
static void be_interrupted(void) {
    char got[8];
    WANT(signal(SIGALRM, hear) == SIG_DFL && restarts());
    WANT(siginterrupt(SIGALRM, 1) == 0 && !restarts());
    alarm_soon();
    WANT(read(0, got, sizeof got) == -1 && errno == EINTR && n_alarms == 1);
    struct pollfd row = {.fd = 0, .events = POLLIN};
    alarm_soon();
    WANT(__ppoll_chk(&row, 1, NULL, NULL, sizeof row) == -1 && errno == EINTR && n_alarms == 2);
    fd_set in;
    FD_ZERO(&in);
    FD_SET(0, &in);
    alarm_soon();
    WANT(pselect(1, &in, NULL, NULL, NULL, NULL) == -1 && errno == EINTR && n_alarms == 3);
    WANT(pselect(1, &in, NULL, NULL, &(struct timespec){0, -1}, NULL) == -1 && errno == EINVAL);
    WANT(signal(SIGALRM, hear) == hear && !restarts());
    WANT(siginterrupt(SIGALRM, 0) == 0 && restarts());
    WANT(siginterrupt(1000, 1) == -1 && errno == EINVAL);
}

/* A signal that is ignored and one that is blocked end no wait. */
static void be_deaf(void) {
    char got[8];
    struct iovec empty[2] = {{got, 0}, {got, 0}};
    WANT(read(0, got, 0) == 0 && readv(0, empty, 2) == 0 && readv(0, empty, 0) == 0);
    sigset_t alarms;
    struct pollfd row = {.fd = 0, .events = POLLIN};
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    alarm_soon();
    printf("silent\n"), fflush(stdout);
    WANT(poll(&row, 1, -1) == 1);
    WANT(read(0, got, 5) == 5 && !memcmp(got, "word\n", 5));
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
}

/* Replicas but the first ask more often than that one, which has gone on by then. */
static void linger(int fd) {
    const char *set = getenv("SELVEDGE_SET");
    int n_more = set && *set != '0' ? 4 : 0, n_got = 0, there;
    struct pollfd row = {.fd = fd, .events = POLLIN};
    fd_set in;
    char got;
    FD_ZERO(&in);
    FD_SET(fd, &in);
    WANT(poll(&row, 1, -1) == 1 && select(fd + 1, &in, NULL, NULL, NULL) == 1);
    for (int idx = 0; idx < 6 + n_more; idx++) {
        if (poll(&row, 1, 0) > 0) n_got += read(fd, &got, 1) == 1;
    }
    for (int idx = 0; idx < 6 + n_more; idx++) {
        if (!ioctl(fd, FIONREAD, &there) && there > 0) n_got += read(fd, &got, 1) == 1;
    }
    printf("%d bytes\n", n_got), fflush(stdout);
}

/* Other descriptors of the same input, the last when the first is something else. */
static void linger_elsewhere(void) {
    int others[] = {fcntl(0, F_DUPFD, 50), open("/dev/stdin", O_RDONLY), dup2(0, 60), dup(0)};
    for (int idx = 0; idx < 4; idx++) {
        if (idx == 3) WANT(!close(0) && !open("/dev/null", O_RDONLY));
        WANT(3 <= others[idx]);
        linger(others[idx]);
        WANT(!close(others[idx]));
    }
}

/* Rows without room, and a poll that names the descriptor twice. */
static void ask_for_parts(void) {
    char got[8];
    struct iovec rows[3] = {{got, 0}, {got, 2}, {got + 2, 1}};
    struct pollfd twice[] = {{.fd = 0, .events = POLLPRI}, {.fd = -1}, {.fd = 0, .events = POLLIN}};
    WANT(poll(twice, 3, -1) == 1 && !(twice[0].revents & POLLIN) && twice[2].revents == POLLIN);
    twice[0].events = POLLIN;
    WANT(poll(twice, 3, -1) == 2 && twice[0].revents == POLLIN && twice[2].revents == POLLIN);
    WANT(poll(twice, 3, 0) == 2 && twice[0].revents == POLLIN && twice[2].revents == POLLIN);
    long n = readv(0, rows, 3);
    WANT(0 < n && n <= 3 && got[0] == 'x');
}

static void *call_beside(void *nothing) {
    sleep(1);
    MPI_Barrier(MPI_COMM_SELF);
    return nothing;
}

/* A thread calls MPI while another waits for what does not come. */
static void wait_beside(void) {
    char got;
    pthread_t other;
    pthread_create(&other, NULL, call_beside, NULL);
    WANT(read(0, &got, 1) == 0);
}

int main(int argc, char **argv) {
    int level;
    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    signal(SIGUSR1, SIG_IGN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && argc > 1) wait_beside();
    if (rank == 0 && argc == 1) {
        ask_oddly();
        be_interrupted();
        be_deaf();
        ask_for_parts();
        linger(0);
        linger_elsewhere();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
