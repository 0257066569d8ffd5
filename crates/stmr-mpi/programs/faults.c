/* Dies of a fault of its own, halfway.
   usage: faults segv | zero | trap | step | free | deep | raise | inside | pipe [RANK SET]
   RANK SET: that replica alone does, and the others go on. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 20, PAGE = 4096 };

static int deeper(int depth) {
    volatile char row[PAGE];
    row[depth % PAGE] = depth;
    return depth ? deeper(depth + 1) + row[depth % PAGE] : 0;
}

static void die(const char *how) {
    static int row[8];
    volatile int zero = 0;
    int *volatile bad = (int *)8, *volatile within = row + 1;
    if (!strcmp(how, "segv")) *bad = 1;
    if (!strcmp(how, "zero")) zero = 77 / zero;
    if (!strcmp(how, "trap")) __builtin_trap();
#ifdef __x86_64__
    if (!strcmp(how, "step")) __asm__ volatile("int3");
#else
    if (!strcmp(how, "step")) raise(SIGTRAP);
#endif
    if (!strcmp(how, "free")) free(within);
    if (!strcmp(how, "deep")) deeper(1);
    if (!strcmp(how, "raise")) raise(SIGSEGV);
    if (!strcmp(how, "pipe")) {
        int ends[2];
        if (pipe(ends) || close(ends[0]) || write(ends[1], how, 1) < 0) return;
    }
    if (!strcmp(how, "inside")) MPI_Send(bad, 4, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int rank, sum;
    const char *set = getenv("SELVEDGE_SET");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int alone = argc == 4 && set && rank == atoi(argv[2]) && atoi(set) == atoi(argv[3]);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (round == ROUNDS / 2 && (alone || (argc == 2 && rank == 1))) die(argv[1]);
    }
    printf("rank %d has %d\n", rank, sum);
    MPI_Finalize();
    return 0;
}
