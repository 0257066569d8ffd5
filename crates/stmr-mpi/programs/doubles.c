/* Replicas of rank 1 send something else in one turn, those of the sets that argv[2] names, each something of its
 * own.  Each says so in a file whose name begins with argv[1] and ends with its set, and one that finds that file
 * sends what is right: so does all of a second start.  argv[3]: the turn with which to begin, as from a
 * checkpoint.  argv[4]: always, to err in each start; then, so that set 1 errs some turns later, once.  Files are
 * made by the kernel itself, since replicas share the C library's. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TURNS = 40, WRONG = 20, THEN = 24 };

/* What this replica errs by in this turn. */
static long wrong(int turn, int argc, char **argv) {
    const char *set = getenv("SELVEDGE_SET"), *word = argc > 4 ? argv[4] : "";
    char name[4096];
    if (!set || argc < 3) return 0;
    if (turn == THEN && !strcmp(word, "then") && *set == '1') return 2;
    if (turn != WRONG || !strchr(argv[2], *set)) return 0;
    snprintf(name, sizeof name, "%s.%s", argv[1], set);
    int is_first = 0 <= syscall(SYS_open, name, O_CREAT | O_EXCL | O_WRONLY, 0600);
    return is_first || !strcmp(word, "always") ? 4 << (*set - '0') : 0;
}

int main(int argc, char **argv) {
    int rank, size, first = argc > 3 ? atoi(argv[3]) : 0;
    long sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (first && rank == 0) printf("from turn %d\n", first);
    for (int turn = first; turn < TURNS; turn++) {
        long out = 1000 * turn + rank, in;
        int right = (rank + 1) % size, left = (rank + size - 1) % size;
        if (rank == 1) out ^= wrong(turn, argc, argv);
        MPI_Sendrecv(&out, 1, MPI_LONG, right, 0, &in, 1, MPI_LONG, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += in * (turn + 1);
        if (turn % 8 == 0 && rank == 0) printf("turn %d: %ld\n", turn, sum);
    }
    printf("rank %d: %ld\n", rank, sum);
    MPI_Finalize();
    return 0;
}
