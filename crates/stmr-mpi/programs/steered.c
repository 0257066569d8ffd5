/* A program that whoever started it steers: process 0 looks at each step whether a command is
   there, in each way that the C library has, and reads as much as there is; "quit" ends it. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "want.h"

enum { WAYS = 6, ROOM = 256, BEFORE = 12 };

static int by_select(struct timeval *at_most) {
    fd_set in;
    FD_ZERO(&in);
    FD_SET(0, &in);
    int n = select(1, &in, NULL, NULL, at_most);
    return n > 0 && !FD_ISSET(0, &in) ? -2 : n;
}

static int is_there(int step) {
    struct pollfd in[2] = {{.fd = 0, .events = POLLIN}, {.fd = -1}};
    int n = 0;
    switch (step % WAYS) {
    case 0: return poll(in, 1, 0) > 0;
    case 1: return by_select(&(struct timeval){0}) > 0;
    case 2: return !ioctl(0, FIONREAD, &n) && n > 0;
    case 3: return poll(in, 2, 20) > 0;
    case 4: return by_select(&(struct timeval){0, 20000}) > 0;
    default: return 1;
    }
}

static long take(int step, char *to) {
    struct iovec rows[2] = {{to, 3}, {to + 3, ROOM - 4}};
    if (step % WAYS == 2) return readv(0, rows, 2);
    if (step % WAYS != WAYS - 1) return read(0, to, ROOM - 1);
    fcntl(0, F_SETFL, O_NONBLOCK);
    long got = read(0, to, ROOM - 1);
    fcntl(0, F_SETFL, 0);
    return got;
}

static volatile sig_atomic_t n_alarms;

static void hear(int signal) {
    (void)signal;
    n_alarms++;
}

/* Waits in each way for what does not come. */
static void wait_in_vain(void) {
    struct sigaction of_alarms = {.sa_handler = hear};
    sigaction(SIGALRM, &of_alarms, NULL);
    for (int way = 0; way < 5; way++) {
        char got[4];
        struct timeval left = {5, 0};
        struct itimerval soon = {.it_value = {0, 200000}};
        struct pollfd in = {.fd = 0, .events = POLLIN};
        errno = 0;
        setitimer(ITIMER_REAL, &soon, NULL);
        long n = way == 0   ? read(0, got, 4)
                 : way == 1 ? poll(&in, 1, -1)
                 : way == 2 ? by_select(&left)
                 : way == 3 ? select(0, NULL, NULL, NULL, &left)
                            : poll(NULL, 0, 5000);
        int interrupted = errno == EINTR, waited = left.tv_sec < 5;
        printf("way %d: %ld, interrupted: %d, waited: %d, %d alarms\n", way, n, interrupted, waited,
               (int)n_alarms);
        fflush(stdout);
    }
}

/* An alarm ends a wait, and the program has alarms end it from then on: each replica has set its
   own at another time. */
static void hear_once(void) {
    const char *set = getenv("SELVEDGE_SET");
    struct itimerval soon = {.it_value = {0, 200000}};
    struct pollfd in = {.fd = 0, .events = POLLIN};
    signal(SIGALRM, hear);
    usleep(set ? atoi(set) * 100000 : 0);
    setitimer(ITIMER_REAL, &soon, NULL);
    int n = poll(&in, 1, -1);
    printf("once: %d, %d alarms\n", n, (int)n_alarms);
    signal(SIGALRM, SIG_DFL);
    for (int i = 0; i < 5; i++) usleep(100000);
}

int main(int argc, char **argv) {
    int rank, is_over = 0, pieces[2] = {0};
    char got[ROOM], all[4 * ROOM] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1 && rank == 0) wait_in_vain(), hear_once();
    for (int step = 0; !is_over; step++) {
        memset(got, 0, sizeof got);
        long length = rank == 0 && is_there(step) ? take(step, got) : -1;
        if (step == BEFORE && rank == 0) printf("steps are made\n"), fflush(stdout);
        if (length > 0) strcat(all, got), pieces[0]++;
        pieces[1] += (int)length + step;
        is_over = strstr(all, "quit") != NULL;
        MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Bcast(got, ROOM, MPI_CHAR, 0, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, pieces, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("it was told: %s", all);
    MPI_Finalize();
    return 0;
}
