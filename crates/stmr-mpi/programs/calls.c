/* One process that sends to itself, so often and so many bytes: what a call takes, and each byte of it, can be counted.
   usage: calls N BYTES, on 1 process */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int bytes = atoi(argv[2]);
    char *out = calloc(bytes, 1), *in = calloc(bytes, 1);
    for (int i = 0; i < atoi(argv[1]); i++) {
        out[i % bytes]++;
        MPI_Sendrecv(out, bytes, MPI_BYTE, 0, 1, in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    printf("%d\n", in[0]);
    MPI_Finalize();
    return 0;
}
