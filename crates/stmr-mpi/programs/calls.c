/* One process that sends to itself, so often: what a call takes can be counted.
   usage: calls N, on 1 process */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    static char out[1024], in[1024];
    MPI_Init(&argc, &argv);
    for (int i = 0; i < atoi(argv[1]); i++) {
        out[i % 1024]++;
        MPI_Sendrecv(out, 1024, MPI_BYTE, 0, 1, in, 1024, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    printf("%d\n", in[0]);
    MPI_Finalize();
    return 0;
}
