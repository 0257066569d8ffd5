/* A process of set 2 ends before MPI_Init, the first time it is started.
   usage: unbegun SIGN [FILE]; the file SIGN is made then, and FILE is opened to write before the end */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int strays(const char *sign) {
    const char *set = getenv("SELVEDGE_SET"), *rank = getenv("SELVEDGE_RANK");
    if (!set || strcmp(set, "2") || strcmp(rank, "1")) return 0;
    /* By the system's own call: replicas share what they open. */
    return 0 <= syscall(SYS_openat, AT_FDCWD, sign, O_CREAT | O_EXCL | O_WRONLY, 0600);
}

int main(int argc, char **argv) {
    if (strays(argv[1])) {
        if (2 < argc) fclose(fopen(argv[2], "w"));
        exit(3);
    }
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d\n", rank);
    MPI_Finalize();
    return 0;
}
