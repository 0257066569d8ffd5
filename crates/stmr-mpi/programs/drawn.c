/* Collectives, lengths, operations and communicators as a seed draws them; sums of all bytes that
   each process got.
   usage: drawn SEED STEPS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 20000
#define MOST 16

static unsigned long seed, hash = 1469598103934665603UL;
static double own[N], got[N * MOST];
static float own_short[N], got_short[N];
static int own_whole[N], got_whole[N];

static int below(int n) {
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return (seed >> 33) % n;
}

static void add(const void *at, size_t n) {
    for (size_t i = 0; i < n; i++) hash = (hash ^ ((const unsigned char *)at)[i]) * 1099511628211UL;
}

static void mixed(void *in, void *out, int *n, MPI_Datatype *type) {
    for (int i = 0; i < *n; i++) ((double *)out)[i] = 0.75 * ((double *)in)[i] + 1.0000001 * ((double *)out)[i];
}

static void fill(int n, int rank, int step) {
    for (int i = 0; i < n; i++) {
        unsigned long it = (i * 64UL + rank * 7 + step * 1315423911UL + 1) * 0x9e3779b97f4a7c15UL;
        own_whole[i] = (it ^ it >> 29) % 1000003;
        own[i] = own_short[i] = own_whole[i] / 1000003.0 - 0.3;
    }
}

struct step {
    int what, n, root;
    MPI_Op op;
};

static void make(struct step it, MPI_Comm comm) {
    int rank, size, counts[MOST], n = it.n;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int root = it.root % size, each = n / size, is_root = rank == root;
    for (int i = 0; i < size; i++) counts[i] = each + (i == 0 ? n % size : 0);
    memset(got, 0, sizeof(double) * size * (n + 1));
    MPI_Op op = it.op;
    switch (it.what) {
    case 0: MPI_Barrier(comm); break;
    case 1: MPI_Bcast(is_root ? own : got, n, MPI_DOUBLE, root, comm); break;
    case 2: MPI_Allreduce(own, got, n, MPI_DOUBLE, op, comm); break;
    case 3: MPI_Reduce(own, got, n, MPI_DOUBLE, op, root, comm); break;
    case 4: MPI_Allreduce(own_short, got_short, n, MPI_FLOAT, MPI_SUM, comm), add(got_short, 4 * n); break;
    case 5: MPI_Reduce(own_short, got_short, n, MPI_FLOAT, MPI_SUM, root, comm), add(got_short, is_root ? 4 * n : 0); break;
    case 6: MPI_Allreduce(own_whole, got_whole, n, MPI_INT, MPI_SUM, comm), add(got_whole, 4 * n); break;
    case 7: MPI_Reduce(own_whole, got_whole, n, MPI_INT, MPI_MAX, root, comm), add(got_whole, is_root ? 4 * n : 0); break;
    case 8: MPI_Scan(own, got, n, MPI_DOUBLE, op, comm); break;
    case 9: MPI_Exscan(own, got, n, MPI_DOUBLE, op, comm), memset(got, 0, rank ? 0 : sizeof(double) * n); break;
    case 10: MPI_Reduce_scatter(own, got, counts, MPI_DOUBLE, op, comm); break;
    case 11: MPI_Reduce_scatter_block(own, got, each, MPI_DOUBLE, op, comm); break;
    case 12: MPI_Allgather(own, n, MPI_DOUBLE, got, n, MPI_DOUBLE, comm); break;
    case 13: MPI_Alltoall(own, each, MPI_DOUBLE, got, each, MPI_DOUBLE, comm); break;
    case 14: memcpy(got, own, sizeof(double) * n), MPI_Allreduce(MPI_IN_PLACE, got, n, MPI_DOUBLE, op, comm); break;
    case 15: MPI_Iallreduce(own, got, n, MPI_DOUBLE, op, comm, &request), MPI_Wait(&request, MPI_STATUS_IGNORE); break;
    case 16: MPI_Ireduce(own, got, n, MPI_DOUBLE, op, root, comm, &request), MPI_Wait(&request, MPI_STATUS_IGNORE); break;
    }
    /* What those who are not the root find there is nobody's. */
    int is_mine = is_root || (it.what != 3 && it.what != 16);
    if (is_mine) add(got, sizeof(double) * size * n);
}

int main(int argc, char **argv) {
    const int lengths[] = {0, 1, 3, 17, 100, 1000, 5000, N};
    int rank, size, steps = argc > 2 ? atoi(argv[2]) : 50, n_comms = 5;
    MPI_Comm comms[5] = {MPI_COMM_WORLD}, made;
    MPI_Op any, ordered;
    seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Op_create(mixed, 1, &any), MPI_Op_create(mixed, 0, &ordered);
    const MPI_Op ops[] = {MPI_SUM, MPI_SUM, MPI_PROD, any, ordered, MPI_MAX};
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, rank, &comms[3]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[4]);
    for (int step = 0; step < steps; step++) {
        MPI_Comm comm = comms[below(n_comms)];
        struct step it = {.what = below(17), .n = lengths[below(8)], .root = below(64)};
        int is_new = below(8) == 0;
        it.op = ops[below(6)];
        fill(it.n, rank, step);
        if (comm == MPI_COMM_NULL) continue;
        if (is_new) MPI_Comm_dup(comm, &made), make(it, made), MPI_Comm_free(&made);
        make(it, comm);
    }
    unsigned long all[MOST];
    MPI_Gather(&hash, 1, MPI_UNSIGNED_LONG, all, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size; i++) printf("rank %d: %lx\n", i, all[i]);
    MPI_Finalize();
    return 0;
}
