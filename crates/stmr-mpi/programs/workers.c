/* Ends by another thread than the first, or by the first alone.
   usage: workers HOW [RANK SET]
   RANK SET: that replica alone ends so, halfway, and the others go on to the end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "want.h"

enum { ROUNDS = 20 };

static int rank;
static const char *how;

static int is(const char *it) { return !strcmp(how, it); }

static void *work(void *nothing) {
    (void)nothing;
    if (is("late") || is("last")) {
        usleep(300000);
        printf("late\n");
        fflush(stdout);
    }
    if (is("late")) return NULL;
    if (is("abort")) abort();
    if (is("quick")) quick_exit(6);
    if (is("_exit")) _exit(7);
    if (is("term")) raise(SIGTERM);
    if (is("finalize")) MPI_Finalize();
    printf("not flushed before exit\n");
    exit(5);
}

static void begin(int joins) {
    pthread_t thread;
    WANT(!pthread_create(&thread, NULL, work, NULL));
    if (joins) pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    int sum, given;
    const char *set = getenv("SELVEDGE_SET");
    how = argv[1];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int mine = argc == 4 && set && rank == atoi(argv[2]) && atoi(set) == atoi(argv[3]);
    for (int round = 0; round < ROUNDS; round++) {
        if (mine && round == ROUNDS / 2) begin(1);
        MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    printf("rank %d has %d\n", rank, sum);
    FILE *file = fopen(rank ? "kept.1" : "kept.0", "w");
    WANT(file && fputs("kept\n", file) > 0);
    int ends = argc == 2, before = is("early") || is("abort") || is("finalize");
    if (ends && before) begin(1);
    if (ends && is("blocked")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        fflush(stdout);
        abort();
    }
    MPI_Finalize();
    if (ends && is("exec")) execlp("sh", "sh", "-c", "exit 3", (char *)NULL);
    if (ends) begin(!is("late") && !is("last"));
    if (ends) pthread_exit(NULL);
    return 0;
}
