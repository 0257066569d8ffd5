/* Process 0 asks and asks for one message, while the sender of another waits until that is received: nothing
   that it calls waits.  Each way to ask is a round of its own.
   usage: polled [rounds] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "want.h"

enum { WAYS = 5, LONG = 20000 };

static int in[LONG], out[LONG], other;

static void ask(int way) {
    MPI_Request all[2];
    MPI_Status states[2];
    int flag = 0, rank = 0;
    MPI_Irecv(in, LONG, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &all[0]);
    if (way == 0) {
        while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &flag, states);
        MPI_Recv(&other, 1, MPI_INT, states[0].MPI_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Irecv(&other, 1, MPI_INT, way == 1 ? 1 : MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &all[1]);
        while (way == 2 && !flag) MPI_Testall(2, all, &flag, states);
        for (int i = 0; way == 3 && !flag; i++) MPI_Test(&all[1], &flag, states), MPI_Iprobe(1, 9, MPI_COMM_WORLD, &i, MPI_STATUS_IGNORE);
        while (!flag) MPI_Wtime(), MPI_Test(&all[1], &flag, states);
    }
    if (way != 2) MPI_Wait(&all[0], MPI_STATUS_IGNORE);
    WANT(in[0] == way && other == way + 1);
}

int main(int argc, char **argv) {
    int rank, more = 0, rounds = 1 < argc ? atoi(argv[1]) : 4;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < rounds; round++) {
        for (int way = 0; way < WAYS; way++) {
            out[0] = way, more = way + 1;
            if (rank == 0) {
                ask(way);
            } else if (rank == 1) {
                /* One round waits for its receiver by its mode, the next by its length. */
                if (round % 2) MPI_Ssend(out, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
                else MPI_Send(out, LONG, MPI_INT, 0, 3, MPI_COMM_WORLD);
                MPI_Send(&more, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    if (rank == 0) printf("asked\n");
    MPI_Finalize();
    return 0;
}
