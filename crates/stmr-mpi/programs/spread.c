/* Data that are spread: views of files and accesses to windows by types of every kind, and by types that span
   far more memory than they have bytes.  Each process prints what it found.
   usage: spread */
#include <stdlib.h>
#include <sys/mman.h>

#include "want.h"

static int rank, size;

enum { KINDS = 17, ROOM = 4096 };

static unsigned long sum_of(const void *row, size_t length) {
    const unsigned char *bytes = row;
    unsigned long sum = 0;
    for (size_t i = 0; i < length; i++) sum = sum * 31 + bytes[i];
    return sum;
}

/* Types of ints, all in order, as views want them. */
static MPI_Datatype kind(int which) {
    MPI_Datatype type, inner, other;
    int two[2] = {2, 3}, places[2] = {1, 6}, order = which % 2 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    MPI_Aint bytes[2] = {4, 40};
    int sizes[3] = {4, 6, 5}, parts[3] = {2, 3, 4}, starts[3] = {1, 2, 0};
    int ways[3] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
    int by[3] = {2, MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, all[3] = {2, 2, 1};
    int ones[3] = {MPI_DISTRIBUTE_DFLT_DARG, 4, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Datatype mixed[2] = {MPI_DOUBLE_INT, MPI_SHORT_INT};
    MPI_Aint far[2] = {16, 64};
    switch (which) {
    case 0: MPI_Type_contiguous(5, MPI_INT, &type); break;
    case 1: MPI_Type_vector(3, 2, 4, MPI_INT, &type); break;
    case 2: MPI_Type_create_hvector(3, 2, 20, MPI_INT, &type); break;
    case 3: MPI_Type_indexed(2, two, places, MPI_INT, &type); break;
    case 4: MPI_Type_create_hindexed(2, two, bytes, MPI_INT, &type); break;
    case 5: MPI_Type_create_indexed_block(2, 3, places, MPI_INT, &type); break;
    case 6: MPI_Type_create_hindexed_block(2, 2, bytes, MPI_INT, &type); break;
    case 7: MPI_Type_create_struct(2, two, far, mixed, &type); break;
    case 8:
    case 9: MPI_Type_create_subarray(3, sizes, parts, starts, order, MPI_INT, &type); break;
    case 10:
    case 11: MPI_Type_create_darray(4, rank % 4, 3, sizes, ways, by, all, order, MPI_INT, &type); break;
    case 12: MPI_Type_create_darray(4, rank % 4, 3, sizes, ways, ones, all, order, MPI_INT, &type); break;
    case 13:
        MPI_Type_vector(2, 1, 3, MPI_INT, &inner);
        MPI_Type_create_resized(inner, 0, 24, &other);
        MPI_Type_vector(2, 2, 3, other, &type);
        MPI_Type_free(&inner);
        MPI_Type_free(&other);
        break;
    case 14:
        MPI_Type_create_subarray(3, sizes, parts, starts, order, MPI_SHORT_INT, &inner);
        MPI_Type_dup(inner, &type);
        MPI_Type_free(&inner);
        break;
    case 15:
        MPI_Type_create_resized(MPI_INT, 0, 12, &inner);
        MPI_Type_contiguous(4, inner, &type);
        MPI_Type_free(&inner);
        break;
    default:
        MPI_Type_contiguous(3, MPI_DOUBLE_INT, &inner);
        MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){0, 80}, inner, &type);
        MPI_Type_free(&inner);
        break;
    }
    MPI_Type_commit(&type);
    return type;
}

/* Whether values of a type lie apart by themselves: MPICH's files take those for bytes side by side. */
static int is_of_pairs(int which) {
    return which == 7 || which == 14 || which == 16;
}

