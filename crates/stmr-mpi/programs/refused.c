/* Calls on MPI's files that are refused: what each returns, and which handler of the program's hears
   of it.
   usage: refused [fatal|abort] */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { ROOM = 1 << 15 };

/* What this process has to tell.  One process prints it all. */
static char told[ROOM];
static int n_told;

static const char *heard;
static MPI_File file;

static void hear_none(MPI_File *it, int *code, ...) {
    (void)code;
    heard = *it == MPI_FILE_NULL ? "that of no file" : "that of no file, about another";
}

static void hear(MPI_File *it, int *code, ...) {
    int amode;
    (void)code;
    /* What a handler calls is the program's own. */
    heard = *it == file && MPI_File_get_amode(file, &amode) == MPI_SUCCESS ? "the file's" : "the file's, about another";
}

static void tell(const char *call, int code) {
    int class;
    MPI_Error_class(code, &class);
    n_told += snprintf(told + n_told, ROOM - n_told, "  %s: %d, heard by %s\n", call, class, heard ? heard : "nobody");
    heard = NULL;
}

#define TRY(call) tell(#call, call)
#define ALL MPI_COMM_WORLD
#define NONE MPI_INFO_NULL

static void open_wrong(void) {
    MPI_File it;
    TRY(MPI_File_open(ALL, "missing", MPI_MODE_RDONLY, NONE, &it));
    TRY(MPI_File_open(ALL, "missing/there", MPI_MODE_RDWR | MPI_MODE_CREATE, NONE, &it));
    TRY(MPI_File_open(ALL, "data", MPI_MODE_RDONLY | MPI_MODE_RDWR, NONE, &it));
    TRY(MPI_File_open(ALL, "data", MPI_MODE_RDONLY | MPI_MODE_CREATE, NONE, &it));
    TRY(MPI_File_open(ALL, "data", MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, NONE, &it));
    TRY(MPI_File_delete("missing", NONE));
}

static void use_wrong(MPI_File it, int on_none) {
    int some[4] = {0};
    MPI_Offset at;
    MPI_Status status;
    TRY(MPI_File_get_size(it, &at));
    if (on_none) {
        TRY(MPI_File_close(&it));
        TRY(MPI_File_get_amode(it, some));
        TRY(MPI_File_write(it, some, 1, MPI_INT, &status));
        return;
    }
    TRY(MPI_File_seek(it, -8, MPI_SEEK_SET));
    TRY(MPI_File_seek(it, 0, 77));
    TRY(MPI_File_set_size(it, -1));
    TRY(MPI_File_write(it, some, -1, MPI_INT, &status));
    TRY(MPI_File_write(it, some, 1, MPI_DATATYPE_NULL, &status));
    TRY(MPI_File_set_view(it, 0, MPI_INT, MPI_INT, "another", NONE));
    TRY(MPI_File_set_view(it, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", NONE));
    TRY(MPI_File_set_view(it, 0, MPI_INT, MPI_SHORT, "native", NONE));
    TRY(MPI_File_call_errhandler(it, MPI_ERR_OTHER));
}

static void open_file(int mode) {
    if (MPI_File_open(ALL, "data", mode, NONE, &file) != MPI_SUCCESS) {
        fprintf(stderr, "the file that all calls are about cannot be opened\n");
        MPI_Abort(ALL, 9);
    }
}

static void try_modes(void) {
    int some = 0;
    MPI_Status status;
    open_file(MPI_MODE_RDONLY);
    n_told += snprintf(told + n_told, ROOM - n_told, " to read alone\n");
    TRY(MPI_File_write(file, &some, 1, MPI_INT, &status));
    MPI_File_close(&file);
    open_file(MPI_MODE_WRONLY);
    n_told += snprintf(told + n_told, ROOM - n_told, " to write alone\n");
    TRY(MPI_File_read(file, &some, 1, MPI_INT, &status));
    MPI_File_close(&file);
    open_file(MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    n_told += snprintf(told + n_told, ROOM - n_told, " in sequence\n");
    TRY(MPI_File_write_at(file, 0, &some, 1, MPI_INT, &status));
    TRY(MPI_File_seek(file, 0, MPI_SEEK_SET));
    TRY(MPI_File_write(file, &some, 1, MPI_INT, &status));
    MPI_File_close(&file);
}

static void try_all(void) {
    MPI_Errhandler of_none, of_file, now;
    open_file(MPI_MODE_RDWR);
    n_told += snprintf(told + n_told, ROOM - n_told, " without a handler\n");
    open_wrong();
    use_wrong(MPI_FILE_NULL, 1);
    use_wrong(file, 0);
    MPI_File_create_errhandler(hear_none, &of_none);
    MPI_File_create_errhandler(hear, &of_file);
    TRY(MPI_File_set_errhandler(MPI_FILE_NULL, of_none));
    TRY(MPI_File_set_errhandler(file, of_file));
    n_told += snprintf(told + n_told, ROOM - n_told, " with handlers\n");
    open_wrong();
    use_wrong(MPI_FILE_NULL, 1);
    use_wrong(file, 0);
    /* Files of MPICH's let go of a handler that they had from the beginning, and have never held it. */
    for (int n = 0; n < 8; n++) MPI_File_get_errhandler(MPI_FILE_NULL, &now);
    n_told += snprintf(told + n_told, ROOM - n_told, " the same handler: %d\n", now == of_none);
    MPI_File_close(&file);
    n_told += snprintf(told + n_told, ROOM - n_told, " with a handler that was there before the file\n");
    open_file(MPI_MODE_RDWR);
    TRY(MPI_File_seek(file, -8, MPI_SEEK_SET));
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    TRY(MPI_File_seek(file, -8, MPI_SEEK_SET));
    MPI_File_close(&file);
    try_modes();
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(ALL, &rank);
    MPI_Comm_size(ALL, &size);
    open_file(MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_File_close(&file);
    if (argc > 1) {
#ifdef MPI_ERRORS_ABORT
        if (strcmp(argv[1], "abort") == 0) MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ABORT);
#endif
        if (strcmp(argv[1], "fatal") == 0) MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
        MPI_File_open(ALL, "missing", MPI_MODE_RDONLY, NONE, &file);
        printf("it went on\n");
        MPI_Finalize();
        return 0;
    }
    try_all();
    for (int from = 0; from < size; from++) {
        if (rank == 0 && from > 0) MPI_Recv(told, ROOM, MPI_CHAR, from, 0, ALL, MPI_STATUS_IGNORE);
        if (rank == 0) printf("process %d\n%s", from, told);
        if (rank == from && from > 0) MPI_Send(told, strlen(told) + 1, MPI_CHAR, 0, 0, ALL);
    }
    MPI_Finalize();
    return 0;
}
