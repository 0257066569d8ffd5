/* Does what the word says: one: a replica of rank 1 sends something else once; often: six times, and
   again when it has been right for long; all: each replica does; early: MPI is called before MPI_Init;
   plain: nothing of that. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "plain", *own = getenv("SELVEDGE_SET");
    int set = own ? atoi(own) : 0, rank, n, turn;
    unsigned char row[1000];
    unsigned long sum = 0;
    if (!strcmp(word, "early")) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (turn = 0; turn < 40; turn++) {
        memset(row, turn, sizeof row);
        if (turn == 20 && rank == 1 && !strcmp(word, "one") && set == 2) row[321] ^= 4;
        if (!strcmp(word, "often") && rank == 1 && set == 2 && (turn / 6 == 1 || turn == 38)) row[321] ^= 4;
        if (turn == 20 && rank == 1 && !strcmp(word, "all")) row[654] ^= set + 1;
        if (rank == 1) MPI_Send(row, sizeof row, MPI_BYTE, 0, turn, MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_Recv(row, sizeof row, MPI_BYTE, 1, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (size_t at = 0; at < sizeof row; at++) sum += row[at] * (at + 1);
        }
    }
    if (rank == 0) printf("differ: %lu\n", sum);
    MPI_Finalize();
    return 0;
}