/* Three of a type and a bit, in the file's order, each process in a part of the file of its own. */
static void views(void) {
    MPI_File file;
    MPI_Status status;
    static char mine[ROOM], back[ROOM];
    WANT(!MPI_File_open(MPI_COMM_WORLD, "kinds", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    /* What stands between the data is kept. */
    memset(mine, '.', sizeof mine);
    for (int i = rank; i < KINDS * size; i += size) WANT(!MPI_File_write_at(file, (MPI_Offset)i * ROOM, mine, ROOM, MPI_BYTE, &status));
    WANT(!MPI_File_sync(file) && !MPI_Barrier(MPI_COMM_WORLD) && !MPI_File_sync(file));
    for (int which = 0; which < KINDS; which++) {
        if (is_of_pairs(which)) continue;
        MPI_Datatype type = kind(which);
        int length, count;
        MPI_Offset at;
        MPI_Type_size(type, &length);
        int n = 3 * length + length / 2;
        for (int i = 0; i < n; i++) mine[i] = 'a' + (7 * rank + 3 * which + i) % 26;
        MPI_Offset start = (MPI_Offset)(which * size + rank) * ROOM;
        WANT(!MPI_File_set_view(file, start, MPI_BYTE, type, "native", MPI_INFO_NULL));
        WANT(!MPI_File_write_at_all(file, 0, mine, n, MPI_BYTE, &status));
        /* Open MPI writes what stands between the data again, in one process for all. */
        MPI_Barrier(MPI_COMM_WORLD);
        WANT(!MPI_File_write_at(file, n, mine, length / 2, MPI_BYTE, &status));
        MPI_Barrier(MPI_COMM_WORLD);
        WANT(!MPI_File_read_at_all(file, length / 2, back, n - length / 2, MPI_BYTE, &status));
        MPI_Get_count(&status, MPI_BYTE, &count);
        WANT(count == n - length / 2 && !memcmp(back, mine + length / 2, count));
        WANT(!MPI_File_get_byte_offset(file, n - 1, &at));
        printf("rank %d kind %d: %d bytes, the last at %lld\n", rank, which, n, (long long)at);
        MPI_Type_free(&type);
    }
    WANT(!MPI_File_close(&file));
}

/* The same types as places in a window: what is there of a type is what was put. */
static void windows(void) {
    static char mine[ROOM], theirs[ROOM], window[ROOM], packed[2][ROOM];
    MPI_Win win;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    WANT(!MPI_Win_create(window, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int which = 0; which < KINDS; which++) {
        /* These are another type in each process. */
        if (10 <= which && which <= 12) continue;
        MPI_Datatype type = kind(which);
        int at[2] = {0, 0};
        for (int i = 0; i < ROOM; i++) mine[i] = 'a' + (7 * rank + 3 * which + i) % 26;
        for (int i = 0; i < ROOM; i++) theirs[i] = 'a' + (7 * before + 3 * which + i) % 26;
        memset(window, 0, sizeof window);
        MPI_Win_fence(0, win);
        WANT(!MPI_Put(mine, 2, type, next, 16, 2, type, win));
        MPI_Win_fence(0, win);
        MPI_Pack(theirs, 2, type, packed[0], ROOM, at, MPI_COMM_WORLD);
        MPI_Pack(window + 16, 2, type, packed[1], ROOM, at + 1, MPI_COMM_WORLD);
        WANT(at[0] == at[1] && !memcmp(packed[0], packed[1], at[0]));
        /* What lies between values may have come along. */
        unsigned long sum = is_of_pairs(which) ? 0 : sum_of(window, ROOM);
        printf("rank %d kind %d: %d bytes %lx\n", rank, which, at[0], sum);
        MPI_Type_free(&type);
    }
    MPI_Win_free(&win);
}

/* Types that were made with large counts, which the files and windows of MPICH 4.0.2 cannot have by themselves. */
static void large_counts(void) {
#if MPI_VERSION >= 4
    MPI_Datatype block, type;
    MPI_File file;
    MPI_Offset at;
    MPI_Count whole[2] = {3 << 10, 1L << 33}, parts[2] = {2, 3}, starts[2] = {1000, 1L << 32}, two = 2, eight = 8;
    if (!getenv("SELVEDGE_SET")) return;
    MPI_Type_create_subarray_c(2, whole, parts, starts, MPI_ORDER_C, MPI_INT, &block);
    MPI_Type_create_struct_c(1, &two, &eight, &block, &type);
    MPI_Type_commit(&type);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    WANT(!MPI_File_open(MPI_COMM_SELF, rank ? "large.1" : "large.0", mode, MPI_INFO_NULL, &file));
    WANT(!MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL));
    WANT(!MPI_File_get_byte_offset(file, 5, &at) && at == 8 + 4 * ((1001L << 33) + (1L << 32) + 2));
    WANT(!MPI_File_get_byte_offset(file, 6, &at) && at == 8 + 4 * (((3L << 10) + 1000L << 33) + (1L << 32)));
    MPI_File_close(&file);
    MPI_Type_free(&block);
    MPI_Type_free(&type);
#endif
}

/* A block of an array that has 1 TiB. */
static void great_view(void) {
    int sizes[3] = {1 << 13, 1 << 12, 1 << 12}, parts[3] = {3, 4, 5}, starts[3] = {8000, 4000 + 4 * rank, 77};
    double mine[60], back[60] = {0};
    MPI_Datatype block;
    MPI_File file;
    MPI_Status status;
    MPI_Offset at;
    for (int i = 0; i < 60; i++) mine[i] = rank + i / 64.0;
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &block);
    MPI_Type_commit(&block);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    WANT(!MPI_File_open(MPI_COMM_WORLD, "great", mode, MPI_INFO_NULL, &file));
    WANT(!MPI_File_set_view(file, 0, MPI_DOUBLE, block, "native", MPI_INFO_NULL));
    WANT(!MPI_File_write_at(file, 0, mine, 60, MPI_DOUBLE, &status));
    WANT(!MPI_File_read_at(file, 0, back, 60, MPI_DOUBLE, &status));
    WANT(!memcmp(mine, back, sizeof mine));
    WANT(!MPI_File_get_byte_offset(file, 59, &at));
    printf("rank %d: the last of its block at %lld\n", rank, (long long)at);
    WANT(!MPI_File_close(&file));
    MPI_Type_free(&block);
}

/* Two numbers that are 3 GB apart. */
static void great_window(void) {
    const size_t length = 3L << 30;
    char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    WANT(memory != MAP_FAILED);
    MPI_Aint places[2] = {8, length - 8};
    double mine[2] = {rank + 0.5, rank + 0.25};
    MPI_Datatype pair;
    MPI_Win win;
    MPI_Type_create_hindexed_block(2, 1, places, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    WANT(!MPI_Win_create(memory, length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_fence(0, win);
    WANT(!MPI_Put(mine, 2, MPI_DOUBLE, (rank + 1) % size, 0, 1, pair, win));
    MPI_Win_fence(0, win);
    printf("rank %d: %.2f and %.2f\n", rank, *(double *)(memory + 8), *(double *)(memory + length - 8));
    MPI_Win_free(&win);
    MPI_Type_free(&pair);
    munmap(memory, length);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    views();
    windows();
    large_counts();
    great_view();
    great_window();
    MPI_Finalize();
    return 0;
}
