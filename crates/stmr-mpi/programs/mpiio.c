/* MPI's own files: parts of one matrix through views, at places, one after the other, not waited
   for, as other machines read them; and what MPI says of files. */
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "want.h"

static int rank, size, is_late;

static void want_class(int code, int wanted) {
    int class;
    MPI_Error_class(code, &class);
    WANT(class == wanted);
}

enum { N = 48 };

/* Each process has a block of columns of an N x N matrix. */
static void columns(int round) {
    MPI_File file;
    MPI_Datatype block;
    MPI_Status status;
    int count, sizes[2] = {N, N}, parts[2] = {N, N / size}, starts[2] = {0, rank * (N / size)};
    int n = N * (N / size);
    double *mine = malloc(n * sizeof *mine), *back = calloc(n, sizeof *back);
    for (int i = 0; i < n; i++) mine[i] = round * 1e6 + rank * 1e4 + i;
    WANT(!MPI_File_open(MPI_COMM_WORLD, "matrix", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &block);
    MPI_Type_commit(&block);
    WANT(!MPI_File_set_view(file, 16, MPI_DOUBLE, block, "native", MPI_INFO_NULL));
    WANT(!MPI_File_write_all(file, mine, n, MPI_DOUBLE, &status));
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    WANT(count == n);
    MPI_Offset at;
    WANT(!MPI_File_get_position(file, &at) && at == n);
    WANT(!MPI_File_get_byte_offset(file, 1, &at) && at == 16 + 8 * (starts[1] + 1));
    WANT(!MPI_File_seek(file, 0, MPI_SEEK_SET));
    WANT(!MPI_File_read_all(file, back, n, MPI_DOUBLE, &status));
    WANT(!memcmp(mine, back, n * sizeof *mine));
    WANT(!MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    if (rank == 0) WANT(!MPI_File_write_at(file, 0, "sixteen bytes   ", 16, MPI_CHAR, &status));
    WANT(!MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(file, &at);
    WANT(at == 16 + 8 * N * N);
    char head[17] = "";
    MPI_Request request;
    WANT(!MPI_File_iread_at(file, 0, head, 16, MPI_CHAR, &request) && !MPI_Wait(&request, &status));
    WANT(!strcmp(head, "sixteen bytes   "));
    MPI_Type_free(&block);
    WANT(!MPI_File_close(&file) && file == MPI_FILE_NULL);
    free(mine);
    free(back);
}

/* What another machine reads as well: the highest byte first. */
static void external(void) {
    int mine[3], back[3] = {0};
    unsigned char last[4];
    char name[MPI_MAX_DATAREP_STRING];
    MPI_File file;
    MPI_Status status;
    MPI_Datatype kinds[2];
    MPI_Offset start;
    int count;
    for (int i = 0; i < 3; i++) mine[i] = 10 * rank + i;
    WANT(!MPI_File_open(MPI_COMM_WORLD, "external", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    WANT(!MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    WANT(!MPI_File_write_at_all(file, 3 * rank, mine, 3, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    WANT(count == 3);
    WANT(!MPI_File_read_at_all(file, 3 * rank, back, 3, MPI_INT, &status));
    WANT(!memcmp(mine, back, sizeof mine));
    WANT(!MPI_File_get_view(file, &start, &kinds[0], &kinds[1], name) && !strcmp(name, "external32"));
    WANT(!MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    WANT(!MPI_File_read_at(file, 4 + 12 * rank + 8, last, 4, MPI_BYTE, &status));
    WANT(last[0] == 0 && last[3] == 10 * rank + 2);
    WANT(!MPI_File_close(&file));
}

/* Numbers of which some bytes are no part of the value, alone and with others beside them.  What a plain run
   leaves in those bytes is chance, so the file goes. */
static void wide(void) {
    struct row { int place; long double value; double rest; } mine[2], back[2];
    long double out[3], in[3], *all = malloc(3 * size * sizeof *all);
    int lengths[3] = {1, 1, 1};
    MPI_Aint at[3] = {0, offsetof(struct row, value), offsetof(struct row, rest)};
    MPI_Datatype kinds[3] = {MPI_INT, MPI_LONG_DOUBLE, MPI_DOUBLE}, every, packed, row;
    MPI_File file;
    MPI_Status status;
    memset(out, 0, sizeof out);
    memset(mine, 0, sizeof mine);
    for (int i = 0; i < 3; i++) out[i] = rank + i / 8.0L;
    for (int i = 0; i < 2; i++) mine[i].place = 10 * rank + i, mine[i].value = 1.5L + mine[i].place, mine[i].rest = i;
    MPI_Type_vector(3, 1, size, MPI_LONG_DOUBLE, &every);
    MPI_Type_commit(&every);
    MPI_Type_create_struct(3, lengths, at, kinds, &packed);
    MPI_Type_create_resized(packed, 0, sizeof *mine, &row);
    MPI_Type_commit(&row);
    WANT(!MPI_File_open(MPI_COMM_WORLD, "wide", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    WANT(!MPI_File_set_view(file, sizeof *out * rank, MPI_LONG_DOUBLE, every, "native", MPI_INFO_NULL));
    WANT(!MPI_File_write_all(file, out, 3, MPI_LONG_DOUBLE, &status));
    WANT(!MPI_File_read_at_all(file, 0, in, 3, MPI_LONG_DOUBLE, &status));
    MPI_Offset end = 3 * size * sizeof *out;
    WANT(!MPI_File_set_view(file, end, row, row, "native", MPI_INFO_NULL));
    WANT(!MPI_File_write_at_all(file, 2 * rank, mine, 2, row, &status));
    WANT(!MPI_File_read_at_all(file, 2 * rank, back, 2, row, &status));
    WANT(!MPI_File_sync(file) && !MPI_Barrier(MPI_COMM_WORLD) && !MPI_File_sync(file));
    WANT(!MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    WANT(!MPI_File_read_at_all(file, 0, all, end, MPI_BYTE, &status));
    for (int i = 0; i < 3; i++) WANT(in[i] == out[i]);
    for (int i = 0; i < 3 * size; i++) WANT(all[i] == i % size + i / size / 8.0L);
    for (int i = 0; i < 2; i++) WANT(back[i].place == mine[i].place && back[i].value == mine[i].value && back[i].rest == mine[i].rest);
    WANT(!MPI_File_read_at_all(file, end + 2 * rank * sizeof *mine, back, sizeof back, MPI_BYTE, &status));
    for (int i = 0; i < 2; i++) WANT(back[i].place == mine[i].place && back[i].value == mine[i].value && back[i].rest == mine[i].rest);
    WANT(!MPI_File_close(&file));
    MPI_Type_free(&every);
    MPI_Type_free(&packed);
    MPI_Type_free(&row);
    free(all);
}

/* Lines one behind the other, each process at its own place; types with holes in memory. */
static void lines(void) {
    MPI_File file;
    MPI_Status status;
    char line[32], row[2 * 32];
    WANT(!MPI_File_open(MPI_COMM_WORLD, "lines", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    /* To set the size is to write: nobody does so at the same time. */
    WANT(!MPI_File_set_size(file, 0) && !MPI_File_sync(file) && !MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "rank %2d line %2d %14s\n", rank, i, "of lines");
        for (int j = 0; j < 31; j++) row[2 * j] = line[j], row[2 * j + 1] = '?';
        MPI_Datatype every;
        MPI_Type_vector(31, 1, 2, MPI_CHAR, &every);
        MPI_Type_commit(&every);
        MPI_Offset at = 31L * (i * size + rank);
        if (i % 2) {
            WANT(!MPI_File_write_at_all_begin(file, at, row, 1, every) && !MPI_File_write_at_all_end(file, row, &status));
        } else {
            WANT(!MPI_File_seek(file, at, MPI_SEEK_SET) && !MPI_File_write(file, row, 1, every, &status));
        }
        MPI_Type_free(&every);
    }
    want_class(MPI_File_read_at(file, 0, line, 1, MPI_CHAR, &status), MPI_ERR_ACCESS);
    WANT(!MPI_File_close(&file));
    WANT(!MPI_File_open(MPI_COMM_SELF, "lines", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    int count;
    WANT(!MPI_File_read_at(file, 31L * 4 * size - 10, line, 31, MPI_CHAR, &status));
    MPI_Get_count(&status, MPI_CHAR, &count);
    WANT(count == 10);
    WANT(!MPI_File_close(&file));
}

/* With replicas: process 0 dies in one set, and process 2 of that set comes late to every file. */
static void die_and_be_late(void) {
    const char *set = getenv("SELVEDGE_SET");
    if (!set || strcmp(set, "2")) return;
    if (rank == 0) raise(SIGKILL);
    if (rank == 2) is_late = 1;
}

static void wait_if_late(void) {
    if (is_late) usleep(300000);
}

static void names(void) {
    MPI_File file;
    want_class(MPI_File_open(MPI_COMM_WORLD, "none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    int mode = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, got;
    wait_if_late();
    WANT(!MPI_File_open(MPI_COMM_WORLD, "short", mode, MPI_INFO_NULL, &file));
    WANT(!MPI_File_get_amode(file, &got) && got == mode);
    WANT(!MPI_File_preallocate(file, 100) && !MPI_File_close(&file));
    WANT(access("short", F_OK));
    if (rank == 0) {
        FILE *brief = fopen("brief", "w");
        WANT(brief && fputs("brief\n", brief) >= 0 && !fclose(brief));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    wait_if_late();
    FILE *brief = fopen("brief", "r");
    WANT(brief && fgetc(brief) == 'b' && !fclose(brief));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) WANT(!unlink("brief"));
    if (rank == 0) want_class(MPI_File_delete("none", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < (argc > 1 ? atoi(argv[1]) : 3); round++) {
        columns(round);
        if (rank == 0) {
            printf("round %d\n", round);
            fflush(stdout);
        }
    }
    if (argc > 2) die_and_be_late();
    lines();
    wide();
    external();
    names();
    MPI_Finalize();
    return 0;
}
