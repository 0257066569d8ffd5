/* Graphs of processes: edges that anybody names, with weights and without; who are neighbours, and
   what goes between them; copies of such communicators, also in rounds after one has died.
   usage: graphs [rounds] */
#include <stdlib.h>

#include "want.h"

enum { MOST = 64 };

static int rank, size;

/* Edges of round k: each process names some of all, which start and end anywhere. */
static int edge_of(int k, int who, int n, int *from, int *to) {
    *from = (who * 3 + n * 5 + k) % size;
    *to = (who + n * n + 2 * k + 1) % size;
    return 1 + (who + n + k) % 7;
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Gives each neighbour something of its own, in the order in which MPI has them. */
static long exchange(MPI_Comm graph, int k) {
    int n_in, n_out, weighted, in[MOST], out[MOST], weights_in[MOST], weights_out[MOST], kind;
    int given[MOST], got[MOST];
    MPI_Topo_test(graph, &kind);
    WANT(kind == MPI_DIST_GRAPH);
    MPI_Dist_graph_neighbors_count(graph, &n_in, &n_out, &weighted);
    WANT(n_in <= MOST && n_out <= MOST);
    MPI_Dist_graph_neighbors(graph, n_in, in, weighted ? weights_in : MPI_UNWEIGHTED, n_out, out,
                             weighted ? weights_out : MPI_UNWEIGHTED);
    for (int i = 0; i < n_out; i++) given[i] = 10000 * k + 100 * rank + out[i];
    MPI_Neighbor_alltoall(given, 1, MPI_INT, got, 1, MPI_INT, graph);
    long sum = 0;
    for (int i = 0; i < n_in; i++) {
        WANT(got[i] == 10000 * k + 100 * in[i] + rank);
        sum += got[i] * (weighted ? weights_in[i] : 1L);
    }
    /* Where they are told in that order, they are to be told in one order. */
    MPI_Sendrecv(in, n_in, MPI_INT, rank, 1, got, MOST, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    qsort(in, n_in, sizeof *in, compare);
    for (int i = 0; i < n_in; i++) sum = sum * 31 % 1000003 + in[i];
    return sum;
}

static long named_by_all(int k, int is_weighted) {
    int n = 1 + (rank + k) % 4, from[MOST], degrees[MOST], to[MOST], weights[MOST];
    for (int i = 0; i < n; i++) {
        degrees[i] = 1;
        weights[i] = edge_of(k, rank, i, &from[i], &to[i]);
    }
    MPI_Comm graph, copy;
    /* Plain, Open MPI 4.1.4 takes edges of who comes here early for those of the graph before. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Dist_graph_create(MPI_COMM_WORLD, n, from, degrees, to, is_weighted ? weights : MPI_UNWEIGHTED, MPI_INFO_NULL,
                          0, &graph);
    long sum = exchange(graph, k);
    MPI_Comm_dup(graph, &copy);
    MPI_Comm_free(&graph);
    sum += exchange(copy, k + 1);
    MPI_Comm_free(&copy);
    return sum;
}

/* A ring with a chord, that all know. */
static long known_to_all(int k) {
    int ends[MOST], all[2 * MOST], n = 0, n_nodes, n_edges, own, near[MOST];
    for (int i = 0; i < size; i++) {
        all[n++] = (i + 1) % size;
        all[n++] = (i + size - 1) % size;
        ends[i] = n;
    }
    MPI_Comm graph, copy;
    MPI_Graph_create(MPI_COMM_WORLD, size, ends, all, 0, &graph);
    MPI_Comm_dup(graph, &copy);
    MPI_Comm_free(&graph);
    MPI_Graphdims_get(copy, &n_nodes, &n_edges);
    WANT(n_nodes == size && n_edges == n);
    MPI_Graph_get(copy, size, n, near, all);
    WANT(near[size - 1] == n && all[0] == 1 % size);
    MPI_Graph_neighbors_count(copy, rank, &own);
    MPI_Graph_neighbors(copy, rank, own, near);
    int given = 7 * k + rank, got[MOST];
    MPI_Neighbor_allgather(&given, 1, MPI_INT, got, 1, MPI_INT, copy);
    long sum = 0;
    for (int i = 0; i < own; i++) {
        WANT(got[i] == 7 * k + near[i]);
        sum += (i + 1) * got[i];
    }
    MPI_Comm_free(&copy);
    return sum;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    for (int k = 0; k < rounds; k++) {
        long own = named_by_all(k, k % 2) + known_to_all(k), all;
        MPI_Reduce(&own, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("round %d: %ld\n", k, all);
        if (rank == 0) fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
