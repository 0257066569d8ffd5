/* Commands by the shell, as programs start them beside their work: each is made once, and all
   processes print what it came to.  Ends in the folder where it began, with `dir` in it.

   With an argument, that is a command that process 0 makes, and nothing else. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

static int code(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void told(const char *what, int status) {
    printf("%s: %d\n", what, code(status));
    fflush(stdout);
}

static void make(void) {
    FILE *file;
    told("a folder", system("mkdir dir"));
    file = fopen("dir/rows", "w");
    fprintf(file, "one\ntwo\n");
    fclose(file);
    /* What the program has written is there; a second time there is nothing to do it to. */
    told("packs", system("gzip -n dir/rows && mv dir/rows.gz dir/packed.gz && echo packed"));
    told("appends", system("gunzip -c dir/packed.gz >> dir/log"));
    told("fails", system("exit 7"));
    told("is killed", system("kill -9 $$"));
    told("is not there", system("no-such-command 2> dir/said"));
    remove("dir/said");
    printf("a shell: %d\n", system(NULL) != 0);
    fflush(stdout);
}

static void look(void) {
    char row[4096];
    size_t n, sum = 0;
    FILE *file = popen("ls dir; tail -n 1 dir/log; exit 3", "r");
    while (fgets(row, sizeof row, file)) printf("read %s", row);
    told("reads", pclose(file));
    /* More than a pipe holds, and no more than the first of what does not end. */
    file = popen("head -c 1000000 /dev/zero", "r");
    while ((n = fread(row, 1, sizeof row, file))) sum += n;
    printf("%zu bytes\n", sum);
    told("all", pclose(file));
    /* It begins at once, with what surrounds it then. */
    setenv("WORD", "first", 1);
    file = popen("touch dir/touched; echo $WORD", "r");
    setenv("WORD", "second", 1);
    while (access("dir/touched", F_OK)) usleep(1000);
    if (fgets(row, sizeof row, file)) printf("%s", row);
    told("begins at once", pclose(file));
    file = popen("yes", "r");
    if (fgets(row, sizeof row, file)) printf("%s", row);
    told("the first line", pclose(file));
}

/* A command has what surrounds the program in a plain run, with what the program has said itself. */
static void surroundings(void) {
    const char *names = "PYTHONHASHSEED|UCX_LOG_FILE|MPIR_CVAR_POLLS_BEFORE_YIELD";
    char line[256], row[4096];
    snprintf(line, sizeof line, "env | grep -E '^(SELVEDGE_[A-Z_]*|LD_PRELOAD|%s)=' | sort", names);
    for (int turn = 0; turn < 2; turn++) {
        FILE *file = popen(line, "r");
        while (fgets(row, sizeof row, file)) printf("has %s", row);
        told("surroundings", pclose(file));
        setenv("UCX_LOG_FILE", "own", 1);
        setenv("SELVEDGE_OWN", "too", 1);
    }
    told("is not looked at", system("grep -c -e selvedge /proc/self/maps"));
}

/* What the system has left is the same in all replicas, whoever else takes it meanwhile. */
static void send_room(int rank) {
    struct statvfs row[2];
    struct statfs other;
    unsigned long words[6] = {0};
    if (rank == 0) {
        FILE *file = popen("date +%s%N", "r");
        if (fscanf(file, "%lu", words) != 1) words[0] = 0;
        pclose(file);
        statvfs("/tmp", row);
        FILE *own = fopen("dir/log", "r");
        fstatvfs(fileno(own), row + 1);
        fstatfs(fileno(own), &other);
        fclose(own);
        words[1] = row[0].f_bavail, words[2] = row[1].f_bfree, words[3] = other.f_ffree;
        statfs("/tmp", &other);
        words[4] = other.f_bfree, words[5] = statvfs("/no/such/folder", row);
    }
    MPI_Bcast(words, 6, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    printf("rank %d: %d\n", rank, words[0] != 0 && words[1] != 0 && words[2] != 0 && words[5] == -1UL);
    fflush(stdout);
}

int main(int n, char **args) {
    int rank;
    MPI_Init(&n, &args);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (1 < n) {
        if (rank == 0) told("the command", system(args[1]));
    } else {
        if (rank == 0) {
            make();
            look();
            surroundings();
        }
        send_room(rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0 && n == 1) {
        told("after the end", system("rm dir/log && echo removed"));
        clearenv();
        told("without an environment", system("echo \"$HOME.\""));
    }
    return 0;
}
