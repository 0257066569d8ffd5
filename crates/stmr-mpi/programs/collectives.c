/* Every collective, plain and in place, over a world that was duplicated, split and laid out as a
   grid with names and attributes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long hash = 1469598103934665603UL;

static void add(const void *at, size_t n) {
    for (size_t i = 0; i < n; i++) hash = (hash ^ ((const unsigned char *)at)[i]) * 1099511628211UL;
}

#define MOST 64

static void run(MPI_Comm comm, int round) {
    int rank, size, s[MOST], r[MOST], counts[MOST], at[MOST];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    memset(r, 0, sizeof r);
    for (int i = 0; i < MOST; i++) s[i] = rank * 100 + i + round;
    for (int i = 0; i < size; i++) counts[i] = i + 1, at[i] = i * (i + 1) / 2;
    int all = size * (size + 1) / 2, root = round % size;
    MPI_Barrier(comm);
    int word = rank == root ? 42 + round : 0;
    MPI_Bcast(&word, 1, MPI_INT, root, comm);
    add(&word, sizeof word);
    MPI_Reduce(s, r, 8, MPI_INT, MPI_MAX, root, comm);
    if (rank == root) add(r, 8 * sizeof *r);
    MPI_Reduce(rank == root ? MPI_IN_PLACE : s, rank == root ? s : NULL, 4, MPI_INT, MPI_SUM, root, comm);
    MPI_Allreduce(MPI_IN_PLACE, s, 8, MPI_INT, MPI_SUM, comm);
    add(s, 8 * sizeof *s);
    MPI_Gather(s, 3, MPI_INT, r, 3, MPI_INT, root, comm);
    if (rank == root) add(r, 3 * size * sizeof *r);
    MPI_Gatherv(s, rank + 1, MPI_INT, r, counts, at, MPI_INT, root, comm);
    if (rank == root) add(r, all * sizeof *r);
    MPI_Scatter(r, 2, MPI_INT, s, 2, MPI_INT, root, comm);
    add(s, 2 * sizeof *s);
    MPI_Scatterv(r, counts, at, MPI_INT, s, rank + 1, MPI_INT, root, comm);
    add(s, (rank + 1) * sizeof *s);
    MPI_Allgather(s, 1, MPI_INT, r, 1, MPI_INT, comm);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, 1, MPI_INT, comm);
    MPI_Allgatherv(s, rank + 1, MPI_INT, r, counts, at, MPI_INT, comm);
    add(r, all * sizeof *r);
    for (int i = 0; i < size; i++) counts[i] = 1, at[i] = i;
    MPI_Alltoall(r, 1, MPI_INT, s, 1, MPI_INT, comm);
    MPI_Alltoallv(s, counts, at, MPI_INT, r, counts, at, MPI_INT, comm);
    add(r, size * sizeof *r);
    MPI_Reduce_scatter(r, s, counts, MPI_INT, MPI_SUM, comm);
    MPI_Reduce_scatter_block(r, s + 1, 1, MPI_INT, MPI_SUM, comm);
    MPI_Scan(s, r, 2, MPI_INT, MPI_SUM, comm);
    add(r, 2 * sizeof *r);
    MPI_Exscan(s, r, 2, MPI_INT, MPI_SUM, comm);
    if (rank) add(r, 2 * sizeof *r);
    MPI_Request requests[3];
    int sums[2] = {rank, 1}, got[2], box = rank;
    MPI_Iallreduce(sums, got, 2, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Ibcast(&box, 1, MPI_INT, root, comm, &requests[1]);
    MPI_Ibarrier(comm, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    add(got, sizeof got);
    add(&box, sizeof box);
}

static void added(void *in, void *out, int *n, MPI_Datatype *type) {
    for (int i = 0; i < *n; i++) ((int *)out)[2 * i] += ((int *)in)[2 * i];
}

/* Types with holes, which stay as they are; types and operations that are freed before what uses
   them is complete; addresses instead of buffers; in place. */
