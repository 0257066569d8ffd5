/* Waits for a thread of its own, and meanwhile asks again and again: whether its messages have come,
 * or others, and what else a program may ask for while it waits.  How often that is, and in which of
 * the replicas a message is found to have come before the thread has, is another thing in each.  What
 * it comes to after that is the same. */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KINDS = 13, MANY = 20000, FEW = 4, LONG = 4000 };

static atomic_int done;

/* Takes longer in one replica than in another. */
static void *work(void *how_long) {
    const char *set = getenv("SELVEDGE_SET");
    usleep(*(int *)how_long * (1 + 3 * (set ? atoi(set) : 0)) % 17000);
    done = 1;
    return 0;
}

static void read_text(const char *path) {
    char text[256];
    FILE *file = fopen(path, "r");
    if (file) fgets(text, sizeof text, file), fclose(file);
}

static void poke(int kind, MPI_Request requests[2]) {
    struct stat row;
    MPI_Status status, statuses[2];
    char name[MPI_MAX_PROCESSOR_NAME];
    int is_there, which[2];
    switch (kind) {
    case 0: MPI_Testall(2, requests, &is_there, statuses); break;
    case 1: MPI_Test(&requests[1], &is_there, &status); break;
    case 2: MPI_Testany(2, requests, which, &is_there, &status); break;
    case 3: MPI_Testsome(2, requests, &is_there, which, statuses); break;
    case 4: MPI_Request_get_status(requests[0], &is_there, &status); break;
    case 5: MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &is_there, &status); break;
    case 6: stat("stop", &row); break;
    case 7: access("stop", F_OK); break;
    case 8: read_text("stop"); break;
    case 9: read_text("/proc/self/statm"); break;
    case 10: MPI_Get_processor_name(name, which); break;
    case 11: gethostname(name, sizeof name); break;
    default: getppid();
    }
}

/* Several come in another order than they are waited for in, and some are found in the wait for the
 * thread. */
static double exchange(int round, int rank, int size) {
    static double sent[FEW][LONG], came[FEW][LONG];
    pthread_t thread;
    MPI_Request requests[FEW];
    MPI_Status status, statuses[FEW];
    double sum = 0;
    int which[FEW], n, how_long = 100 + 70 * (round % 9);
    memset(came, 0, sizeof came);
    for (int it = 0; it < FEW; it++)
        MPI_Irecv(came[it], LONG, MPI_DOUBLE, (rank + 1) % size, it, MPI_COMM_WORLD, &requests[it]);
    done = 0;
    pthread_create(&thread, 0, work, &how_long);
    for (int it = 0; it < FEW; it++) {
        const int tag = (3 * it + round) % FEW;
        for (int at = 0; at < LONG; at++) sent[tag][at] = rank + tag + at;
        MPI_Send(sent[tag], LONG, MPI_DOUBLE, (rank + size - 1) % size, tag, MPI_COMM_WORLD);
    }
    while (!done) {
        if (round % 3 == 0) MPI_Testsome(FEW, requests, &n, which, statuses);
        if (round % 3 == 1) MPI_Testany(FEW, requests, which, &n, &status);
        for (int it = 0; round % 3 == 2 && it < FEW; it++) MPI_Test(&requests[it], &n, &status);
        usleep(20);
    }
    pthread_join(thread, 0);
    if (round % 2) MPI_Waitall(FEW, requests, statuses);
    for (int it = 0; round % 2 == 0 && it < FEW; it++) MPI_Wait(&requests[it], &status);
    for (int it = 0; it < FEW; it++)
        for (int at = 0; at < LONG; at++) sum += came[it][at];
    return sum;
}

/* Something has come from the first communicator, and nothing ever does from the second, which is
 * asked for at the same place. */
static int find_none(MPI_Comm const comms[2], int round, int rank, int size) {
    int found = 0;
    MPI_Request request;
    MPI_Isend(0, 0, MPI_INT, (rank + size - 1) % size, 1, comms[0], &request);
    for (int which = 0; which < 2; which++) {
        pthread_t thread;
        int how_long = 300 + 100 * (round % 5), is_there;
        done = 0;
        pthread_create(&thread, 0, work, &how_long);
        while (!done) {
            MPI_Iprobe(MPI_ANY_SOURCE, 1, comms[which], &is_there, MPI_STATUS_IGNORE);
            found += which && is_there;
            usleep(20);
        }
        pthread_join(thread, 0);
    }
    MPI_Recv(0, 0, MPI_INT, MPI_ANY_SOURCE, 1, comms[0], MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return found;
}

int main(int argc, char **argv) {
    static double sent[MANY], came[MANY];
    int rank, size, n_rounds = atoi(argv[1]);
    double sum = 0, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < n_rounds; round++) {
        pthread_t thread;
        MPI_Request requests[2];
        /* Short ones are over at about the time at which the messages have come. */
        int how_long = round % 2 ? 1000 + 977 * (round * 7 + rank) % 9000 : 50 * (1 + rank);
        for (int at = 0; at < MANY; at++) sent[at] = round * rank + at;
        memset(came, 0, sizeof came);
        MPI_Irecv(came, MANY, MPI_DOUBLE, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[0]);
        done = 0;
        pthread_create(&thread, 0, work, &how_long);
        MPI_Isend(sent, MANY, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
        while (!done) {
            poke(round % KINDS, requests);
            if (round % 3 == 2) poke((round + 5) % KINDS, requests);
            usleep(100);
        }
        pthread_join(thread, 0);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int at = 0; at < MANY; at++) sum += came[at];
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0) printf("round %d: %.0f\n", round, all), fflush(stdout);
    }
    /* Each of these is asked for until it is there, and all find that at once: what comes of how
     * often that was is sent. */
    for (int round = 0; round < n_rounds; round++) {
        MPI_Request request;
        double counted = 0, most;
        int is_there = 0;
        MPI_Irecv(came, MANY, MPI_DOUBLE, (rank + 1) % size, 2, MPI_COMM_WORLD, &request);
        usleep(200 * (rank + round % 3));
        MPI_Send(sent, MANY, MPI_DOUBLE, (rank + size - 1) % size, 2, MPI_COMM_WORLD);
        for (; !is_there; counted++) MPI_Test(&request, &is_there, MPI_STATUS_IGNORE);
        MPI_Isend(sent, 1, MPI_DOUBLE, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &request);
        for (is_there = 0; !is_there; counted++)
            MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
        MPI_Recv(came, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&counted, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    MPI_Comm comms[2] = {MPI_COMM_WORLD};
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    for (int round = 0; round < n_rounds; round++) {
        sum += exchange(round, rank, size) + 1e12 * find_none(comms, round, rank, size);
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Comm_free(&comms[1]);
    if (rank == 0) printf("the sum is %.0f\n", all);
    MPI_Finalize();
    return 0;
}
