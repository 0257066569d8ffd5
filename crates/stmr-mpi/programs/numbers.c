/* What a process finds of its number and of the job's size before MPI_Init and after: its own, and
 * not those of replicas.  Programs choose their accelerator by them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int number(const char *const names[]) {
    for (; *names; names++)
        if (getenv(*names)) return atoi(getenv(*names));
    return -1;
}

/* What the launcher has told MPI about the job. */
static void tell_info(void) {
    const char *const keys[] = {"command", "argv", "maxprocs", "soft", "ompi_np"};
    char value[1024];
    for (int i = 0; i < 5; i++) {
        int found;
        MPI_Info_get(MPI_INFO_ENV, keys[i], sizeof value - 1, value, &found);
        printf("%s: %s\n", keys[i], found ? value : "not there");
    }
    int *universe, is_known;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &is_known);
    printf("its universe is %s\n", is_known ? "known" : "unknown");
}

int main(int argc, char **argv) {
    const char *const ranks[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_RANK", 0};
    const char *const sizes[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_SIZE", 0};
    const char *const others[] = {"OMPI_WORLD_SIZE", 0};
    const char *const parts[] = {"OMPI_APP_CTX_NUM_PROCS", "SLURM_STEP_NUM_TASKS", 0};
    int own[6] = {number(ranks), number(sizes), number(others)}, sums[6], rank;
    MPI_Init(&argc, &argv);
    own[3] = number(ranks);
    own[4] = number(sizes);
    own[5] = number(parts);
    MPI_Allreduce(own, sums, 6, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d: %d of %d, %d, %d of %d; %d %d %d %d %d; parts of %d\n", rank, own[0], own[1], own[2], own[3],
           own[4], sums[0], sums[1], sums[2], sums[3], sums[4], own[5]);
    if (rank == 0) tell_info();
    MPI_Finalize();
    return 0;
}
