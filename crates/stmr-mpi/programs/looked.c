/* A program that asks for MPI's functions by their names, as Python's ctypes and Julia do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const char *names[] = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1"};
static void *library;
/* It is linked with MPI all the same: by that its launcher is known. */
int (*volatile kept)(int *) = MPI_Initialized;

static void *look(const char *name) {
    void *found = dlsym(library, name);
    if (!found) fprintf(stderr, "%s\n", dlerror()), exit(3);
    return found;
}

#define CALL(name) ((__typeof__(&name))look(#name))

int main(int argc, char **argv) {
    for (int i = 0; i < 4 && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    if (!library) fprintf(stderr, "no MPI is loaded\n"), exit(3);
    /* What is not there is not there. */
    if (dlsym(library, "MPI_Never") || !dlerror()) return 4;
    /* And who looks behind itself finds the C library. */
    if (dlsym(RTLD_NEXT, "strtod") != dlsym(RTLD_DEFAULT, "strtod")) return 5;
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 50;
    CALL(MPI_Init)(&argc, &argv);
    CALL(MPI_Comm_rank)(MPI_COMM_WORLD, &rank);
    CALL(PMPI_Comm_size)(MPI_COMM_WORLD, &size);
    long token = rank, got = 0, sum = 0;
    for (int round = 0; round < rounds; round++) {
        MPI_Request request;
        CALL(MPI_Irecv)(&got, 1, MPI_LONG, (rank + size - 1) % size, round, MPI_COMM_WORLD, &request);
        CALL(MPI_Send)(&token, 1, MPI_LONG, (rank + 1) % size, round, MPI_COMM_WORLD);
        CALL(MPI_Wait)(&request, MPI_STATUS_IGNORE);
        token = got * 3 + rank;
        CALL(MPI_Allreduce)(&token, &sum, 1, MPI_LONG, MPI_BXOR, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%d processes, %ld\n", size, sum);
    CALL(MPI_Finalize)();
    return 0;
}
