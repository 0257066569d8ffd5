/* Files in all ways that change them: each call's answer is checked, so a second one that makes the
   same change is seen, and what was written is read again. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>

#include "want.h"

static int rank, size;

/* A log by the C library, with its head written again at the end. */
static void log_rounds(int rounds) {
    char name[64], line[128];
    snprintf(name, sizeof name, "out/log.%d", rank);
    FILE *log = fopen(name, "w+");
    WANT(log);
    WANT(fprintf(log, "head %6d\n", 0) == 12);
    for (int round = 0; round < rounds; round++) {
        int sum, mine = rank * round;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        fprintf(log, "round %d: sum %d of rank %d\n", round, sum, rank);
        if (round % 3 == 0) WANT(!fflush(log));
        if (rank == 0 && round % 8 == 0) {
            printf("round %d\n", round);
            fflush(stdout);
        }
    }
    WANT(!fseek(log, 0, SEEK_SET));
    WANT(fprintf(log, "head %6d\n", rounds) == 12);
    WANT(!fseek(log, 0, SEEK_SET));
    WANT(fgets(line, sizeof line, log) && atoi(line + 5) == rounds);
    WANT(!fclose(log));
}

/* Text that the C library prints by ways of its own: to a descriptor, and in wide characters. */
static void print_otherwise(void) {
    char name[64], text[256] = "";
    snprintf(name, sizeof name, "out/print.%d", rank);
    int fd = open(name, O_CREAT | O_RDWR | O_APPEND, 0644);
    WANT(fd >= 0);
    WANT(dprintf(fd, "%d %s %.2f %ld %d %d %d %d\n", rank, "to a descriptor", 0.5, 1L << 40, 5, 6, 7, 8) > 0);
    WANT(lseek(fd, 0, SEEK_SET) == 0 && read(fd, text, sizeof text - 1) > 30);
    WANT(strstr(text, "to a descriptor 0.50 1099511627776 5 6 7 8\n"));
    WANT(!close(fd));
    FILE *wide = fopen(name, "a");
    WANT(wide);
    WANT(fwprintf(wide, L"%ls %d %.1f\n", L"wide", rank, 1.5) > 0);
    WANT(fputwc(L'z', wide) == L'z' && fputws(L" and more\n", wide) >= 0);
    WANT(!fclose(wide));
}

