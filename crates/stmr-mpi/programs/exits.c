/* Ends in the ways that let nothing out which the program has kept: what waits in its streams is
   lost, as plain, and what it wrote is not.
   usage: exits final | early | _Exit | handler | quick | deep | alone CODE
   alone: one replica of rank 1 ends so, and the others go on to exit. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "want.h"

enum { SMALL = 8192, ROUNDS = 20 };

static int rank, code;

static void end(void) { _exit(code); }

static void say(void) {
    char name[64];
    snprintf(name, sizeof name, "said.%d", rank);
    int file = open(name, O_CREAT | O_WRONLY, 0644);
    WANT(0 <= file && write(file, "quick\n", 6) == 6);
}

static void on_fault(int signal) {
    WANT(write(STDOUT_FILENO, "caught\n", 7) == 7);
    _exit(code);
}

/* A program that catches its faults does so on a stack of its own, with little room. */
static void catch_faults(void) {
    static char room[SMALL];
    stack_t small = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    WANT(!sigaltstack(&small, NULL) && !sigaction(SIGSEGV, &action, NULL));
}

static int deeper(int depth) {
    volatile char row[4096];
    row[depth % sizeof row] = depth;
    return depth ? deeper(depth + 1) + row[depth % sizeof row] : 0;
}

/* What the program starts ends by itself, and the program goes on. */
static void start_others(void) {
    int status;
    extern char **environ;
    pid_t child = fork();
    if (child == 0) _exit(3);
    WANT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
    child = fork();
    if (child == 0) quick_exit(4);
    WANT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
    child = vfork();
    if (child == 0) _exit(5);
    WANT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
    char *words[] = {"sh", "-c", "exit 6", NULL};
    WANT(!posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ));
    WANT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 6);
    WANT(WEXITSTATUS(system("exit 7")) == 7);
}

/* A part of it waits in a stream, and a part has been written. */
static void leave_files(void) {
    char name[64];
    snprintf(name, sizeof name, "kept.%d", rank);
    FILE *kept = fopen(name, "w");
    WANT(kept && fputs("this is not let out\n", kept) > 0);
    snprintf(name, sizeof name, "written.%d", rank);
    int written = open(name, O_CREAT | O_WRONLY, 0644);
    WANT(0 <= written && write(written, "this is\n", 8) == 8);
    /* MPICH would keep nothing of it. */
    static char room[512];
    setvbuf(stdout, room, _IOFBF, sizeof room);
    printf("and this is not\n");
}

int main(int argc, char **argv) {
    const char *how = argv[1], *set = getenv("SELVEDGE_SET");
    int sum, mine;
    code = atoi(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d begins\n", rank);
    fflush(stdout);
    start_others();
    leave_files();
    at_quick_exit(say);
    mine = !strcmp(how, "alone") && rank == 1 && set && atoi(set) == 1;
    for (int round = 0; round < ROUNDS; round++) {
        if (mine && round == ROUNDS / 2) _exit(9);
        MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (!strcmp(how, "early")) _exit(code);
    catch_faults();
    if (!strcmp(how, "deep") && rank == 1) deeper(1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (!strcmp(how, "final")) _exit(code);
    if (!strcmp(how, "_Exit")) _Exit(code);
    if (!strcmp(how, "quick")) quick_exit(code);
    if (!strcmp(how, "handler")) atexit(end);
    return strcmp(how, "alone") ? 0 : code;
}
