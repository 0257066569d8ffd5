/* All ways to write and to read a file of MPI's: at places, where each process stands, and where all
   stand; by itself and together; waited for at once, by a request, and by an end of its own.  Each
   process reads what its neighbour wrote.  bigfileforms.c is the same with large counts. */
#include <stdlib.h>

#include "want.h"

#ifndef COUNT
#define COUNT int
#define EXTENT MPI_Aint
#endif

enum { N = 40, WAYS = 5, ROUNDS = 2 };

static int rank, size, right;

typedef int WriteAt(MPI_File, MPI_Offset, const void *, COUNT, MPI_Datatype, MPI_Status *);
typedef int ReadAt(MPI_File, MPI_Offset, void *, COUNT, MPI_Datatype, MPI_Status *);
typedef int IwriteAt(MPI_File, MPI_Offset, const void *, COUNT, MPI_Datatype, MPI_Request *);
typedef int IreadAt(MPI_File, MPI_Offset, void *, COUNT, MPI_Datatype, MPI_Request *);
typedef int Write(MPI_File, const void *, COUNT, MPI_Datatype, MPI_Status *);
typedef int Read(MPI_File, void *, COUNT, MPI_Datatype, MPI_Status *);
typedef int Iwrite(MPI_File, const void *, COUNT, MPI_Datatype, MPI_Request *);
typedef int Iread(MPI_File, void *, COUNT, MPI_Datatype, MPI_Request *);

static WriteAt *const writes_at[2] = {MPI_File_write_at, MPI_File_write_at_all};
static ReadAt *const reads_at[2] = {MPI_File_read_at, MPI_File_read_at_all};
static IwriteAt *const iwrites_at[2] = {MPI_File_iwrite_at, MPI_File_iwrite_at_all};
static IreadAt *const ireads_at[2] = {MPI_File_iread_at, MPI_File_iread_at_all};
static Write *const writes[2] = {MPI_File_write, MPI_File_write_all};
static Read *const reads[2] = {MPI_File_read, MPI_File_read_all};
static Iwrite *const iwrites[2] = {MPI_File_iwrite, MPI_File_iwrite_all};
static Iread *const ireads[2] = {MPI_File_iread, MPI_File_iread_all};

#include "cells.h"

static void came(MPI_Status *status) {
    COUNT n = -1;
    WANT(!MPI_Get_count(status, MPI_INT, &n) && n == N);
}

static void done(MPI_Request *request) {
    MPI_Status status;
    WANT(!MPI_Wait(request, &status) && *request == MPI_REQUEST_NULL);
    came(&status);
}

/* Until here all have written, and from here all read. */
static void written(MPI_File file) {
    WANT(!MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!MPI_File_sync(file));
}

