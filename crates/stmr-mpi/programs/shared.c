/* Files of MPI's whose processes share a pointer: records in any order, each once, and parts in the
   order of the processes. */
#include <stdlib.h>

#include "want.h"

static int rank, size;

enum { RECORD = 32, EACH = 6 };

static int compare(const void *a, const void *b) { return memcmp(a, b, RECORD); }

static MPI_File begin(const char *name, int mode) {
    MPI_File file;
    WANT(!MPI_File_open(MPI_COMM_WORLD, name, mode | MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    return file;
}

/* Whoever comes first writes first; in the end each record stands there once. */
static void records(int round) {
    char line[RECORD + 1];
    MPI_Status status;
    MPI_Request request;
    MPI_Offset at;
    int count, n = size * EACH;
    MPI_File file = begin("records", MPI_MODE_DELETE_ON_CLOSE);
    for (int i = 0; i < EACH; i++) {
        snprintf(line, sizeof line, "round %3d rank %3d record %6d\n", round, rank, i);
        if (i % 2) {
            WANT(!MPI_File_write_shared(file, line, RECORD, MPI_CHAR, &status));
        } else {
            WANT(!MPI_File_iwrite_shared(file, line, RECORD, MPI_CHAR, &request));
            WANT(!MPI_Wait(&request, &status));
        }
        MPI_Get_count(&status, MPI_CHAR, &count);
        WANT(count == RECORD);
    }
    WANT(!MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!MPI_File_get_position_shared(file, &at) && at == n * RECORD);
    MPI_Barrier(MPI_COMM_WORLD);
    char *all = malloc(n * RECORD);
    WANT(!MPI_File_read_at(file, 0, all, n * RECORD, MPI_CHAR, &status));
    qsort(all, n, RECORD, compare);
    for (int i = 0; i < n; i++) {
        snprintf(line, sizeof line, "round %3d rank %3d record %6d\n", round, i / EACH, i % EACH);
        WANT(!memcmp(line, all + i * RECORD, RECORD));
    }
    WANT(!MPI_File_seek_shared(file, -(MPI_Offset)n * RECORD, MPI_SEEK_END));
    long mine = 0, sum;
    for (int i = 0; i < EACH; i++) {
        WANT(!MPI_File_read_shared(file, line, RECORD, MPI_CHAR, &status));
        mine += atoi(line + 15) * 1000 + atoi(line + 26);
    }
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    WANT(sum == 1000L * EACH * size * (size - 1) / 2 + (long)size * EACH * (EACH - 1) / 2);
    free(all);
    WANT(!MPI_File_close(&file));
}

/* Each process's part behind that of the one before it, whatever their lengths. */
static void in_order(int round) {
    double mine[64], back[64];
    MPI_Status status;
    MPI_Offset at;
    int n = 3 + (rank * 7 + round) % 11, count, all, before = 0;
    MPI_Exscan(&n, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) before = 0;
    MPI_Allreduce(&n, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) mine[i] = round * 1e4 + rank * 100 + i;
    MPI_File file = begin("ordered", 0);
    WANT(!MPI_File_set_view(file, 8 * (MPI_Offset)round, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
    WANT(!MPI_File_write_ordered(file, mine, n, MPI_DOUBLE, &status));
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(count == n && !MPI_File_get_position_shared(file, &at) && at == all);
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!MPI_File_write_ordered_begin(file, mine, n, MPI_DOUBLE));
    WANT(!MPI_File_write_ordered_end(file, mine, &status));
    WANT(!MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!MPI_File_read_at(file, all + before, back, n, MPI_DOUBLE, &status));
    WANT(!memcmp(mine, back, n * sizeof *mine));
    WANT(!MPI_File_get_position_shared(file, &at) && at == 2 * all);
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!MPI_File_seek_shared(file, all - at, MPI_SEEK_CUR));
    memset(back, 0, sizeof back);
    WANT(!MPI_File_read_ordered(file, back, n, MPI_DOUBLE, &status));
    WANT(!memcmp(mine, back, n * sizeof *mine));
    WANT(!MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    WANT(!MPI_File_read_ordered_begin(file, back, n, MPI_DOUBLE));
    WANT(!MPI_File_read_ordered_end(file, back, &status));
    WANT(!memcmp(mine, back, n * sizeof *mine));
    WANT(!MPI_File_close(&file));
}

/* A file that is opened to go on at its end. */
static void at_end(int round) {
    char line[RECORD + 1];
    MPI_Status status;
    MPI_File file = begin("log", MPI_MODE_APPEND);
    snprintf(line, sizeof line, "round %3d rank %3d at the end..\n", round, rank);
    WANT(!MPI_File_write_ordered(file, line, RECORD, MPI_CHAR, &status));
    WANT(!MPI_File_close(&file));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < (argc > 1 ? atoi(argv[1]) : 3); round++) {
        records(round);
        in_order(round);
        at_end(round);
        if (rank == 0) {
            printf("round %d\n", round);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
