/* A program's memory: where its blocks lie is part of what it sends, beside messages for which MPI takes memory of
   its own.  And all ways to ask for memory give what they promise.
   usage: heap [rounds] */
#define _GNU_SOURCE
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "want.h"

enum { BLOCKS = 400 };

static int rank, size;
static unsigned long long seed = 1;

static unsigned draw(unsigned below) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(seed >> 33) % below;
}

static size_t length(void) {
    static const size_t most[] = {40, 300, 5000, 200000, 3000000};
    return 1 + draw((unsigned)most[draw(16) ? draw(3) : draw(5)]);
}

static int is_all(const char *at, char it, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (at[i] != it) return 0;
    }
    return 1;
}

/* A block, asked for in one of all ways. */
static void *ask(size_t n) {
    void *at = NULL;
    size_t align = (size_t)16 << draw(9);
    switch (draw(6)) {
    case 0:
        at = calloc(n, 1);
        WANT(at && is_all(at, 0, n));
        break;
    case 1:
        WANT(!posix_memalign(&at, align, n) && (uintptr_t)at % align == 0);
        break;
    case 2:
        at = aligned_alloc(align, n);
        WANT(at && (uintptr_t)at % align == 0);
        break;
    default:
        at = malloc(n);
    }
    WANT(at && n <= malloc_usable_size(at) && (uintptr_t)at % 16 == 0);
    return at;
}

static void *give(void *at) {
    free(at);
    return NULL;
}

/* Sends where a block lies, and something longer by which MPI takes memory. */
static void tell(const void *at) {
    uintptr_t where = (uintptr_t)at, all[64];
    static char in[70000], out[70000];
    MPI_Request requests[2];
    MPI_Allgather(&where, sizeof where, MPI_BYTE, all, sizeof where, MPI_BYTE, MPI_COMM_WORLD);
    int n = 1 + (int)draw(sizeof out);
    MPI_Irecv(in, n, MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, n, MPI_BYTE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* Blocks that grow by little, the last of all and another, while a third comes and goes. */
static void grow(void) {
    size_t n = (size_t)40 << 20, step = 100000;
    char *last = malloc(n), *other = malloc(n);
    WANT(last && other);
    memset(other, 3, step);
    char *wall = malloc(n);
    for (int i = 0; i < 100; i++) {
        if (i == 50) free(wall);
        other = realloc(other, n + (size_t)(i + 1) * step);
        WANT(other && is_all(other, 3, (size_t)(i + 1) * step));
        memset(other + (size_t)(i + 1) * step, 3, step);
        char *brief = malloc(n);
        WANT(brief && brief[0] == 0 && brief[n - 1] == 0);
        if (!(i % 10)) tell(brief);
        brief[0] = brief[n - 1] = 1;
        free(brief);
        last = realloc(last, n - (size_t)i * step);
        last[n - (size_t)i * step - 1] = 1;
    }
    tell(last);
    tell(other);
    other = realloc(other, 1000);
    WANT(other && is_all(other, 3, 1000));
    tell(other);
    free(last);
    free(other);
}

int main(int argc, char **argv) {
    int rounds = 1 < argc ? atoi(argv[1]) : 40;
    static char *all[BLOCKS];
    static size_t lengths[BLOCKS];
    char *early = malloc(1000);
    memset(early, 5, 1000);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    early = realloc(early, 100000);
    WANT(early && is_all(early, 5, 1000));
    tell(early);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            int at = (int)draw(BLOCKS);
            char it = (char)at;
            if (all[at]) WANT(is_all(all[at], it, lengths[at]));
            size_t n = length();
            if (all[at] && draw(2)) {
                all[at] = realloc(all[at], n);
                WANT(all[at] && is_all(all[at], it, n < lengths[at] ? n : lengths[at]));
            } else {
                free(all[at]);
                all[at] = ask(n);
            }
            lengths[at] = n;
            memset(all[at], it, n);
        }
        tell(all[draw(BLOCKS)] ? all[0] : all[1]);
        void *map = mmap(NULL, 30000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        WANT(map != MAP_FAILED);
        tell(map);
        WANT(!munmap(map, 30000));
        MPI_Alloc_mem(100 + round, MPI_INFO_NULL, &map);
        memset(map, 1, 100 + round);
        tell(map);
        MPI_Free_mem(map);
    }
    grow();
    void *window;
    MPI_Win win;
    MPI_Win_allocate(5000, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    WANT(is_all(window, 0, 5000));
    tell(window);
    MPI_Win_free(&win);
    /* Another thread gives back what this one asked for. */
    pthread_t thread;
    for (int i = 0; i < 20; i++) {
        WANT(!pthread_create(&thread, NULL, give, ask(length())));
        WANT(!pthread_join(thread, NULL));
    }
    volatile size_t half = SIZE_MAX / 2;
    errno = 0;
    WANT(!malloc(half) && errno == ENOMEM);
    WANT(!calloc(half, 3) && !reallocarray(NULL, half, 3));
    free(NULL);
    for (int i = 0; i < BLOCKS; i++) free(all[i]);
    if (!rank) printf("heap: %d rounds\n", rounds);
    MPI_Finalize();
    return 0;
}
