/* What process 0 asks of its standard input where nothing is there yet, and then where something
   is: each answer is a plain run's. */
#define _GNU_SOURCE
#include <poll.h>
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

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        ask_oddly();
        printf("silent\n"), fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
