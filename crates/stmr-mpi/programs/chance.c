/* All that differs between replicas unless something is done about it: who comes first, clocks,
   random numbers, names, numbers of processes, cores, what is left of a wait; and what types with
   holes hold. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#else
#define __rdtsc() 0
#define __rdtscp(it) 0
#endif

int main(int argc, char **argv) {
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 20;
    int early = getpid(), parent = getppid();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct { double time; unsigned noise; long usec; int pid, parent, core; cpu_set_t cores; char rank[8], host[64]; unsigned long cycles, device; struct timeval left; char kernels[16], names[4][32]; } row;
    unsigned long mixed = 0;
    /* As many looks at clocks as Python has while it imports: none is a call of MPI. */
    for (int look = 0; look < 3000; look++) time(NULL), clock();
    for (int round = 0; round < rounds; round++) {
        memset(&row, 0, sizeof row);
        struct timeval now;
        struct rusage used;
        struct timespec fine;
        gettimeofday(&now, NULL);
        clock_gettime(CLOCK_MONOTONIC, &fine);
        struct ntptimeval kept;
        struct timex steered = {0};
        if (ntp_gettime(&kept) < 0 || adjtimex(&steered) < 0) MPI_Abort(MPI_COMM_WORLD, 11);
        getrusage(RUSAGE_SELF, &used);
        row.time = MPI_Wtime() + fine.tv_nsec + clock();
        if (getrandom(&row.noise, sizeof row.noise, 0) != sizeof row.noise) MPI_Abort(MPI_COMM_WORLD, 2);
        row.usec = 0;
        row.pid = getpid();
        if (row.pid != early) MPI_Abort(MPI_COMM_WORLD, 4);
        row.parent = getppid();
        if (row.parent != parent) MPI_Abort(MPI_COMM_WORLD, 9);
        row.core = sched_getcpu();
        if (sched_getaffinity(0, sizeof row.cores, &row.cores)) MPI_Abort(MPI_COMM_WORLD, 10);
        struct utsname name;
        FILE *device = fopen("/dev/urandom", "rb"), *load = fopen("/proc/self/stat", "r");
        if (!device || fread(&row.device, sizeof row.device, 1, device) != 1) MPI_Abort(MPI_COMM_WORLD, 5);
        if (!load || fscanf(load, "%ld", &row.usec) != 1) MPI_Abort(MPI_COMM_WORLD, 6);
        row.usec += now.tv_usec + used.ru_maxrss + time(NULL) + kept.time.tv_usec + steered.time.tv_usec;
        fclose(device);
        fclose(load);
        if (uname(&name) || gethostname(row.host, sizeof row.host) || strcmp(row.host, name.nodename)) MPI_Abort(MPI_COMM_WORLD, 7);
        row.cycles = __rdtsc();
        row.left.tv_sec = 1;
        int pair[2];
        fd_set ready;
        FD_ZERO(&ready);
        if (pipe(pair) || write(pair[1], "x", 1) != 1) MPI_Abort(MPI_COMM_WORLD, 11);
        FD_SET(pair[0], &ready);
        if (select(pair[0] + 1, &ready, NULL, NULL, &row.left) != 1) MPI_Abort(MPI_COMM_WORLD, 12);
        close(pair[0]);
        close(pair[1]);
        memcpy(row.kernels, (void *)getauxval(AT_RANDOM), sizeof row.kernels);
        strcpy(row.names[0], "/tmp/XXXXXX");
        char *drawn = tempnam("/tmp", "abcdefg");
        if (!drawn || strlen(drawn) != 16) MPI_Abort(MPI_COMM_WORLD, 13);
        strcpy(row.names[1], drawn);
        free(drawn);
        if (!*mktemp(row.names[0]) || !tmpnam(row.names[2])) MPI_Abort(MPI_COMM_WORLD, 14);
        strcpy(row.names[3], tmpnam(NULL));
        if (!strcmp(row.names[2], row.names[3])) MPI_Abort(MPI_COMM_WORLD, 15);
        unsigned processor;
        row.cycles += __rdtscp(&processor);
        strncpy(row.rank, getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : "?", 7);
        if (rank) {
            MPI_Send(&row, sizeof row, MPI_BYTE, 0, round % 3, MPI_COMM_WORLD);
            int order;
            MPI_Recv(&order, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            mixed = mixed * 31 + order;
        } else {
            MPI_Request requests[64];
            int sources[64];
            for (int i = 1; i < size; i++) {
                MPI_Status status;
                if (round % 2) {
                    int flag = 0;
                    while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, round % 3, MPI_COMM_WORLD, &flag, &status);
                    MPI_Recv(&row, sizeof row, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
                } else {
                    MPI_Recv(&row, sizeof row, MPI_BYTE, MPI_ANY_SOURCE, round % 3, MPI_COMM_WORLD, &status);
                }
                int count;
                MPI_Get_count(&status, MPI_BYTE, &count);
                if (count != sizeof row) MPI_Abort(MPI_COMM_WORLD, 3);
                sources[i] = status.MPI_SOURCE;
                mixed = mixed * 31 + status.MPI_SOURCE + row.noise;
                MPI_Isend(&sources[i], 1, MPI_INT, status.MPI_SOURCE, 5, MPI_COMM_WORLD, &requests[i - 1]);
            }
            for (int left = size - 1; left; left--) {
                int idx, flag = 0;
                if (left % 2) MPI_Waitany(size - 1, requests, &idx, MPI_STATUS_IGNORE);
                else while (!flag) MPI_Testany(size - 1, requests, &idx, &flag, MPI_STATUS_IGNORE);
                mixed = mixed * 7 + idx;
            }
        }
    }
    /* A column of a matrix: a type with holes. */
    if (system("exit 3") != 3 << 8) MPI_Abort(MPI_COMM_WORLD, 8);
    double matrix[8][8], column[8];
    for (int i = 0; i < 64; i++) matrix[i / 8][i % 8] = rank * 64 + i;
    MPI_Datatype type;
    MPI_Type_vector(8, 1, 8, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv(&matrix[0][3], 1, type, (rank + 1) % size, 11, &matrix[0][5], 1, type,
                 (rank + size - 1) % size, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&matrix[0][5], 1, type, (rank + 1) % size, 12, column, 8, MPI_DOUBLE,
                 (rank + size - 1) % size, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    unsigned long all;
    MPI_Reduce(&mixed, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("mixed %d\n", all != 0);
    printf("rank %d: column %g %g\n", rank, column[0], column[7]);
    MPI_Finalize();
    return 0;
}
