/* What a program does beside its way: it starts others before MPI_Init, and threads of it ask whether MPI is there
   while the first one communicates. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "want.h"

enum { THREADS = 2, ROUNDS = 20 };

static volatile int over;

static void *ask(void *nothing) {
    int begun = 1;
    while (!over && begun) {
        MPI_Initialized(&begun);
        usleep(200);
    }
    return begun ? nothing : "MPI is gone";
}

int main(int argc, char **argv) {
    int rank = -1, size, status, sum = 0;
    if (system("exit 3") != 3 << 8) return 4;
    pid_t child = fork();
    if (!child) exit(getpid() == getppid() ? 7 : 5);
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5) return 6;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &status);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) WANT(!pthread_create(&threads[i], NULL, ask, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        int own = rank + round + sum, other;
        MPI_Sendrecv(&own, 1, MPI_INT, (rank + 1) % size, 1, &other, 1, MPI_INT, (rank + size - 1) % size, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&other, &sum, 1, MPI_INT, MPI_BXOR, MPI_COMM_WORLD);
    }
    over = 1;
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        WANT(!pthread_join(threads[i], &failed) && !failed);
    }
    if (!rank) printf("%d processes, %d\n", size, sum);
    MPI_Finalize();
    return 0;
}
