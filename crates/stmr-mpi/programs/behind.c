/* Replicas that come late, or never: what the argument says happens in one set alone.
 *
 * slow: the meta computes four times as long as its siblings before it looks at a clock.
 * loops, stops: one that only receives computes for ever, or stands still, while its sender waits for
 * it and nobody of its own does.
 * polls: one stands still, and its siblings ask again and again for what comes to them only when it
 * has received something.
 * ends: one stands still in MPI_Finalize, where its siblings came after it.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "want.h"

/* The kernel's own answers: the library's are the same in all replicas. */
static double computed(void) {
    struct timespec it;
    syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &it);
    return it.tv_sec + it.tv_nsec * 1e-9;
}

static void stop(void) { syscall(SYS_kill, syscall(SYS_getpid), SIGSTOP); }

static void *stop_soon(void *none) {
    sleep(1);
    stop();
    return none;
}

/* Asks for the second of two messages until it is there, which comes when the first was received. */
static void poll_for_answers(int rank, int set) {
    for (int round = 0; round < 20; round++) {
        MPI_Request requests[2];
        int first = -1, second = -1, is_there = 0;
        if (rank == 1) {
            MPI_Recv(&first, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Ssend(&first, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
            MPI_Send(&first, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
        }
        if (rank != 0) continue;
        MPI_Irecv(&first, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&second, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[1]);
        MPI_Send(&round, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
        if (set == 1 && round == 10) stop();
        while (!is_there) MPI_Test(&requests[1], &is_there, MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        WANT(first == round && second == round);
    }
}

int main(int argc, char **argv) {
    const char *how = 1 < argc ? argv[1] : "", *which = getenv("SELVEDGE_SET");
    int rank, set = which ? atoi(which) : -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(how, "slow") == 0) {
        double until = computed() + (set == 0 ? 16 : 4);
        while (rank == 0 && computed() < until)
            ;
        WANT(0 < MPI_Wtime());
    }
    for (int round = 0; round < 400; round++) {
        int it = round;
        if (rank == 0) MPI_Ssend(&it, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(&it, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        WANT(it == round);
        if (rank == 1 && set == 1 && round == 50) {
            if (strcmp(how, "stops") == 0) stop();
            while (strcmp(how, "loops") == 0)
                ;
        }
    }
    if (strcmp(how, "polls") == 0) poll_for_answers(rank, set);
    if (rank == 1) puts("done");
    if (strcmp(how, "ends") == 0 && rank == 0) {
        pthread_t it;
        if (set == 1) pthread_create(&it, NULL, stop_soon, NULL);
        if (set == 0 || set == 2) sleep(3);
    }
    MPI_Finalize();
    return 0;
}
