/* Files in ways that few programs take: in memory that has names, pipes with names, locks on parts, what is
   read into several places at once, what is mapped.
   usage: ways FOLDER ROUNDS */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "want.h"

static int rank, size;
static char folder[200];

static char *in_folder(const char *name, int number) {
    static char paths[4][256];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s.%d", folder, name, number);
    return path;
}

/* By whole names, as most programs name what they keep in /dev/shm. */
static void whole_names(int rounds) {
    WANT(!mkdir(in_folder("own", rank), 0755));
    WANT(mkdir(in_folder("own", rank), 0755) && errno == EEXIST);
    int fd = open(in_folder("made", rank), O_CREAT | O_EXCL | O_WRONLY, 0644);
    WANT(fd >= 0 && write(fd, "made once\n", 10) == 10 && !close(fd));
    WANT(open(in_folder("made", rank), O_CREAT | O_EXCL | O_WRONLY, 0644) < 0 && errno == EEXIST);
    WANT(!rename(in_folder("made", rank), in_folder("moved", rank)));
    WANT(rename(in_folder("made", rank), in_folder("moved", rank)) && errno == ENOENT);
    FILE *log = fopen(in_folder("log", rank), "a");
    WANT(log);
    for (int round = 0; round < rounds; round++) {
        int sum, mine = rank + round;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        WANT(fprintf(log, "round %d: %d\n", round, sum) > 0 && !fflush(log));
        if (rank == 0) {
            printf("round %d\n", round);
            fflush(stdout);
        }
    }
    WANT(!fclose(log));
    WANT(!rmdir(in_folder("own", rank)) && rmdir(in_folder("own", rank)) && errno == ENOENT);
}

static void pipes_with_names(void) {
    struct stat is;
    char *path = in_folder("pipe", rank), *node = in_folder("node", rank);
    WANT(!mkfifo(path, 0644) && mkfifo(path, 0644) && errno == EEXIST);
    WANT(!stat(path, &is) && S_ISFIFO(is.st_mode));
    WANT(!mknod(node, S_IFREG | 0644, 0) && mknod(node, S_IFREG | 0644, 0) && errno == EEXIST);
    WANT(!unlink(path) && unlink(path) && errno == ENOENT);
    int fd = open(folder, O_RDONLY | O_DIRECTORY);
    snprintf(path, 32, "at.%d", rank);
    WANT(fd >= 0 && !mkfifoat(fd, path, 0600) && mknodat(fd, path, S_IFIFO | 0600, 0) && errno == EEXIST);
    WANT(!unlinkat(fd, path, 0) && !close(fd) && !unlink(node));
}

/* A number that all add to, one after the other. */
static void locked_sum(int rounds) {
    long sum = 0;
    int fd = open(in_folder("sum", 0), O_CREAT | O_RDWR, 0644);
    WANT(fd >= 0);
    for (int round = 0; round < rounds; round++) {
        WANT(lseek(fd, 0, SEEK_SET) == 0 && !lockf(fd, F_LOCK, 8));
        WANT(pread(fd, &sum, 8, 0) >= 0);
        sum += rank + 1;
        WANT(pwrite(fd, &sum, 8, 0) == 8 && !lockf(fd, F_ULOCK, 8));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(pread(fd, &sum, 8, 0) == 8 && sum == (long)rounds * size * (size + 1) / 2);
    WANT(!close(fd));
}

/* Who has a lock, and who has not; from where the descriptor stands. */
static void parts(void) {
    int fd = open(in_folder("parts", 0), O_CREAT | O_RDWR, 0644);
    WANT(fd >= 0 && lseek(fd, 100, SEEK_SET) == 100);
    if (rank == 0) WANT(!lockf(fd, F_TLOCK, 8));
    MPI_Barrier(MPI_COMM_WORLD);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 90, .l_len = 20};
    int is_free = !lockf(fd, F_TEST, 8), is_got = !lockf(fd, F_TLOCK, 8);
    WANT(is_free == (rank == 0) && is_got == (rank == 0));
    WANT(!fcntl(fd, F_GETLK, &lock));
    if (rank == 0) WANT(lock.l_type == F_UNLCK);
    if (rank) WANT(lock.l_type == F_WRLCK && lock.l_start == 100 && lock.l_len == 8);
    WANT(lseek(fd, 108, SEEK_SET) == 108 && !lockf(fd, F_TEST, 8));
    MPI_Barrier(MPI_COMM_WORLD);
    /* Only the process whose it is can let go of it. */
    WANT(lseek(fd, 100, SEEK_SET) == 100 && !lockf(fd, F_ULOCK, 0));
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!lockf(fd, F_TEST, 8) && lockf(fd, 77, 8) && errno == EINVAL);
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!close(fd));
}

