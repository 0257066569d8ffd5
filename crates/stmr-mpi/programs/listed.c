/* Folders that one process changes while others list them in each way of the C library's, and send
   what they found: replicas have to find the same, whenever each of them looks.  What lies in a
   folder that is named by the set is each replica's own, however the program comes to it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "want.h"

static int rank;

enum { KEPT = 4, WAYS = 6, WORDS = 2 + WAYS };

static int number_of(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && strncmp(name, "job.", 4) == 0 ? atoi(dot + 1) + 1 : 0;
}

static int is_job(const struct dirent *row) {
    return number_of(row->d_name) != 0;
}

static int sum_of(DIR *from) {
    int sum = 0;
    for (struct dirent *row; (row = readdir(from));) sum = sum * 7 + number_of(row->d_name);
    return sum;
}

static int by_names(void) {
    struct dirent **rows;
    int n = scandir("spool", &rows, is_job, alphasort), sum = 0;
    for (int i = 0; i < n; i++) sum = sum * 7 + number_of(rows[i]->d_name), free(rows[i]);
    free(rows);
    return sum;
}

static int by_pattern(void) {
    glob_t found;
    int sum = 0;
    if (glob("spool/job.*", 0, NULL, &found)) return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) sum = sum * 7 + number_of(found.gl_pathv[i] + 6);
    globfree(&found);
    return sum;
}

static int by_descriptor(void) {
    int at = open("spool", O_RDONLY | O_DIRECTORY);
    DIR *from = fdopendir(at);
    WANT(from && dirfd(from) == at);
    int sum = sum_of(from);
    WANT(!closedir(from));
    return sum;
}

/* What a folder holds is looked at again when it is rewound, and may be when a place is gone to. */
static void by_places(int *to) {
    DIR *from = opendir("spool");
    WANT(from);
    long begin = telldir(from);
    to[0] = sum_of(from);
    seekdir(from, begin);
    to[0] = to[0] * 7 + sum_of(from);
    usleep(300);
    rewinddir(from);
    to[1] = sum_of(from);
    WANT(!closedir(from));
}

static int is_in(DIR *from, const char *name) {
    int found = 0;
    WANT(from);
    for (struct dirent *row; (row = readdir(from));) found |= !strcmp(row->d_name, name);
    WANT(!closedir(from));
    return found;
}

/* A folder of its own, filled, listed and removed as tools do that hold on to its descriptor. */
static void by_itself(void) {
    const char *set = getenv("SELVEDGE_SET");
    char name[32], part[32], path[4096];
    struct stat by_name, by_number;
    snprintf(name, sizeof name, "scratch.%d.%s", rank, set ? set : "0");
    snprintf(part, sizeof part, "part.%s", set ? set : "0");
    WANT(!mkdir(name, 0755) && realpath(name, path));
    int at = open(name, O_RDONLY | O_DIRECTORY);
    WANT(0 <= at && !mkdirat(at, "sub", 0755));
    int made = openat(at, part, O_CREAT | O_WRONLY, 0644);
    WANT(0 <= made && !close(made));
    made = openat(at, "same", O_CREAT | O_WRONLY, 0644);
    WANT(0 <= made && write(made, part, strlen(part)) == (ssize_t)strlen(part));
    WANT(!fstat(made, &by_number) && !fstatat(at, "same", &by_name, 0) && !close(made));
    WANT(by_name.st_ino == by_number.st_ino && by_name.st_size == (off_t)strlen(part));
    WANT(is_in(opendir(path), part) && is_in(opendir(name), part));
    WANT(is_in(fdopendir(dup(at)), part));
    WANT(!unlinkat(at, part, 0) && !unlinkat(at, "same", 0) && !unlinkat(at, "sub", AT_REMOVEDIR));
    WANT(!close(at) && !rmdir(name));
}

/* The name of a folder that is another in each replica. */
static const char *own_name(const char *what) {
    static char names[2][48];
    static int next;
    const char *set = getenv("SELVEDGE_SET");
    char *name = names[next ^= 1];
    snprintf(name, sizeof names[0], "%s.%d.%s", what, rank, set ? set : "0");
    return name;
}

/* A file of MPI's where each replica has its own. */
static void by_mpi(void) {
    MPI_File file;
    MPI_Offset length;
    int how = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, mine = rank + 5, got = 0;
    WANT(!MPI_File_open(MPI_COMM_SELF, "data", how, MPI_INFO_NULL, &file));
    WANT(!MPI_File_set_size(file, 64) && !MPI_File_get_size(file, &length) && length == 64);
    WANT(!MPI_File_write_at(file, 8, &mine, 1, MPI_INT, MPI_STATUS_IGNORE));
    WANT(!MPI_File_read_at(file, 8, &got, 1, MPI_INT, MPI_STATUS_IGNORE) && got == mine);
    WANT(!access("data", F_OK) && !MPI_File_close(&file) && access("data", F_OK));
}