/* All processes append to one file; their lines are sorted by who reads it. */
static void append_rounds(int rounds) {
    FILE *all = fopen("out/all", "a");
    WANT(all);
    for (int round = 0; round < rounds; round++) {
        int token = 0;
        if (rank) MPI_Recv(&token, 1, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fprintf(all, "rank %d in round %d\n", rank, round);
        WANT(!fflush(all));
        if (rank + 1 < size) MPI_Send(&token, 1, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    WANT(!fclose(all));
}

/* Each process writes its part of one file, and reads its neighbour's. */
static void shared_matrix(void) {
    enum { N = 3000 };
    int fd = -1;
    if (rank == 0) {
        WANT((fd = open("out/matrix", O_CREAT | O_EXCL | O_RDWR, 0644)) >= 0);
        WANT(!ftruncate(fd, (off_t)size * N * sizeof(double)));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank) WANT((fd = open("out/matrix", O_RDWR)) >= 0);
    double *row = malloc(N * sizeof *row);
    for (int i = 0; i < N; i++) row[i] = rank * 1000.0 + i / 7.0;
    off_t place = (off_t)rank * N * sizeof *row;
    WANT(pwrite(fd, row, N / 2 * sizeof *row, place) == N / 2 * (ssize_t)sizeof *row);
    struct iovec parts[2] = {{row + N / 2, 100 * sizeof *row},
                             {row + N / 2 + 100, (N / 2 - 100) * sizeof *row}};
    WANT(lseek(fd, place + N / 2 * (off_t)sizeof *row, SEEK_SET) >= 0);
    WANT(writev(fd, parts, 2) == N / 2 * (ssize_t)sizeof *row);
    WANT(lseek(fd, 0, SEEK_CUR) == place + N * (off_t)sizeof *row);
    MPI_Barrier(MPI_COMM_WORLD);
    int next = (rank + 1) % size;
    WANT(pread(fd, row, N * sizeof *row, (off_t)next * N * sizeof *row) == N * (ssize_t)sizeof *row);
    for (int i = 0; i < N; i++) WANT(row[i] == next * 1000.0 + i / 7.0);
    struct stat is;
    WANT(!fstat(fd, &is) && is.st_size == (off_t)size * N * (off_t)sizeof *row);
    free(row);
    WANT(!fsync(fd) && !close(fd));
}

/* What was written before a barrier is there for whoever comes through it. */
static void whole_blocks(void) {
    static char mine[4096], other[sizeof mine];
    int fd = open("out/blocks", O_CREAT | O_RDWR, 0644), next = (rank + 1) % size;
    memset(mine, 'a' + rank, sizeof mine);
    WANT(fd >= 0 && pwrite(fd, mine, sizeof mine, rank * sizeof mine) == sizeof mine);
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(pread(fd, other, sizeof other, next * sizeof other) == sizeof other);
    for (size_t i = 0; i < sizeof other; i++) WANT(other[i] == 'a' + next);
    WANT(!close(fd));
}

/* Names that come and go. */
static void names(void) {
    char a[64], b[64], c[64], random[] = "out/tmp.XXXXXX";
    snprintf(a, sizeof a, "out/a.%d", rank);
    snprintf(b, sizeof b, "out/b.%d", rank);
    snprintf(c, sizeof c, "out/dir.%d", rank);
    WANT(!mkdir(c, 0755));
    WANT(mkdir(c, 0755) && errno == EEXIST);
    int fd = open(a, O_CREAT | O_EXCL | O_WRONLY, 0600);
    WANT(fd >= 0 && write(fd, "0123456789", 10) == 10 && !close(fd));
    WANT(open(a, O_CREAT | O_EXCL | O_WRONLY, 0600) < 0 && errno == EEXIST);
    WANT(!rename(a, b) && access(a, F_OK) && errno == ENOENT);
    WANT(!truncate(b, 4) && !link(b, a));
    if (rank == 0) WANT(!symlink("b.0", "out/link"));
    WANT(!unlink(a) && unlink(a) && errno == ENOENT);
    fd = open(b, O_WRONLY | O_APPEND);
    WANT(fd >= 0 && write(fd, "end\n", 4) == 4 && lseek(fd, 0, SEEK_CUR) == 8);
    int other = dup(fd);
    WANT(write(other, "dup\n", 4) == 4 && !close(fd) && !close(other));
    WANT((fd = mkstemp(random)) >= 0 && write(fd, "x", 1) == 1 && !close(fd) && !remove(random));
    snprintf(a, sizeof a, "out/dir.%d/in", rank);
    FILE *in = fopen(a, "wx");
    WANT(in && fputs("inside\n", in) >= 0 && fileno(in) > 2 && !fclose(in));
    WANT(rmdir(c) && errno == ENOTEMPTY && !remove(a) && !remove(c));
    WANT(!fopen("out/none", "r") && errno == ENOENT);
}

/* A run that goes on where the one before stopped. */
static void checkpoint(void) {
    char name[64], fresh[64];
    long state[2] = {0, 0};
    snprintf(name, sizeof name, "restart.%d", rank);
    snprintf(fresh, sizeof fresh, "restart.%d.new", rank);
    FILE *old = fopen(name, "rb");
    if (old) WANT(fread(state, sizeof state, 1, old) == 1 && !fclose(old));
    for (int step = 0; step < 5; step++) {
        long sum, mine = state[1] + rank + 1;
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        state[0]++;
        state[1] = sum % 1000003;
        FILE *file = fopen(fresh, "wb");
        WANT(file && fwrite(state, sizeof state, 1, file) == 1 && !fclose(file));
        WANT(!rename(fresh, name));
    }
    printf("rank %d: step %ld, state %ld\n", rank, state[0], state[1]);
}

/* A file that each replica has for itself, for who names it so. */
static void own_file(void) {
    char name[64];
    if (!getenv("SELVEDGE_SET")) return;
    snprintf(name, sizeof name, "own.%s.%d", getenv("SELVEDGE_SET"), rank);
    FILE *own = fopen(name, "w");
    WANT(own && fprintf(own, "set %s\n", getenv("SELVEDGE_SET")) == 6 && !fclose(own));
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    char name[64];
    /* Before MPI_Init, as some programs do: all processes the same. */
    FILE *early = fopen("early", "a");
    if (!early || fprintf(early, "a process\n") < 0) return 8;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) WANT(!mkdir("out", 0755));
    MPI_Barrier(MPI_COMM_WORLD);
    log_rounds(rounds);
    append_rounds(5);
    shared_matrix();
    print_otherwise();
    whole_blocks();
    names();
    checkpoint();
    own_file();
    /* What stands in no file until the program's end, and what goes to a file after it. */
    WANT(!fclose(early));
    snprintf(name, sizeof name, "out/left.%d", rank);
    FILE *left = fopen(name, "w");
    WANT(left && fprintf(left, "rank %d leaves this open\n", rank) > 0);
    MPI_Finalize();
    if (rank == 0) {
        WANT(freopen("out/stdout", "w", stdout));
        printf("printed to a file\n");
    }
    return 0;
}
