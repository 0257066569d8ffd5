/* Goes on from a checkpoint of its own if there is one.  When it has written one, two replicas of a process
 * are gone at a later step, of process 0 just before it prints: the program starts again.  argv[1]: the
 * checkpoint, and where each of the two says that it was there; argv[2]: the process. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STEPS = 12, KEPT = 5, LOST = 8 };

static void end(const char *kept) {
    char name[4096];
    const char *set = getenv("SELVEDGE_SET");
    snprintf(name, sizeof name, "%s.%s", kept, set ? set : "0");
    /* Not through the C library, by which replicas share their files. */
    if (set && *set != '0' && 0 <= syscall(SYS_open, name, O_CREAT | O_EXCL | O_WRONLY, 0600)) raise(SIGKILL);
}

int main(int argc, char **argv) {
    int rank, size, first = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        FILE *was = fopen(argv[1], "r");
        printf("%d processes\n", size);
        if (was && fscanf(was, "%d", &first) == 1) printf("from step %d\n", first);
        if (was) fclose(was);
    }
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int step = first, sum; step < STEPS; step++) {
        int is_lost = step == LOST && rank == atoi(argv[2]);
        if (is_lost && rank != 0) end(argv[1]);
        MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (is_lost && rank == 0) end(argv[1]);
        if (rank == 0) printf("step %d: %d\n", step, sum), fflush(stdout);
        if (rank == 0 && step + 1 == KEPT) {
            FILE *out = fopen(argv[1], "w");
            fprintf(out, "%d\n", KEPT);
            fclose(out);
        }
    }
    if (rank == 0) printf("end\n");
    MPI_Finalize();
    return 0;
}
