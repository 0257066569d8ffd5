/* With LIBRARY, a stand-in for the library of CUDA's driver, which knows one page that the processor
 * cannot read, and looks at clocks and at the counter of cycles as often as it likes.  Without, a
 * program that loads it (argv[1]) and gives that page to a call: in all replicas, in those of a set
 * (argv[2]), or in none, where it gives what nobody looks at. */
#ifdef LIBRARY

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void *count(void *cycles) {
    *(unsigned long long *)cycles = __builtin_ia32_rdtsc();
    return 0;
}

/* Has a thread that hears of no signal read the counter. */
static int have_counted(void) {
    unsigned long long cycles = 0;
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    cycles = __builtin_ia32_rdtsc();
    int code = pthread_create(&thread, 0, count, &cycles);
    pthread_sigmask(SIG_SETMASK, &before, 0);
    return code == 0 && pthread_join(thread, 0) == 0 && cycles;
}

/* Whether this process has the same number for the program, and can have a socket with that in its
 * name, as CUDA's driver wants it. */
int cuda_begin(int pid) {
    struct sockaddr_un name = {AF_UNIX};
    struct timespec now;
    int length = snprintf(name.sun_path + 1, 100, "cuda-test-%d", (int)getpid()) + 3;
    int made = socket(AF_UNIX, SOCK_STREAM, 0);
    for (int idx = (int)syscall(SYS_getpid) % 7; 0 < idx; idx--) {
        clock_gettime(CLOCK_REALTIME, &now);
        __builtin_ia32_rdtsc();
    }
    if (pid != getpid()) return -2;
    if (!have_counted()) return -3;
    return bind(made, (struct sockaddr *)&name, length);
}

void *cuda_page(void) {
    static void *page;
    if (!page) page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page;
}

int cuPointerGetAttribute(void *answer, int attribute, unsigned long long at) {
    if (attribute != 2 || at - (unsigned long long)cuda_page() >= 4096) return 1;
    *(int *)answer = 2;
    return 0;
}

#else

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "want.h"

int main(int argc, char **argv) {
    int rank, size, all[64] = {0}, in;
    const char *set = getenv("SELVEDGE_SET");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    void *library = dlopen(argv[1], RTLD_NOW);
    WANT(library);
    void *(*find)(void) = (void *(*)(void))dlsym(library, "cuda_page");
    int (*begin)(int) = (int (*)(int))dlsym(library, "cuda_begin");
    struct timespec now[2];
    unsigned long long cycles = __builtin_ia32_rdtsc();
    WANT(begin(getpid()) == 0);
    WANT(cycles < __builtin_ia32_rdtsc());
    clock_gettime(CLOCK_REALTIME, &now[0]);
    MPI_Sendrecv(&now[0], sizeof now[0], MPI_BYTE, (rank + 1) % size, 1, &now[1], sizeof now[1], MPI_BYTE,
                 (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    cycles = __builtin_ia32_rdtsc();
    MPI_Bcast(&cycles, sizeof cycles, MPI_BYTE, 0, MPI_COMM_WORLD);
    void *page = find(), *nowhere = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 3; round++) {
        int out = rank + round, gives = !strcmp(argv[2], "all") || (set && !strcmp(set, argv[2]));
        /* Who is not the root need not say where the answers go. */
        MPI_Gather(&out, 1, MPI_INT, rank ? nowhere : all, 1, MPI_INT, 0, MPI_COMM_WORLD);
        void *from = gives && round == 1 && rank == 1 ? page : &out;
        MPI_Sendrecv(from, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        WANT(in == (rank + size - 1) % size + round);
    }
    if (rank == 0) printf("done %d\n", all[size - 1]);
    MPI_Finalize();
    return 0;
}

#endif
