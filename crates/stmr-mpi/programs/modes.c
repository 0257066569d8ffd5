/* Sends that are over at once however long they are, because the program gave a buffer for them; what takes that
   buffer back, which waits for them alone; requests of sends that nobody asks for again; and receives into more than
   messages have room in. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "want.h"

enum { LONG = 1 << 20, ROOM = 24 << 20 };

static int rank, size, right, left;
static char *out, *in, *buffer;

static void fill(int k) { memset(out, 'a' + (rank + k) % 20, LONG); }

static void came(int k) { WANT(in[0] == 'a' + (left + k) % 20 && in[LONG - 1] == in[0]); }

static void receive(int k) {
    MPI_Recv(in, LONG, MPI_BYTE, left, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    came(k);
}

/* Everybody sends before anybody receives. */
static void buffered(int k) {
    MPI_Request request;
    fill(k);
    WANT(!MPI_Bsend(out, LONG, MPI_BYTE, right, k, MPI_COMM_WORLD));
    receive(k);
    fill(k + 1);
    WANT(!MPI_Ibsend(out, LONG, MPI_BYTE, right, k + 1, MPI_COMM_WORLD, &request));
    WANT(!MPI_Wait(&request, MPI_STATUS_IGNORE));
    receive(k + 1);
#ifdef OPEN_MPI
    /* A plain run of such a send brings zeros. */
    return;
#endif
    WANT(!MPI_Bsend_init(out, LONG, MPI_BYTE, right, k + 2, MPI_COMM_WORLD, &request));
    for (int turn = 0; turn < 2; turn++) {
        fill(k + 2);
        WANT(!MPI_Start(&request) && !MPI_Wait(&request, MPI_STATUS_IGNORE));
        receive(k + 2);
    }
    WANT(!MPI_Request_free(&request));
}

/* More in all than the library would keep of others. */
static void many_buffered(int k) {
    fill(k);
    for (int i = 0; i < 20; i++) WANT(!MPI_Bsend(out, LONG, MPI_BYTE, right, k, MPI_COMM_WORLD));
    for (int i = 0; i < 20; i++) receive(k);
}

/* The buffer comes back though a send of another kind is under way. */
static void taken_back(int k) {
    MPI_Request request;
    void *back;
    int length, word = k, got;
    MPI_Barrier(MPI_COMM_WORLD);
    fill(k);
    MPI_Isend(out, LONG, MPI_BYTE, right, k, MPI_COMM_WORLD, &request);
    WANT(!MPI_Buffer_detach(&back, &length) && back == buffer && length == ROOM);
    WANT(!MPI_Buffer_attach(buffer, ROOM));
    MPI_Send(&word, 1, MPI_INT, right, k + 1, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, left, k + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    receive(k);
    WANT(got == k && !MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void let_go(int k) {
    MPI_Request request;
    fill(k);
    MPI_Send_init(out, LONG, MPI_BYTE, right, k, MPI_COMM_WORLD, &request);
    WANT(!MPI_Start(&request) && !MPI_Request_free(&request) && request == MPI_REQUEST_NULL);
    receive(k);
    MPI_Barrier(MPI_COMM_WORLD);
    fill(k + 1);
    MPI_Isend(out, LONG, MPI_BYTE, right, k + 1, MPI_COMM_WORLD, &request);
    WANT(!MPI_Request_free(&request) && request == MPI_REQUEST_NULL);
    receive(k + 1);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A short message into more than 2 GiB, of which nothing else is touched. */
static void into_much(int k) {
    const int n = 300000000;
    double own = rank + k;
    MPI_Status status;
    int got;
    double *much = mmap(NULL, n * sizeof *much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    WANT(much != MAP_FAILED);
    MPI_Bsend(&own, 1, MPI_DOUBLE, right, k, MPI_COMM_WORLD);
    WANT(!MPI_Recv(much, n, MPI_DOUBLE, left, k, MPI_COMM_WORLD, &status) && much[0] == left + k);
    WANT(!MPI_Get_count(&status, MPI_DOUBLE, &got) && got == 1);
    munmap(much, n * sizeof *much);
}

/* The largest tags that there are, by each way to find a message; and one that is none. */
static void far_tags(void) {
    MPI_Status status;
    MPI_Message message;
    int *max, found, got, class, code;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &max, &found);
    WANT(found && 32767 <= *max);
    for (int way = 0; way < 3; way++) {
        int tag = *max - way / 2, some = way == 1 ? MPI_ANY_TAG : tag;
        MPI_Bsend(&way, 1, MPI_INT, right, tag, MPI_COMM_WORLD);
        if (way == 0) WANT(!MPI_Mprobe(left, some, MPI_COMM_WORLD, &message, &status) && !MPI_Mrecv(&got, 1, MPI_INT, &message, &status));
        if (way == 1) WANT(!MPI_Recv(&got, 1, MPI_INT, left, some, MPI_COMM_WORLD, &status));
        if (way == 2) WANT(!MPI_Probe(left, some, MPI_COMM_WORLD, &status) && !MPI_Recv(&got, 1, MPI_INT, left, some, MPI_COMM_WORLD, &status));
        WANT(got == way && status.MPI_TAG == tag);
    }
    if (*max == 2147483647) return;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Send(&code, 1, MPI_INT, right, *max + 1, MPI_COMM_WORLD);
    WANT(!MPI_Error_class(code, &class) && class == MPI_ERR_TAG);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size, left = (rank + size - 1) % size;
    out = malloc(LONG), in = malloc(LONG), buffer = malloc(ROOM);
    WANT(!MPI_Buffer_attach(buffer, ROOM));
    far_tags();
    for (int k = 0; k < 10 * rounds; k += 10) {
        buffered(k);
        many_buffered(k + 3);
        taken_back(k + 4);
        let_go(k + 6);
        into_much(k + 8);
        if (rank == 0) printf("round %d\n", k / 10), fflush(stdout);
    }
    void *back;
    int length;
    WANT(!MPI_Buffer_detach(&back, &length) && back == buffer);
    MPI_Finalize();
    return 0;
}
