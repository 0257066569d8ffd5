/* What a process asks before MPI_Init, once replicas share their answers.

   As UCX does where it puts itself before the C library's memory (it loads with Open MPI 5), the first
   instructions of sbrk and mmap are others while the clock is read: whoever calls one of them then ends.
   Shadows are slow, so that the meta is in MPI_Init, with all the others, long before they have read
   what it settled.  What the program allocates must lie at the same place in all replicas. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 3000, FUNCTIONS = 2 };

#ifdef __x86_64__
static const unsigned char stop[] = {0x0f, 0x0b};
#else
static const unsigned char stop[] = {0, 0, 0, 0};
#endif

static unsigned char *functions[FUNCTIONS], saved[FUNCTIONS][sizeof stop];

static void put(unsigned char *at, const unsigned char *code) {
    uintptr_t page = sysconf(_SC_PAGESIZE), start = (uintptr_t)at & -page, end = ((uintptr_t)at + 2 * page) & -page;
    if (mprotect((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC)) exit(4);
    memcpy(at, code, sizeof stop);
    __builtin___clear_cache((char *)at, (char *)at + sizeof stop);
}

int main(int argc, char **argv) {
    int begun, rank, size;
    MPI_Initialized(&begun);
    const char *set = getenv("SELVEDGE_SET");
    if (set && atoi(set) != 0) usleep(500000);
    const char *names[FUNCTIONS] = {"sbrk", "mmap"};
    for (int i = 0; i < FUNCTIONS; i++) {
        functions[i] = dlsym(RTLD_DEFAULT, names[i]);
        memcpy(saved[i], functions[i], sizeof stop);
    }
    unsigned long mixed = 0;
    struct timeval now;
    struct timespec fine;
    for (int i = 0; i < FUNCTIONS; i++) put(functions[i], stop);
    for (int i = 0; i < LOOKS; i++) {
        unsigned long noise[40];
        gettimeofday(&now, NULL);
        clock_gettime(CLOCK_MONOTONIC, &fine);
        if (getrandom(noise, sizeof noise, 0) != sizeof noise) exit(3);
        mixed = mixed * 31 + now.tv_usec + fine.tv_nsec;
        for (int k = 0; k < 40; k++) mixed = mixed * 31 + noise[k];
    }
    for (int i = 0; i < FUNCTIONS; i++) put(functions[i], saved[i]);
    unsigned long row[4] = {mixed, (uintptr_t)malloc(100), (uintptr_t)malloc(1 << 16), (uintptr_t)malloc(1 << 22)};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned long *rows = malloc(size * sizeof row);
    MPI_Gather(row, 4, MPI_UNSIGNED_LONG, rows, 4, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d processes have begun\n", size);
    MPI_Finalize();
    return 0;
}
