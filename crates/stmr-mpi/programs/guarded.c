/* A table that processes read and change under locks, of each kind that the C library has: what is
   read under one, and sent, is the same in all replicas whenever each of them reads it. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "want.h"

enum { N = 64, KINDS = 4 };

static int rank;

/* Takes it, or lets go of it; where it is the whole file's by closing that in the end, or by having
   its descriptor be another file's. */
static int lock(int file, int kind, int takes) {
    struct flock part = {.l_type = takes ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET};
    switch (kind) {
    case 0: WANT(!fcntl(file, F_SETLKW, &part)); break;
    case 1: WANT(!lockf(file, takes ? F_LOCK : F_ULOCK, 0)); break;
    default:
        if (takes) {
            WANT(0 <= (file = open("table", O_RDWR)) && !flock(file, LOCK_EX));
        } else {
            if (kind == 3) WANT(dup2(STDERR_FILENO, file) == file);
            WANT(!close(file));
        }
    }
    return file;
}

int main(int argc, char **argv) {
    int size, rounds = argc > 1 ? atoi(argv[1]) : 60;
    long table[N] = {0}, most = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int kind = 0; kind < KINDS; kind++) {
        if (rank == 0) {
            int made = open("table", O_CREAT | O_RDWR | O_TRUNC, 0644);
            WANT(pwrite(made, memset(table, 0, sizeof table), sizeof table, 0) == sizeof table);
            WANT(!close(made));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        int file = open("table", O_RDWR);
        for (int round = 0; round < rounds; round++) {
            int held = lock(file, kind, 1);
            WANT(pread(held, table, sizeof table, 0) == sizeof table);
            for (int i = 1; i < N; i++) WANT(table[i] == table[0]);
            long read = table[0];
            for (int i = 0; i < N; i++) table[i]++;
            if (rank % 2 == 0) WANT(pwrite(held, table, sizeof table, 0) == sizeof table);
            lock(held, kind, 0);
            MPI_Sendrecv(&read, 1, MPI_LONG, rank, kind, &most, 1, MPI_LONG, rank, kind,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        WANT(!close(file));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) {
        int last = open("table", O_RDONLY);
        WANT(pread(last, table, sizeof table, 0) == sizeof table);
        printf("the table was changed %ld times\n", table[0]);
    }
    MPI_Finalize();
    return 0;
}
