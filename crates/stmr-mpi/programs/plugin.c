/* Loads itself as a library whose constructor and destructor call MPI.
   usage: plugin LIBRARY [deep] */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#ifdef LIBRARY
static MPI_Comm own;

__attribute__((constructor)) static void begin(void) { MPI_Comm_dup(MPI_COMM_WORLD, &own); }

__attribute__((destructor)) static void end(void) { MPI_Comm_free(&own); }

int add(int mine) {
    int sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, own);
    return sum;
}
#else
int main(int argc, char **argv) {
    int rank, deep = argc == 3 && !strcmp(argv[2], "deep") ? RTLD_DEEPBIND : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | deep);
        if (!library) return 1;
        int (*add)(int) = (int (*)(int))dlsym(library, "add");
        int sum = add(rank + round);
        if (!rank) printf("adds to %d\n", sum);
        dlclose(library);
    }
    MPI_Finalize();
    return 0;
}
#endif
