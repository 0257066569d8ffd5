/* Locks on files that outlive the replica whose they are to the system.  Process 0 takes two and holds them until
   there is a file `go`; then process 1 may have neither, and both when the other has let go.
   usage: held [differ]
   differ: one replica of process 0 sends something else again and again, and leads no more. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "want.h"

static int rank, size;

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *set = getenv("SELVEDGE_SET");
    int whole = open("whole", O_CREAT | O_RDWR, 0644), part = open("part", O_CREAT | O_RDWR, 0644);
    WANT(whole >= 0 && part >= 0 && lseek(part, 10, SEEK_SET) == 10);
    if (rank == 0) {
        WANT(!flock(whole, LOCK_EX) && !lockf(part, F_LOCK, 30));
        /* Less of it at both ends, and from another descriptor. */
        WANT(lseek(part, 10, SEEK_SET) == 10 && !lockf(part, F_ULOCK, 5));
        WANT(lseek(part, 30, SEEK_SET) == 30 && !lockf(part, F_ULOCK, 0));
        int other = dup(whole);
        WANT(other >= 0 && !close(whole));
        whole = other;
        printf("held\n");
        fflush(stdout);
        for (int i = 0; access("go", F_OK); i++) {
            int row = i % 8 == 0 && argc > 1 && set && *set == '0' ? 77 : 7;
            MPI_Send(&row, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(&row, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            usleep(1000);
        }
        int end = 0;
        MPI_Send(&end, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else if (rank == 1) {
        int row;
        for (;;) {
            MPI_Recv(&row, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (!row) break;
            WANT(row == 7);
            MPI_Send(&row, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        }
        WANT(flock(whole, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK);
        for (int at = 5; at < 45; at += 5) {
            int is_free = at < 15 || at >= 30;
            WANT(lseek(part, at, SEEK_SET) == at && !lockf(part, F_TEST, 5) == is_free);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) WANT(!flock(whole, LOCK_UN) && !close(open("part", O_RDONLY)));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) WANT(!flock(whole, LOCK_EX | LOCK_NB) && lseek(part, 0, SEEK_SET) == 0 && !lockf(part, F_TLOCK, 100));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("let go\n");
    MPI_Finalize();
    return 0;
}