/* A folder of its own that is the working one, from where other names lead out of it. */
static void from_inside(void) {
    char out[32], text[8] = "";
    int top = open(".", O_RDONLY | O_DIRECTORY), at;
    snprintf(out, sizeof out, "../out.%d", rank);
    for (int by_number = 0; by_number < 2; by_number++) {
        const char *name = own_name("inside");
        WANT(0 <= top && !mkdir(name, 0755) && 0 <= (at = open(name, O_RDONLY | O_DIRECTORY)));
        WANT(!(by_number ? fchdir(at) : chdir(name)));
        FILE *part = fopen("part", "w");
        WANT(part && fputs("mine", part) >= 0 && !fclose(part) && !mkdir("sub", 0755));
        WANT((part = fopen("part", "r")) && fgets(text, sizeof text, part) && !fclose(part));
        WANT(!strcmp(text, "mine") && is_in(opendir("."), "part") && is_in(opendir("sub/.."), "sub"));
        WANT(!rename("part", "sub/part") && !access("sub/part", F_OK) && access("part", F_OK));
        int made = open(out, O_CREAT | O_EXCL | O_WRONLY, 0644);
        WANT(0 <= made && write(made, "all", 3) == 3 && !close(made));
        by_mpi();
        WANT(!system("echo more >> part") && !unlink("part"));
        WANT(!unlink("sub/part") && !rmdir("sub") && !(by_number ? fchdir(top) : chdir("..")));
        WANT(!close(at) && !rmdir(name) && !access(out + 3, F_OK));
        if (by_number == 0) WANT(!unlink(out + 3));
    }
    WANT(!close(top));
}

/* A folder of its own that an earlier run has left: "same" is longer in each replica, and "n" says
   how long. */
static void from_before(void) {
    const char *name = own_name("old"), *set = getenv("SELVEDGE_SET");
    struct stat same;
    int at = open(name, O_RDONLY | O_DIRECTORY);
    WANT(0 <= at && is_in(fdopendir(dup(at)), set ? set : "0"));
    WANT(!fstatat(at, "same", &same, 0) && same.st_size == (set ? atoi(set) : 0) + 1);
    WANT(!unlinkat(at, "same", 0) && !unlinkat(at, set ? set : "0", 0) && !close(at));
    WANT(!rmdir(name));
    name = own_name("older");
    DIR *from = opendir(name);
    WANT(from && !fstatat(dirfd(from), "same", &same, 0));
    WANT(same.st_size == (set ? atoi(set) : 0) + 1);
    WANT(!unlinkat(dirfd(from), "same", 0) && !unlinkat(dirfd(from), set ? set : "0", 0));
    WANT(!closedir(from) && !rmdir(name));
}

/* A folder of its own that gets another name. */
static void renamed(void) {
    const char *name = own_name("draft"), *other = own_name("final");
    char part[64];
    snprintf(part, sizeof part, "%s/part", name);
    WANT(!mkdir(name, 0755) && !mknod(part, S_IFREG | 0644, 0) && !rename(name, other));
    WANT(is_in(opendir(other), "part") && access(name, F_OK));
    int at = open(other, O_RDONLY | O_DIRECTORY);
    WANT(0 <= at && is_in(fdopendir(dup(at)), "part") && !unlinkat(at, "part", 0));
    WANT(!close(at) && !rmdir(other));
}

static void change(int round) {
    char name[32];
    snprintf(name, sizeof name, "spool/job.%d", round);
    FILE *file = fopen(name, "w");
    WANT(file && fprintf(file, "%d\n", round) > 0 && !fclose(file));
    snprintf(name, sizeof name, "spool/job.%d", round - KEPT);
    if (KEPT <= round) WANT(!unlink(name));
}

int main(int argc, char **argv) {
    int size, rounds = argc > 1 ? atoi(argv[1]) : 40, got[WORDS], has_found = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) WANT(!mkdir("spool", 0755) && !opendir("nowhere"));
    by_itself();
    from_inside();
    from_before();
    renamed();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < rounds; round++) {
        if (rank == 0) {
            change(round);
        } else {
            int sent[WORDS] = {by_names(), by_pattern(), by_descriptor()};
            by_places(sent + 3);
            sent[5] = (int)sysconf(_SC_AVPHYS_PAGES), sent[6] = (int)get_avphys_pages();
            sent[7] = get_nprocs();
            MPI_Send(sent, WORDS, MPI_INT, 0, round, MPI_COMM_WORLD);
        }
    }
    for (int i = 0; rank == 0 && i < rounds * (size - 1); i++) {
        MPI_Recv(got, WORDS, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        has_found += got[0] && got[5];
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s in the spool, %s at its end\n", has_found ? "jobs" : "nothing",
               by_names() ? "some" : "none");
    }
    MPI_Finalize();
    return 0;
}
