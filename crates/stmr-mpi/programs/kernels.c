/* Kernels with the patterns of real programs, each checked by sums that all bytes go into: halos of a
   grid with a reduction, an irregular exchange with dot products, a transpose, sorted keys, and many
   small messages down a pipeline.
   usage: kernels [rounds] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 96
#define MOST 16

/* What a flip is aimed at. */
double data[N + 2][N + 2];
static double next[N + 2][N + 2];
static int rank, size;

static double halos(int round) {
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    MPI_Request requests[4];
    MPI_Irecv(data[0], N + 2, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(data[N + 1], N + 2, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(data[1], N + 2, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(data[N], N + 2, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    double change = 0, all;
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++) {
            next[i][j] = 0.25 * (data[i - 1][j] + data[i + 1][j] + data[i][j - 1] + data[i][j + 1]);
            change += next[i][j] * (1 + (i * j + round) % 7);
        }
    for (int i = 1; i <= N; i++) memcpy(&data[i][1], &next[i][1], N * sizeof(double));
    MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static double irregular(int round) {
    double sum = 0, all, own[MOST], got[MOST][MOST] = {{0}};
    MPI_Request requests[2 * MOST];
    int n = 0;
    for (int i = 0; i < MOST; i++) own[i] = data[1 + i][1 + (i + round) % N];
    for (int peer = 0; peer < size; peer++)
        if ((peer + rank + round) % 3) MPI_Irecv(got[peer], MOST, MPI_DOUBLE, peer, 3, MPI_COMM_WORLD, &requests[n++]);
    for (int peer = 0; peer < size; peer++)
        if ((peer + rank + round) % 3) MPI_Isend(own, 1 + (rank + peer) % MOST, MPI_DOUBLE, peer, 3, MPI_COMM_WORLD, &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < size; peer++)
        for (int i = 0; i < MOST; i++) sum += got[peer][i] * own[i];
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static double transpose(void) {
    int n = N / size;
    static double out[N * N], in[N * N];
    for (int i = 0; i < n * N; i++) out[i] = data[1 + i / N % N][1 + i % N];
    MPI_Alltoall(out, n * n, MPI_DOUBLE, in, n * n, MPI_DOUBLE, MPI_COMM_WORLD);
    double sum = 0;
    for (int i = 0; i < n * n * size; i++) sum += in[i] * (i % 11);
    return sum;
}

static int by_value(const void *a, const void *b) {
    return (*(int *)a > *(int *)b) - (*(int *)a < *(int *)b);
}

static double keys(int round) {
    static int own[4096], got[4096 * MOST];
    int counts[MOST] = {0}, at[MOST], from[MOST], to[MOST], n = 1024, all = 0;
    unsigned seed = rank * 7919 + round;
    for (int i = 0; i < n; i++) seed = seed * 1103515245 + 12345, own[i] = seed >> 8 & 0xffff;
    qsort(own, n, sizeof *own, by_value);
    for (int i = 0; i < n; i++) counts[own[i] * size >> 16]++;
    MPI_Alltoall(counts, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0, sum = 0; i < size; sum += counts[i++]) at[i] = sum;
    for (int i = 0; i < size; all += from[i++]) to[i] = all;
    MPI_Alltoallv(own, counts, at, MPI_INT, got, from, to, MPI_INT, MPI_COMM_WORLD);
    qsort(got, all, sizeof *got, by_value);
    double sum = 0;
    for (int i = 0; i < all; i++) sum += (double)got[i] * (i % 13);
    return sum;
}

static double pipeline(void) {
    double row[5] = {rank, 1, 2, 3, 4};
    for (int i = 0; i < 10; i++) {
        if (rank) MPI_Recv(row, 5, MPI_DOUBLE, rank - 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int k = 0; k < 5; k++) row[k] = row[k] * 0.5 + data[1 + i][1 + k];
        if (rank + 1 < size) MPI_Send(row, 5, MPI_DOUBLE, rank + 1, 4, MPI_COMM_WORLD);
    }
    return row[0] + row[4];
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < N + 2; i++)
        for (int j = 0; j < N + 2; j++) data[i][j] = ((rank * N + i) * 31 + j * 17) % 101;
    double total = 0;
    for (int round = 0; round < rounds; round++) {
        total += halos(round) + irregular(round) + pipeline();
        if (round % 4 == 0) total += transpose() + keys(round);
    }
    for (int i = 0; i < N + 2; i++)
        for (int j = 0; j < N + 2; j++) total += data[i][j] * (1 + (i + j) % 5);
    /* One process prints all lines, so that they come in one order. */
    double totals[MOST];
    MPI_Gather(&total, 1, MPI_DOUBLE, totals, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; !rank && i < size; i++) printf("kernels: rank %d: %.17g\n", i, totals[i]);
    MPI_Finalize();
    return 0;
}
