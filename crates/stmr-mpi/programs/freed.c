/* What the program lets go of while it is needed still, and what is called for it at the end. */
#include <mpi.h>
#include <stdio.h>

#include "want.h"

static int forget(MPI_Comm comm, int key, void *value, void *more) {
    int is_over;
    MPI_Finalized(&is_over);
    printf("forgotten %ld %d\n", (long)value, is_over);
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    int rank, size, key, other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* A communicator whose messages are under way (MPI 4.1 §7.4.3). */
    for (int round = 0; round < 5; round++) {
        MPI_Comm comm;
        MPI_Request all[2];
        MPI_Status states[2];
        int in = -1, out = rank + round;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &all[0]);
        MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 7, comm, &all[1]);
        MPI_Comm_free(&comm);
        WANT(comm == MPI_COMM_NULL);
        MPI_Waitall(2, all, states);
        WANT(in == (rank + size - 1) % size + round && states[0].MPI_TAG == 7);
    }
    /* The delete functions of MPI_COMM_SELF are called at the end, the last first (MPI 4.1 §11.2.4). */
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &other, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, (void *)(long)(10 + rank));
    MPI_Comm_set_attr(MPI_COMM_SELF, other, (void *)(long)(20 + rank));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    MPI_Finalize();
    return 0;
}
