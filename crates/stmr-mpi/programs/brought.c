/* What an MPI may bring along: a library that looks at clocks and at the number of its process when it
   is loaded, another number of times in each process, as UCX does to learn how fast the processor
   counts.  With -DLIBRARY this is that library, else a program that looks at the clock as well, before
   and after MPI_Init.  Prints how the library was answered. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef LIBRARY
int brought_is_true;

__attribute__((constructor)) static void look(void) {
    struct timeval now;
    long own = syscall(SYS_getpid);
    brought_is_true = getpid() == own;
    for (long i = 0; i < own % 97; i++) gettimeofday(&now, NULL);
}
#else
#include <mpi.h>

extern int brought_is_true;
static struct timeval loaded;

__attribute__((constructor)) static void look(void) { gettimeofday(&loaded, NULL); }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct timeval now;
    gettimeofday(&now, NULL);
    /* Replicas whose clocks differ would send different sums. */
    double own = rank + loaded.tv_usec + 1e-6 * now.tv_usec + getpid(), sum;
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    int all;
    MPI_Reduce(&brought_is_true, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("the library was answered %s\n", all ? "truly" : "as the program is");
    MPI_Finalize();
    return 0;
}
#endif
