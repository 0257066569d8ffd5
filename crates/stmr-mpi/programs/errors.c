/* Calls that MPI refuses: what each returns, and which handler of the program's hears of it.
   usage: errors [fatal] */
#include <mpi.h>
#include <stdio.h>

enum { ROOM = 1 << 16 };

/* What this process has to tell.  One process prints it all: a launcher cuts long outputs of several
   in the middle of their lines. */
static char told[ROOM];
static int n_told;

/* The codes, and what MPI says of them: no two runs need have the same, but all replicas have. */
enum { CODES = 256, TEXT = 1 << 17 };
static int codes[CODES], n_codes;
static char texts[TEXT];
static int n_texts;

static MPI_Comm both;
static const char *heard;
static int rank_there;

static void keep(int code) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    if (n_codes < CODES) codes[n_codes++] = code;
    n_texts += snprintf(texts + n_texts, TEXT - n_texts, "%s\n", text);
}

/* What a handler calls is the program's own: it sees the ranks of the program. */
static void hear(MPI_Comm *comm, int *code, ...) {
    int class;
    MPI_Error_class(*code, &class);
    keep(*code);
    heard = *comm == MPI_COMM_WORLD ? "the world" : *comm == MPI_COMM_SELF ? "the process" : *comm == both ? "the copy" : "another";
    MPI_Comm_rank(*comm, &rank_there);
}

static void tell(const char *call, int code) {
    int rank, class;
    keep(code);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Error_class(code, &class);
    n_told += snprintf(told + n_told, ROOM - n_told, "%d: %s: %d, heard by %s as %d\n", rank, call, class,
                       heard ? heard : "nobody", rank_there);
    heard = NULL;
    rank_there = -1;
}

#define TRY(call) tell(#call, call)

