/* A library that counts a program's calls through MPI's profiling interface, one of them by the
 * loader's next, and a program to be counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 50 };

#ifdef SECOND
/* Stands behind the other library, which comes to it by the loader's next. */
int MPI_Recv(void *to, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *s) {
    static int n_receives, rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (++n_receives == ROUNDS && !rank) printf("the second hears of %d\n", n_receives);
    return PMPI_Recv(to, n, type, from, tag, comm, s);
}
#elif defined LIBRARY
static int n_sends, n_sums, n_receives;

int MPI_Send(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    n_sends++;
    return PMPI_Send(from, n, type, to, tag, comm);
}

int MPI_Allreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    n_sums++;
    return PMPI_Allreduce(from, to, n, type, op, comm);
}

typedef int receive(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

int MPI_Recv(void *to, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *s) {
    static receive *next;
    if (!next) next = (receive *)dlsym(RTLD_NEXT, "MPI_Recv");
    n_receives++;
    return next(to, n, type, from, tag, comm, s);
}

int MPI_Finalize(void) {
    int counts[3] = {n_sends, n_sums, n_receives}, all[3], rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(counts, all, 3, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank) printf("%d sends, %d sums, %d receives\n", all[0], all[1], all[2]);
    return PMPI_Finalize();
}
#else
int main(int argc, char **argv) {
    int rank, n, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int round = 0; round < ROUNDS; round++) {
        int to = (rank + 1) % n, from = (rank + n - 1) % n, mine = rank + round + sum % 7, got;
        MPI_Send(&mine, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
        MPI_Recv(&got, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&got, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (!rank) printf("comes to %d\n", sum);
    MPI_Finalize();
    return 0;
}
#endif
