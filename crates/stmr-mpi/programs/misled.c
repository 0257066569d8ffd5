/* Replica 0 of process 1, which leads, makes another receive than its siblings among receives from anybody,
   so that what it tells of them is of others.
   usage: misled tag|named|anybody|missing|more|freed */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "want.h"

enum { PROCESSES = 4, EACH = 4, LAST = EACH - 1, ROUNDS = 30, ANYBODY = 77 };

int main(int argc, char **argv) {
    static int in[PROCESSES][EACH], out[PROCESSES][EACH], extra;
    const char *error = 1 < argc ? argv[1] : "none", *set = getenv("SELVEDGE_SET");
    int rank, size;
    long sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    WANT(size == PROCESSES);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request all[2 * PROCESSES * EACH + 1];
        int n = 0, errs = rank == 1 && set && atoi(set) == 0 && round == 18;
        for (int i = 0; i < EACH; i++) {
            int is_anybody = round % 3 == 0 && i == LAST;
            for (int peer = 0; peer < size; peer++) {
                if (peer == rank) continue;
                int source = is_anybody ? MPI_ANY_SOURCE : peer, tag = is_anybody ? ANYBODY : i;
                if (errs && peer == 0 && i == LAST) {
                    if (!strcmp(error, "missing")) continue;
                    if (!strcmp(error, "tag")) tag = 60;
                    if (!strcmp(error, "named")) source = 2;
                    if (!strcmp(error, "more") || !strcmp(error, "freed"))
                        MPI_Irecv(&extra, 1, MPI_INT, MPI_ANY_SOURCE, ANYBODY, MPI_COMM_WORLD, &all[n++]);
                    if (!strcmp(error, "freed")) MPI_Request_free(&all[--n]);
                }
                if (errs && peer == 0 && i == 1 && !strcmp(error, "anybody")) source = MPI_ANY_SOURCE;
                MPI_Irecv(&in[peer][i], 1, MPI_INT, source, tag, MPI_COMM_WORLD, &all[n++]);
            }
        }
        for (int i = 0; i < EACH; i++) {
            for (int peer = 0; peer < size; peer++) {
                if (peer == rank) continue;
                out[peer][i] = round * 1000 + rank * 100 + peer * 10 + i;
                int tag = round % 3 == 0 && i == LAST ? ANYBODY : i;
                MPI_Isend(&out[peer][i], 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &all[n++]);
            }
        }
        if (round % 2) {
            for (int done = 0; !done;) MPI_Testall(n, all, &done, MPI_STATUSES_IGNORE);
        } else {
            MPI_Waitall(n, all, MPI_STATUSES_IGNORE);
        }
        for (int peer = 0; peer < size; peer++) {
            for (int i = 0; peer != rank && i < EACH; i++) sum += in[peer][i];
        }
    }
    printf("process %d: %ld\n", rank, sum);
    MPI_Finalize();
    return 0;
}
