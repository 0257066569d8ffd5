/* Rows on the stack that are sent and were never written: what lies there is what calls have left that were
   over before. */
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "want.h"

enum { BYTES = 48 << 10 };

static int rank, size;

__attribute__((noinline)) static void send_what_is_there(void) {
    unsigned char row[BYTES], got[BYTES];
    MPI_Status status;
    /* The compiler knows neither of what they hold nor that they hold nothing. */
    __asm__ volatile("" : : "r"(row), "r"(got) : "memory");
    MPI_Sendrecv(row, BYTES, MPI_BYTE, (rank + 1) % size, 3, got, BYTES, MPI_BYTE, (rank + size - 1) % size, 3,
                 MPI_COMM_WORLD, &status);
    MPI_Bcast(row, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* Each kind of call that this process makes, deeper than what is sent later begins. */
static void call(int kind, int round) {
    double one = rank + round, sum;
    char text[256];
    struct timeval now;
    struct timespec then = {0, 1000};
    MPI_Request request;
    void *at;
    switch (kind) {
    case 0: MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
    case 1: MPI_Scan(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
    case 2: gettimeofday(&now, NULL), nanosleep(&then, NULL), time(NULL), clock_gettime(CLOCK_REALTIME, &then); break;
    case 3: sum = MPI_Wtime(), getpid(), gethostname(text, sizeof text); break;
    case 4: MPI_Ibarrier(MPI_COMM_WORLD, &request), MPI_Wait(&request, MPI_STATUS_IGNORE); break;
    case 5: at = malloc(100000 + 8 * round), free(at); break;
    case 6: WANT(getentropy(text, 64) == 0); break;
    case 7: MPI_Bcast(&one, 1, MPI_DOUBLE, size - 1, MPI_COMM_WORLD); break;
    default: if (rank == 0) printf("round %d\n", round), fflush(stdout);
    }
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < rounds; round++)
        for (int kind = 0; kind < 9; kind++) call(kind, round), send_what_is_there();
    MPI_Finalize();
    if (rank == 0) printf("%d processes, %d rounds\n", size, rounds);
    return 0;
}