static void typed(MPI_Comm comm) {
    int rank, size, s[MOST], r[MOST], counts[MOST], at[MOST], offsets[MOST];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < MOST; i++) s[i] = rank * 1000 + i, r[i] = -i, counts[i] = 1, at[i] = size - 1 - i, offsets[i] = 8 * i;
    struct { double value; int place; } best[2] = {{rank % 2, rank}, {-rank, rank}}, won[2], late[2];
    memset(won, 0, sizeof won), memset(late, 0, sizeof late);
    MPI_Allreduce(best, won, 2, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    MPI_Datatype odd, column;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &odd);
    MPI_Type_commit(&odd);
    MPI_Type_vector(3, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Op plus;
    MPI_Op_create(added, 1, &plus);
    MPI_Bcast(rank == 0 ? s : r, 2, column, 0, comm);
    MPI_Reduce(s, r, 3, odd, plus, size - 1, comm);
    MPI_Allgatherv(s, 1, odd, r, counts, at, odd, comm);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, 1, odd, comm);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, r, counts, at, odd, comm);
    MPI_Datatype types[MOST];
    for (int i = 0; i < size; i++) types[i] = i % 2 ? odd : MPI_INT;
    MPI_Alltoallw(s, counts, offsets, types, r, counts, offsets, types, comm);
    add(r, sizeof r);
    MPI_Request requests[4];
    MPI_Iallreduce(best, late, 2, MPI_DOUBLE_INT, MPI_MINLOC, comm, &requests[0]);
    MPI_Irecv(r, 1, column, (rank + 1) % size, 7, comm, &requests[1]);
    MPI_Isend(s + 20, 1, column, (rank + size - 1) % size, 7, comm, &requests[2]);
    MPI_Ialltoall(s + 32, 1, odd, r + 32, 1, odd, comm, &requests[3]);
    MPI_Type_free(&column);
    MPI_Type_free(&odd);
    MPI_Op_free(&plus);
    // Room that was freed is used again.
    for (int i = 0; i < 4; i++) MPI_Type_vector(2, 2, 3 + i, MPI_DOUBLE, &types[i]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 4; i++) MPI_Type_free(&types[i]);
    if (odd != MPI_DATATYPE_NULL || column != MPI_DATATYPE_NULL) MPI_Abort(comm, 3);
    int lengths[2] = {1, 2};
    MPI_Aint places[2];
    MPI_Get_address(&r[3], &places[0]);
    int *far = malloc(MOST * sizeof *far);
    for (int i = 0; i < MOST; i++) far[i] = rank + i;
    MPI_Get_address(&far[5], &places[1]);
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Bcast(MPI_BOTTOM, 1, column, size - 1, comm);
    MPI_Type_free(&column);
    add(r, sizeof r), add(far, MOST * sizeof *far);
    for (int i = 0; i < 2; i++) add(&won[i].value, 8), add(&won[i].place, 4), add(&late[i].value, 8), add(&late[i].place, 4);
    free(far);
}

/* A grid of two columns, one of its rows, and what can be asked of them. */
static void grid(MPI_Comm comm, int round) {
    int size, rank, key, flag, kind, length, dims[2] = {0, 2}, closed[2] = {1, 0}, at[2], low, high;
    static int mark = 5;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm cart, row;
    void *value;
    MPI_Comm_size(comm, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(comm, 2, dims, closed, 0, &cart);
    MPI_Comm_rank(cart, &rank);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(cart, key, &mark);
    MPI_Comm_get_attr(cart, key, &value, &flag);
    if (!flag || value != &mark) MPI_Abort(MPI_COMM_WORLD, 4);
    MPI_Comm_set_name(cart, "grid");
    MPI_Comm_get_name(cart, name, &length);
    MPI_Topo_test(cart, &kind);
    if (length != 4 || strcmp(name, "grid") || kind != MPI_CART) MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Cart_coords(cart, rank, 2, at);
    MPI_Cart_rank(cart, at, &flag);
    if (flag != rank) MPI_Abort(MPI_COMM_WORLD, 6);
    MPI_Cart_get(cart, 2, dims, closed, at);
    for (int along = 0; along < 2; along++) {
        MPI_Cart_shift(cart, along, 1, &low, &high);
        int word = rank * 10 + round, got = -1;
        MPI_Sendrecv(&word, 1, MPI_INT, high, along, &got, 1, MPI_INT, low, along, cart, MPI_STATUS_IGNORE);
        add(&got, sizeof got), add(&low, sizeof low), add(&high, sizeof high);
    }
    int around[4] = {-1, -1, -1, -1}, given[4], one[4] = {1, 1, 1, 1}, where[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++) given[i] = rank * 100 + i + round;
    MPI_Neighbor_allgather(given, 1, MPI_INT, around, 1, MPI_INT, cart);
    add(around, sizeof around);
    MPI_Neighbor_alltoallv(given, one, where, MPI_INT, around, one, where, MPI_INT, cart);
    add(around, sizeof around);
    MPI_Request request;
    MPI_Status status;
    MPI_Ineighbor_alltoall(given, 1, MPI_INT, around, 1, MPI_INT, cart, &request);
    for (flag = 0; !flag;) MPI_Request_get_status(request, &flag, &status);
    MPI_Wait(&request, &status);
    add(around, sizeof around);
    MPI_Cart_sub(cart, (int[2]){0, 1}, &row);
    run(row, round);
    MPI_Comm_compare(row, cart, &flag);
    add(at, sizeof at), add(dims, sizeof dims), add(&flag, sizeof flag);
    MPI_Comm_delete_attr(cart, key);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free(&row);
    MPI_Comm_free(&cart);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 5, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < rounds; round++) {
        MPI_Comm copy, half;
        run(MPI_COMM_WORLD, round);
        typed(MPI_COMM_WORLD);
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        run(copy, round);
        MPI_Comm_split(copy, rank % 2, -rank, &half);
        run(half, round);
        grid(copy, round);
        MPI_Comm_free(&half);
        MPI_Comm_free(&copy);
    }
    unsigned long sum;
    MPI_Reduce(&hash, &sum, 1, MPI_UNSIGNED_LONG, MPI_BXOR, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("collectives: %lx\n", sum);
    MPI_Finalize();
    return 0;
}
