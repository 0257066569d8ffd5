/* Handles that the program has had made are alike in all replicas, also where MPI takes memory for
 * messages between them, and where others have been freed: all are sent as they are. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "want.h"

#define KEPT 16

static int rank;

static void add(void *from, void *to, int *n, MPI_Datatype *type) {}

static void send(void *handle, size_t size) {
    char copy[16] = {0};
    memcpy(copy, handle, size);
    MPI_Bcast(copy, sizeof copy, MPI_BYTE, 0, MPI_COMM_SELF);
}

#define SEND(it) send(&it, sizeof it)

static void exchange(MPI_Comm comm, int length) {
    static char row[50000];
    MPI_Request request;
    MPI_Isend(row, length, MPI_BYTE, rank ^ 1, 1, comm, &request);
    if (length % 3) usleep(100 * (length % 7));
    MPI_Recv(row + 25000, length, MPI_BYTE, rank ^ 1, 1, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int n = atoi(argv[1]);
    MPI_Comm comms[KEPT];
    MPI_Datatype types[KEPT];
    MPI_Group all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int i = 0; i < n; i++) {
        MPI_Comm *comm = &comms[i % KEPT];
        MPI_Datatype *type = &types[i % KEPT];
        MPI_Group group;
        MPI_Info info;
        MPI_Op op;
        if (KEPT <= i) MPI_Comm_free(comm);
        if (KEPT <= i) MPI_Type_free(type);
        if (i % 2) MPI_Comm_split(MPI_COMM_WORLD, 0, rank, comm);
        else MPI_Comm_dup(MPI_COMM_WORLD, comm);
        exchange(*comm, 1 + i * 997 % 20000);
        MPI_Type_vector(3 + i, 1, 2, MPI_INT, type);
        MPI_Group_incl(all, 1, &rank, &group);
        MPI_Info_create(&info);
        MPI_Op_create(add, 1, &op);
        SEND(*comm);
        SEND(*type);
        SEND(group);
        SEND(info);
        SEND(op);
        MPI_Group_free(&group);
        MPI_Info_free(&info);
        MPI_Op_free(&op);
    }
    MPI_Group_free(&all);
    printf("rank %d: done\n", rank);
    MPI_Finalize();
    return 0;
}
