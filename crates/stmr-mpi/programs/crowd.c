/* Thousands of receives under way at once, from anybody and not, asked for in each way in which a program
   may ask for many; every message is checked.
   usage: crowd [receives of the first process] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "want.h"

enum { ALL, BY_SOURCE, BY_TAG, ANY, SOME, TESTED, KINDS };
static int rank, size, n, *in, *from, *which;
static MPI_Request *requests;
static MPI_Status *states;

static void post(int kind) {
    for (int i = 0; i < n; i++) {
        int source = kind == BY_SOURCE ? 1 + i % (size - 1) : MPI_ANY_SOURCE;
        int tag = kind == BY_TAG ? i : MPI_ANY_TAG;
        MPI_Irecv(&in[i], 1, MPI_INT, source, tag, MPI_COMM_WORLD, &requests[i]);
    }
}

static void take(int kind) {
    if (kind <= BY_TAG) {
        MPI_Waitall(n, requests, states);
        for (int i = 0; i < n; i++) from[i] = states[i].MPI_SOURCE;
    }
    for (int done = 0; kind == ANY && done < n; done++) {
        int i;
        MPI_Waitany(n, requests, &i, states);
        from[i] = states->MPI_SOURCE;
    }
    for (int done = 0, some; SOME <= kind && done < n; done += some) {
        if (kind == SOME) MPI_Waitsome(n, requests, &some, which, states);
        else MPI_Testsome(n, requests, &some, which, states);
        for (int k = 0; k < some; k++) from[which[k]] = states[k].MPI_SOURCE;
    }
}

/* What a process sends comes in the order in which it was sent, unless each has a tag of its own. */
static void check(int kind) {
    int next[64] = {0};
    for (int i = 0; i < n; i++) {
        WANT(kind != BY_SOURCE || from[i] == 1 + i % (size - 1));
        WANT(in[i] == (kind == BY_TAG ? i : from[i] * 1000000 + next[from[i]]++));
    }
}

static void give(int kind) {
    int share = n / (size - 1), *out = malloc(share * sizeof *out);
    for (int i = 0; i < share; i++) {
        int tag = kind == BY_TAG ? (share - 1 - i) * (size - 1) + rank - 1 : 7;
        out[i] = kind == BY_TAG ? tag : rank * 1000000 + i;
        MPI_Isend(&out[i], 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(share, requests, MPI_STATUSES_IGNORE);
    free(out);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    n = (1 < argc ? atoi(argv[1]) : 1000) / (size - 1) * (size - 1);
    in = malloc(n * sizeof *in), from = malloc(n * sizeof *from), which = malloc(n * sizeof *which);
    requests = malloc(n * sizeof *requests), states = malloc(n * sizeof *states);
    for (int kind = 0; kind < KINDS; kind++) {
        if (rank == 0) post(kind);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank) {
            give(kind);
            continue;
        }
        take(kind);
        check(kind);
        printf("kind %d: %d receives\n", kind, n);
    }
    return MPI_Finalize();
}