static void try_all(void) {
    static int one, many[8];
    int size, n;
    void *value;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm own = MPI_COMM_SELF, world = MPI_COMM_WORLD, none = MPI_COMM_NULL, made;
    TRY(MPI_Comm_free(&own));
    TRY(MPI_Comm_free(&world));
    TRY(MPI_Comm_free(&none));
    TRY(MPI_Comm_rank(none, &n));
    TRY(MPI_Comm_size(none, &n));
    TRY(MPI_Comm_dup(none, &made));
    TRY(MPI_Comm_split(none, 0, 0, &made));
    TRY(MPI_Comm_test_inter(none, &n));
    TRY(MPI_Comm_compare(none, world, &n));
    TRY(MPI_Comm_get_attr(world, MPI_KEYVAL_INVALID, &value, &n));
    TRY(MPI_Comm_set_errhandler(world, MPI_ERRHANDLER_NULL));
    TRY(MPI_Barrier(none));

    MPI_Datatype type = MPI_INT, loose;
    MPI_Op op = MPI_SUM;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Type_contiguous(2, MPI_INT, &loose);
    TRY(MPI_Type_size(MPI_DATATYPE_NULL, &n));
    TRY(MPI_Type_free(&type));
    TRY(MPI_Op_free(&op));
    TRY(MPI_Group_size(group, &n));

    TRY(MPI_Send(&one, 1, MPI_INT, size, 0, both));
    TRY(MPI_Send(&one, 1, MPI_INT, -77, 0, both));
    TRY(MPI_Send(&one, 1, MPI_INT, 0, -77, both));
    TRY(MPI_Send(&one, -1, MPI_INT, 0, 0, both));
    TRY(MPI_Send(NULL, 1, MPI_INT, 0, 0, both));
    TRY(MPI_Send(&one, 1, MPI_DATATYPE_NULL, 0, 0, both));
    TRY(MPI_Send(many, 1, loose, 0, 0, both));
    TRY(MPI_Send(&one, 1, MPI_INT, 0, 0, none));
    TRY(MPI_Recv(&one, 1, MPI_INT, size, 0, both, MPI_STATUS_IGNORE));
    TRY(MPI_Recv(&one, 1, MPI_INT, 0, -77, both, MPI_STATUS_IGNORE));
    TRY(MPI_Recv(many, 1, loose, 0, 0, both, MPI_STATUS_IGNORE));
    TRY(MPI_Sendrecv(&one, 1, MPI_INT, 0, 0, many, -1, MPI_INT, 0, 0, both, MPI_STATUS_IGNORE));
    TRY(MPI_Probe(size, 0, both, MPI_STATUS_IGNORE));
    MPI_Request request = MPI_REQUEST_NULL, two[2];
    TRY(MPI_Isend(&one, 1, MPI_INT, size, 0, both, &request));
    TRY(MPI_Recv_init(&one, 1, MPI_INT, size, 0, both, &request));
    request = MPI_REQUEST_NULL;
    TRY(MPI_Request_free(&request));
    TRY(MPI_Cancel(&request));
    TRY(MPI_Start(&request));
    MPI_Type_free(&loose);

    TRY(MPI_Bcast(&one, 1, MPI_INT, size, both));
    TRY(MPI_Bcast(&one, 1, MPI_INT, -77, both));
    TRY(MPI_Bcast(&one, -1, MPI_INT, 0, both));
    TRY(MPI_Bcast(&one, 1, MPI_DATATYPE_NULL, 0, both));
    TRY(MPI_Reduce(&one, many, 1, MPI_INT, MPI_SUM, size, both));
    TRY(MPI_Allreduce(&one, many, 1, MPI_INT, MPI_OP_NULL, both));
    TRY(MPI_Gather(&one, -1, MPI_INT, many, -1, MPI_INT, 0, both));
    TRY(MPI_Ibcast(&one, 1, MPI_INT, size, both, &request));

    int rank, at_once[8] = {0};
    MPI_Status statuses[2];
    MPI_Comm_rank(both, &rank);
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    TRY(MPI_Sendrecv(at_once, 8, MPI_INT, next, 1, many, 2, MPI_INT, last, 1, both, MPI_STATUS_IGNORE));
    MPI_Irecv(many, 2, MPI_INT, last, 2, both, &two[0]);
    MPI_Isend(at_once, 8, MPI_INT, next, 2, both, &two[1]);
    TRY(MPI_Waitall(2, two, statuses));
    MPI_Irecv(many, 2, MPI_INT, last, 3, both, &two[0]);
    MPI_Isend(at_once, 8, MPI_INT, next, 3, both, &two[1]);
    TRY(MPI_Wait(&two[0], MPI_STATUS_IGNORE));
    TRY(MPI_Wait(&two[1], MPI_STATUS_IGNORE));
    TRY(MPI_Comm_call_errhandler(both, MPI_ERR_OTHER));
    TRY(MPI_Comm_call_errhandler(world, MPI_ERR_OTHER));
    MPI_File file;
    TRY(MPI_File_open(none, "nothing", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
}

int main(int argc, char **argv) {
    int rank, all;
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (1 < argc) {
        if (rank == 2) {
            MPI_Send(&rank, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);
            printf("it went on\n");
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Errhandler handlers[] = {handler, MPI_ERRORS_RETURN};
    for (int it = 0; it < 2; it++) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handlers[it]);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, handlers[it]);
        MPI_Comm_dup(MPI_COMM_WORLD, &both);
        try_all();
        MPI_Comm_free(&both);
    }
    MPI_Errhandler_free(&handler);
    MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    n_told += snprintf(told + n_told, ROOM - n_told, "%d: all ranks make %d\n", rank, all);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int largest[CODES];
    MPI_Allreduce(codes, largest, n_codes, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Sendrecv_replace(texts, TEXT, MPI_CHAR, (rank + 1) % size, 8, (rank + size - 1) % size, 8, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Send(told, n_told, MPI_CHAR, 0, 9, MPI_COMM_WORLD);
    for (int from = 0; rank == 0 && from < size; from++) {
        MPI_Status status;
        if (from != 0) {
            MPI_Recv(told, ROOM, MPI_CHAR, from, 9, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_CHAR, &n_told);
        }
        printf("%.*s", n_told, told);
    }
    MPI_Finalize();
    return 0;
}
