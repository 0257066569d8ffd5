/* Threads take turns in MPI, and ask until something has come.  The first thread waits for the one
 * that does, by a clock or by joining it, and meanwhile begins others, at a time of its own; or
 * whichever of a team of OpenMP's comes first asks. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int rank, size;
static atomic_int done;

/* Asks by MPI_Test, MPI_Testall and MPI_Iprobe. */
static void come_together(long *sum, int tag) {
    MPI_Request request, requests[2];
    MPI_Status status;
    long mine = *sum % 7 + 1, all = 0, came = 0, next = 0;
    int is_there = 0, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Iallreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
    while (!is_there) MPI_Test(&request, &is_there, MPI_STATUS_IGNORE);
    mine = all + rank;
    MPI_Irecv(&came, 1, MPI_LONG, left, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&mine, 1, MPI_LONG, right, tag, MPI_COMM_WORLD, &requests[1]);
    for (is_there = 0; !is_there;) MPI_Testall(2, requests, &is_there, MPI_STATUSES_IGNORE);
    MPI_Isend(&came, 1, MPI_LONG, right, tag + 1, MPI_COMM_WORLD, &request);
    for (is_there = 0; !is_there;)
        MPI_Iprobe(MPI_ANY_SOURCE, tag + 1, MPI_COMM_WORLD, &is_there, &status);
    MPI_Recv(&next, 1, MPI_LONG, status.MPI_SOURCE, tag + 1, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    *sum += came + 3 * next;
}

static void *ask(void *sum) {
    come_together(sum, 1);
    done = 1;
    return 0;
}

static void *rest(void *how_long) {
    usleep(*(int *)how_long);
    return 0;
}

static void look_until_done(void) {
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 60;
    do {
        usleep(20);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (!done && now.tv_sec < end.tv_sec);
}

int main(int argc, char **argv) {
    int level, n_rounds = atoi(argv[1]), how_long = 50;
    long sum, all;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    if (level < MPI_THREAD_SERIALIZED) return 3;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sum = rank;
    for (int round = 0; round < n_rounds; round++) {
        pthread_t asks, rests;
        done = 0;
        pthread_create(&asks, 0, ask, &sum);
        pthread_create(&rests, 0, rest, &how_long);
        if (round % 3) look_until_done();
        pthread_join(rests, 0);
        pthread_join(asks, 0);
    }
    /* Its barriers wait by computing. */
    for (int round = 0; round < n_rounds / 4; round++) {
#pragma omp parallel num_threads(2)
        {
#pragma omp single
            come_together(&sum, 5);
#pragma omp critical
            come_together(&sum, 7);
        }
    }
    MPI_Reduce(&sum, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("the sum is %ld\n", all);
    MPI_Finalize();
    return 0;
}
