/* A program that loads libraries when it has begun, which lie beside it: one that never reads the
 * cycle counter, and one that does, after so many calls of MPI that the trap would be given up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "want.h"

static int rank;

static void *load(const char *name, int way) {
    void *library = way ? dlmopen(LM_ID_BASE, name, RTLD_NOW) : dlopen(name, RTLD_NOW);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    WANT(library);
    return library;
}

static void count(void *library) {
    unsigned long long (*count)(void) = dlsym(library, "count");
    unsigned long long *begun = dlsym(library, "begun");
    WANT(count && begun);
    unsigned long long counts[] = {*begun, count(), count()};
    WANT(counts[0] <= counts[1] && counts[1] <= counts[2]);
    MPI_Bcast(counts, sizeof counts, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* What a library that reads no counter leaves as it was. */
static void quiet(int way) {
    struct sigaction before, after;
    int traps = 0;
    WANT(sigaction(SIGSEGV, 0, &before) == 0);
    count(load("libquiet.so", way));
    WANT(sigaction(SIGSEGV, 0, &after) == 0 && after.sa_handler == before.sa_handler);
    WANT(prctl(PR_GET_TSC, &traps) == 0 && traps == PR_TSC_ENABLE);
}

int main(int argc, char **argv) {
    int n_calls = atoi(argv[1]), way = atoi(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    quiet(way);
    for (int i = 0; i < n_calls; i++) MPI_Barrier(MPI_COMM_SELF);
    WANT(!dlopen("libnone.so", RTLD_NOW));
    count(load("libcounter.so", way));
    printf("rank %d: done\n", rank);
    MPI_Finalize();
    return 0;
}