static MPI_File opened(const char *name) {
    MPI_File file;
    WANT(!MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    WANT(!MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    return file;
}

/* Where a process writes in one of the ways. */
static MPI_Offset place(int way, int who) { return (MPI_Offset)N * (way * size + who); }

static long at_places(int k) {
    int own[WAYS][N], got[N];
    long sum = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_File file = opened("at_places");
    for (int way = 0; way < WAYS; way++) fill(own[way], way + k);
    for (int way = 0; way < 2; way++) {
        WANT(!writes_at[way](file, place(way, rank), own[way], N, MPI_INT, &status));
        came(&status);
        WANT(!iwrites_at[way](file, place(2 + way, rank), own[2 + way], N, MPI_INT, &request));
        done(&request);
    }
    WANT(!MPI_File_write_at_all_begin(file, place(4, rank), own[4], N, MPI_INT));
    WANT(!MPI_File_write_at_all_end(file, own[4], &status));
    came(&status);
    written(file);
    for (int way = 0; way < 2; way++) {
        memset(got, 0, sizeof got);
        WANT(!reads_at[way](file, place(way, right), got, N, MPI_INT, &status));
        came(&status);
        sum += sum_of(got, right, way + k);
        WANT(!ireads_at[way](file, place(2 + way, right), got, N, MPI_INT, &request));
        done(&request);
        sum += sum_of(got, right, 2 + way + k);
    }
    WANT(!MPI_File_read_at_all_begin(file, place(4, right), got, N, MPI_INT));
    WANT(!MPI_File_read_at_all_end(file, got, &status));
    came(&status);
    sum += sum_of(got, right, 4 + k);
    WANT(!MPI_File_close(&file) && file == MPI_FILE_NULL);
    return sum;
}

/* Goes to a place of its own, and is told that it stands behind what it passed. */
static void go(MPI_File file, int way, int who) {
    WANT(!MPI_File_seek(file, place(way, who), MPI_SEEK_SET));
}

static void stands(MPI_File file, int way, int who) {
    MPI_Offset at;
    WANT(!MPI_File_get_position(file, &at) && at == place(way, who) + N);
}

static void write_where_it_stands(MPI_File file, int own[WAYS][N]) {
    MPI_Request request;
    MPI_Status status;
    for (int way = 0; way < 2; way++) {
        go(file, way, rank);
        WANT(!writes[way](file, own[way], N, MPI_INT, &status));
        came(&status), stands(file, way, rank);
        go(file, 2 + way, rank);
        WANT(!iwrites[way](file, own[2 + way], N, MPI_INT, &request));
        done(&request), stands(file, 2 + way, rank);
    }
    go(file, 4, rank);
    WANT(!MPI_File_write_all_begin(file, own[4], N, MPI_INT));
    WANT(!MPI_File_write_all_end(file, own[4], &status));
    came(&status), stands(file, 4, rank);
}

static long where_each_stands(int k) {
    int own[WAYS][N], got[N];
    long sum = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_File file = opened("where_each_stands");
    for (int way = 0; way < WAYS; way++) fill(own[way], way + k);
    write_where_it_stands(file, own);
    written(file);
    for (int way = 0; way < 2; way++) {
        memset(got, 0, sizeof got), go(file, way, right);
        WANT(!reads[way](file, got, N, MPI_INT, &status));
        came(&status), stands(file, way, right);
        sum += sum_of(got, right, way + k);
        go(file, 2 + way, right);
        WANT(!ireads[way](file, got, N, MPI_INT, &request));
        done(&request), stands(file, 2 + way, right);
        sum += sum_of(got, right, 2 + way + k);
    }
    go(file, 4, right);
    WANT(!MPI_File_read_all_begin(file, got, N, MPI_INT));
    WANT(!MPI_File_read_all_end(file, got, &status));
    came(&status), stands(file, 4, right);
    sum += sum_of(got, right, 4 + k);
    WANT(!MPI_File_close(&file));
    return sum;
}

/* The sum of a block that some process wrote; all together get each block once. */
static long block_of_any(const int *got, int k, int *n_from) {
    int from = got[0] / 1000;
    WANT(0 <= from && from < size);
    n_from[from]++;
    return sum_of(got, from, k);
}

static long in_any_order(int k) {
    int own[2][N], got[N], n_from[2][64] = {{0}}, n_all[2][64];
    long sum = 0;
    MPI_Offset at;
    MPI_Request request;
    MPI_Status status;
    MPI_File file = opened("in_any_order");
    fill(own[0], k), fill(own[1], k + 1);
    WANT(!MPI_File_write_shared(file, own[0], N, MPI_INT, &status));
    came(&status);
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!MPI_File_iwrite_shared(file, own[1], N, MPI_INT, &request));
    done(&request);
    written(file);
    WANT(!MPI_File_get_position_shared(file, &at) && at == place(2, 0));
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    WANT(!MPI_File_read_shared(file, got, N, MPI_INT, &status));
    came(&status);
    sum += block_of_any(got, k, n_from[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    WANT(!MPI_File_iread_shared(file, got, N, MPI_INT, &request));
    done(&request);
    sum += block_of_any(got, k + 1, n_from[1]);
    MPI_Allreduce(n_from, n_all, 128, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) WANT(n_all[0][i] == 1 && n_all[1][i] == 1);
    WANT(!MPI_File_close(&file));
    return sum;
}

static long in_order(int k) {
    int own[2][N], got[N];
    MPI_Status status;
    MPI_File file = opened("in_order");
    fill(own[0], k), fill(own[1], k + 1);
    WANT(!MPI_File_write_ordered(file, own[0], N, MPI_INT, &status));
    came(&status);
    WANT(!MPI_File_write_ordered_begin(file, own[1], N, MPI_INT));
    WANT(!MPI_File_write_ordered_end(file, own[1], &status));
    came(&status);
    written(file);
    WANT(!MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    WANT(!MPI_File_read_ordered(file, got, N, MPI_INT, &status));
    came(&status);
    long sum = sum_of(got, rank, k);
    WANT(!MPI_File_read_ordered_begin(file, got, N, MPI_INT));
    WANT(!MPI_File_read_ordered_end(file, got, &status));
    came(&status);
    sum += sum_of(got, rank, k + 1);
    WANT(!MPI_File_close(&file));
    return sum;
}

/* What files say of themselves. */
static void about(void) {
    int atomic = -1, result, n, flag;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    EXTENT extent = -1;
    MPI_Group group, world;
    MPI_Info info;
    MPI_File file = opened("about");
    WANT(!MPI_File_get_atomicity(file, &atomic) && atomic == 0);
    WANT(!MPI_File_set_atomicity(file, 1));
    WANT(!MPI_File_get_atomicity(file, &atomic) && atomic == 1);
    WANT(!MPI_File_set_atomicity(file, 0));
    WANT(!MPI_File_get_atomicity(file, &atomic) && atomic == 0);
    WANT(!MPI_File_get_group(file, &group) && !MPI_Comm_group(MPI_COMM_WORLD, &world));
    WANT(!MPI_Group_compare(group, world, &result) && result == MPI_IDENT);
    MPI_Group_free(&group), MPI_Group_free(&world);
    WANT(!MPI_File_get_type_extent(file, MPI_DOUBLE, &extent) && extent == sizeof(double));
    WANT(!MPI_Info_create(&info) && !MPI_Info_set(info, "collective_buffering", "true"));
    WANT(!MPI_File_set_info(file, info) && !MPI_Info_free(&info));
    /* MPI need not keep the hint, but may not make another of it. */
    WANT(!MPI_File_get_info(file, &info) && info != MPI_INFO_NULL && !MPI_Info_get_nkeys(info, &n) && n >= 0);
    WANT(!MPI_Info_get(info, "collective_buffering", MPI_MAX_INFO_VAL, value, &flag));
    WANT(!flag || !strcmp(value, "true"));
    WANT(!MPI_Info_free(&info));
#ifndef MPI_ABI_VERSION
    WANT(MPI_File_f2c(MPI_File_c2f(file)) == file);
    WANT(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
#endif
#if MPI_VERSION >= 5
    WANT(MPI_File_fromint(MPI_File_toint(file)) == file);
    WANT(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
#endif
    WANT(!MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) WANT(!MPI_File_delete("about", MPI_INFO_NULL));
    if (rank == 0) printf("about: %d\n", (int)extent), fflush(stdout);
}

static void show(const char *what, long own) {
    long all = 0;
    MPI_Reduce(&own, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s: %ld\n", what, all), fflush(stdout);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size;
    about();
    for (int round = 0; round < ROUNDS; round++) {
        show("at places", at_places(round));
        show("where each stands", where_each_stands(round));
        show("in any order", in_any_order(round));
        show("in order", in_order(round));
    }
    MPI_Finalize();
    return 0;
}
