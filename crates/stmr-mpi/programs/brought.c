/* What an MPI may bring along: a library that looks at clocks and at the number of its process when it
   is loaded, another number of times in each process, as UCX does to learn how fast the processor
   counts, and that starts a thread, which asks for that number when MPI runs.  With -DLIBRARY this is
   that library, else a program that looks at the clock as well, before and after MPI_Init.  Prints how
   the library was answered. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef LIBRARY
int brought_is_true;
static pthread_t thread;
static int turn[2];

static void *work(void *nothing) {
    char byte;
    if (read(turn[0], &byte, 1) != 1 || getpid() != syscall(SYS_getpid)) brought_is_true = 0;
    return nothing;
}

void brought_end(void) {
    if (write(turn[1], "", 1) != 1 || pthread_join(thread, NULL)) brought_is_true = 0;
}

__attribute__((constructor)) static void look(void) {
    struct timeval now;
    long own = syscall(SYS_getpid);
    brought_is_true = getpid() == own && !pipe(turn) && !pthread_create(&thread, NULL, work, NULL);
    for (long i = 0; i < own % 97; i++) gettimeofday(&now, NULL);
}
#else
#include <mpi.h>

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
    /* It is linked with what the library is brought by alone. */
    ((void (*)(void))dlsym(RTLD_DEFAULT, "brought_end"))();
    int all;
    MPI_Reduce(dlsym(RTLD_DEFAULT, "brought_is_true"), &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("the library was answered %s\n", all ? "truly" : "as the program is");
    MPI_Finalize();
    return 0;
}
#endif
