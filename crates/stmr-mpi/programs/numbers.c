/* What a process finds of its number in its environment before MPI_Init and after: its own, and not
 * that of a replica.  Programs choose their accelerator by it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int number(const char *const names[]) {
    for (; *names; names++)
        if (getenv(*names)) return atoi(getenv(*names));
    return -1;
}

int main(int argc, char **argv) {
    const char *const ranks[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_RANK", 0};
    const char *const sizes[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_SIZE", 0};
    int own[4] = {number(ranks), number(sizes)}, sums[4], rank;
    MPI_Init(&argc, &argv);
    own[2] = number(ranks);
    own[3] = number(sizes);
    MPI_Allreduce(own, sums, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d: %d of %d, %d of %d; %d %d %d %d\n", rank, own[0], own[1], own[2], own[3], sums[0], sums[1],
           sums[2], sums[3]);
    MPI_Finalize();
    return 0;
}