/* What has been written is there for whoever reads it, in whichever way. */
static void several_places(void) {
    static char mine[4096], one[2048], other[2048];
    struct iovec to[2] = {{one, sizeof one}, {other, sizeof other}}, from[2] = {{mine, 1024}, {mine + 1024, 3072}};
    int fd = open(in_folder("places", rank), O_CREAT | O_RDWR, 0644);
    for (int round = 0; round < 4; round++) {
        off_t at = 4096 * (off_t)round;
        memset(mine, 'a' + round + rank, sizeof mine);
        WANT(fd >= 0 && pwritev2(fd, from, 2, at, 0) == sizeof mine);
        memset(one, 0, sizeof one);
        if (round % 2) WANT(preadv(fd, to, 2, at) == sizeof mine);
        if (round % 2 == 0) WANT(preadv2(fd, to, 2, at, 0) == sizeof mine);
        WANT(one[0] == 'a' + round + rank && other[2047] == 'a' + round + rank);
    }
    WANT(lseek(fd, 5 * 4096, SEEK_SET) >= 0 && pwritev2(fd, from, 2, -1, 0) == sizeof mine);
    WANT(lseek(fd, 0, SEEK_CUR) == 6 * 4096);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(mine, 'z', sizeof mine);
    WANT(pwrite(fd, mine, sizeof mine, 4 * 4096) == sizeof mine);
    char *all = mmap(NULL, 6 * 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    WANT(all != MAP_FAILED && all[4 * 4096 + 7] == 'z' && all[4095] == 'a' + rank);
    WANT(!munmap(all, 6 * 4096) && !close(fd));
}

/* Where a stream stands that appends, however it came to. */
static void appended_places(void) {
    char *path = in_folder("appended", rank);
    fpos_t place, start;
    FILE *file = fopen(path, "w");
    WANT(file && !fgetpos(file, &start) && fputs("0123456789", file) >= 0 && !fclose(file));
    file = fopen(path, "a");
    WANT(file && ftell(file) == 10 && fputs("more", file) >= 0 && ftell(file) == 14);
    WANT(!fgetpos(file, &place) && memcmp(&place, &start, sizeof place) && !fclose(file));
    WANT((file = fopen(path, "ab")) && ftello(file) == 14 && !fclose(file));
    WANT((file = fopen(path, "a+")) && ftell(file) == 0 && fgetc(file) == '0' && !fclose(file));
    int fd = open(path, O_WRONLY);
    WANT(fd >= 0 && !fdopen(fd, "r") && errno == EINVAL && (file = fdopen(fd, "a")));
    WANT(ftell(file) == 14 && fcntl(fd, F_GETFL) & O_APPEND && fputs("!", file) >= 0);
    WANT(!fseek(file, 0, SEEK_SET) && fputs("?", file) >= 0 && !fclose(file));
    WANT((file = fopen(path, "r+")) && (file = freopen(path, "a", file)) && ftell(file) == 16);
    WANT(fputs(".", file) >= 0 && !fclose(file));
}

/* A stream that only read writes to its next file, and one that wrote reads it. */
static void opened_again(void) {
    char row[32] = "", *path = in_folder("again", rank), *other = in_folder("other", rank);
    FILE *file = fopen(path, "w");
    WANT(file && fputs("one\n", file) >= 0 && (file = freopen(path, "r", file)));
    WANT(fgets(row, sizeof row, file) && !strcmp(row, "one\n") && fputs("no", file) == EOF && !fclose(file));
    WANT((file = fopen(path, "r")) && fgetc(file) == 'o' && (file = freopen(other, "wx", file)));
    WANT(fputs("two\n", file) >= 0 && ftell(file) == 4 && (file = freopen(path, "a", file)));
    WANT(ftell(file) == 4 && fputs("three\n", file) >= 0 && (file = freopen(other, "r", file)));
    WANT(fgets(row, sizeof row, file) && !strcmp(row, "two\n") && !fclose(file));
    /* The same file in another way. */
    WANT((file = fopen(path, "a")) && fputs("four\n", file) >= 0 && (file = freopen(NULL, "r", file)));
    WANT(fgets(row, sizeof row, file) && !strcmp(row, "one\n") && !fclose(file));
}

/* Standard output is closed, and a file put in its place. */
static void printed_to_a_file(void) {
    fflush(stdout);
    int kept = dup(1), fd = open(in_folder("printed", rank), O_CREAT | O_RDWR | O_TRUNC, 0644);
    WANT(kept >= 0 && fd >= 0 && !close(1) && dup2(fd, 1) == 1 && !close(fd));
    printf("by its stream\n");
    fflush(stdout);
    WANT(write(1, "by its number\n", 14) == 14 && dup2(kept, 1) == 1 && !close(kept));
}

/* A stream that is put on another file has lines whole there, however it was written before: MPICH makes standard
   output one that keeps nothing. */
static void appended_by_all(void) {
    WANT(!setvbuf(stdout, NULL, _IONBF, 0));
    WANT(freopen(in_folder("appended", size), "a", stdout) && freopen(in_folder("errors", size), "a", stderr));
    printf("appended\n");
    fputs("half of it", stderr);
    MPI_Barrier(MPI_COMM_WORLD);
    fputs(" and half\n", stderr);
}

int main(int argc, char **argv) {
    int rounds = argc > 2 ? atoi(argv[2]) : 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(folder, sizeof folder, "%s", argc > 1 ? argv[1] : "/dev/shm");
    whole_names(rounds);
    pipes_with_names();
    locked_sum(rounds);
    parts();
    several_places();
    appended_places();
    opened_again();
    printed_to_a_file();
    appended_by_all();
    MPI_Finalize();
    return 0;
}
