/* Sums what it reads.  When that is done for the first time, two replicas of process 1 are gone: the
 * program starts again, and reads all of it again.  argv[1]: where each says that it was there. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    long sum = 0, one;
    int rank;
    char name[4096];
    const char *set = getenv("SELVEDGE_SET");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        while (scanf("%ld", &one) == 1) sum += one;
    MPI_Bcast(&sum, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "%s.%s", argv[1], set ? set : "0");
    /* Not through the C library, by which replicas share their files. */
    if (rank == 1 && set && *set != '0' && 0 <= syscall(SYS_open, name, O_CREAT | O_EXCL | O_WRONLY, 0600))
        raise(SIGKILL);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d: %ld\n", rank, sum);
    MPI_Finalize();
    return 0;
}
