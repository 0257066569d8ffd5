/* Set 2 is long in MPI_Init, where each set is a job of its own, and a process of set 0 dies as soon
   as it has come through.  To be linked so that the function here is found before hwloc's (-rdynamic);
   what MPI_Init asks there is for it alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int set = -1;

int hwloc_topology_init(void **topology) {
    static int was_late;
    struct timespec late = {.tv_sec = 4};
    if (set == 2 && !was_late++) syscall(SYS_nanosleep, &late, NULL);
    return ((int (*)(void **))dlsym(RTLD_NEXT, "hwloc_topology_init"))(topology);
}

int main(int argc, char **argv) {
    if (getenv("SELVEDGE_SET")) set = atoi(getenv("SELVEDGE_SET"));
    MPI_Init(&argc, &argv);
    int rank, sum;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (set == 0 && rank == 1) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d: %d\n", rank, sum);
    MPI_Finalize();
    return 0;
}
