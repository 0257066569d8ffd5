/* Preloaded before everything else: kills its process at a call of MPI.  It knows nothing of what
   else is preloaded.  calls.h, made from calls.txt, names every function of MPI.

   KILLER_AT=RANK.SET.K[,RANK.SET.K]: at the K-th call after MPI_Init, of that replica, once.
   KILLER_FOLDER: where each process writes `pid.RANK.SET` once MPI_Init is over, `calls.RANK.SET`
   with its number of calls in MPI_Finalize, and `killed.RANK.SET` with the name of the call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef size_t word;
typedef word function(word, word, word, word, word, word, word, word, word, word, word, word, word);

static __thread int depth;
static long calls;
static int begun;

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : -1;
}

static void tell(const char *what, const char *text) {
    char path[4096];
    const char *folder = getenv("KILLER_FOLDER");
    if (!folder) return;
    snprintf(path, sizeof path, "%s/%s.%ld.%ld.new", folder, what, number("SELVEDGE_RANK"), number("SELVEDGE_SET"));
    /* By the system's own calls: what one replica does with the C library's is an error of it. */
    int file = syscall(SYS_open, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0) return;
    if (syscall(SYS_write, file, text, strlen(text)) < 0) _exit(9);
    syscall(SYS_close, file);
    char whole[4096];
    strcpy(whole, path);
    whole[strlen(whole) - 4] = 0;
    syscall(SYS_rename, path, whole);
}

/* The call after which this process is killed, or -1. */
static long own_end(void) {
    static long end = -2;
    if (end != -2) return end;
    end = -1;
    char text[256] = "", path[4096], *rest = text, *row;
    if (getenv("KILLER_AT")) strncpy(text, getenv("KILLER_AT"), sizeof text - 1);
    while ((row = strsep(&rest, ","))) {
        long rank, set, at;
        if (sscanf(row, "%ld.%ld.%ld", &rank, &set, &at) == 3 && rank == number("SELVEDGE_RANK") && set == number("SELVEDGE_SET")) end = at;
    }
    /* A program that was started again is not killed again. */
    snprintf(path, sizeof path, "%s/killed.%ld.%ld", getenv("KILLER_FOLDER"), number("SELVEDGE_RANK"), number("SELVEDGE_SET"));
    if (syscall(SYS_access, path, F_OK) == 0) end = -1;
    return end;
}

static void before(const char *name) {
    if (!begun || depth) return;
    calls++;
    if (calls == own_end()) {
        tell("killed", name);
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    }
    if (!strcmp(name, "Finalize")) {
        char text[32];
        snprintf(text, sizeof text, "%ld", calls);
        tell("calls", text);
    }
}

static void after(const char *name) {
    if (begun || depth || strncmp(name, "Init", 4) || !strcmp(name, "Initialized")) return;
    char text[32];
    snprintf(text, sizeof text, "%ld", (long)syscall(SYS_getpid));
    begun = 1;
    tell("pid", text);
}

#define WRAP(symbol, name)                                                                          \
    word symbol(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l, word m) { \
        static function *next;                                                                      \
        if (!next) next = (function *)dlsym(RTLD_NEXT, #symbol);                                    \
        before(name);                                                                               \
        depth++;                                                                                    \
        word code = next(a, b, c, d, e, f, g, h, i, j, k, l, m);                                    \
        depth--;                                                                                    \
        after(name);                                                                                \
        return code;                                                                                \
    }
#define CALL(name) WRAP(MPI_##name, #name) WRAP(PMPI_##name, #name)
#include "calls.h"
