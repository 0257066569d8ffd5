/* Data packed by hand and taken apart, in the form of the machine and in the form that all machines read,
   with counts of both sizes; and statuses: how much came, and what the program writes into one itself.
   usage: packs */
#include "want.h"

enum { ROOM = 512, N = 5 };

static int rank, size, next, before;

/* What goes: some integers, some numbers, and every second of a row of letters. */
struct load {
    int ints[N];
    double numbers[2];
    char letters[2 * N];
};

static MPI_Datatype second;

static void fill(struct load *it, int who) {
    memset(it, 0, sizeof *it);
    for (int i = 0; i < N; i++) {
        it->ints[i] = 1000 * who + i;
        it->letters[2 * i] = 'a' + (who + i) % 26;
    }
    it->numbers[0] = who + 0.25;
    it->numbers[1] = -who - 0.5;
}

static long check(const struct load *got) {
    struct load from;
    fill(&from, before);
    WANT(!memcmp(got, &from, sizeof from));
    return got->ints[N - 1] + got->letters[2];
}

/* One process packs it, and the next takes it apart. */
static long pack(void) {
    struct load given, got;
    char packed[ROOM], came[ROOM];
    int at = 0, sizes[3], n;
    MPI_Status status;
    fill(&given, rank);
    MPI_Pack_size(N, MPI_INT, MPI_COMM_WORLD, &sizes[0]);
    MPI_Pack_size(2, MPI_DOUBLE, MPI_COMM_WORLD, &sizes[1]);
    MPI_Pack_size(1, second, MPI_COMM_WORLD, &sizes[2]);
    WANT(sizes[0] >= 20 && sizes[1] >= 16 && sizes[2] >= 5 && sizes[0] + sizes[1] + sizes[2] < ROOM);
    MPI_Pack(given.ints, N, MPI_INT, packed, ROOM, &at, MPI_COMM_WORLD);
    WANT(at >= 20 && at <= sizes[0]);
    MPI_Pack(given.numbers, 2, MPI_DOUBLE, packed, ROOM, &at, MPI_COMM_WORLD);
    MPI_Pack(given.letters, 1, second, packed, ROOM, &at, MPI_COMM_WORLD);
    WANT(at >= 41 && at <= sizes[0] + sizes[1] + sizes[2]);
    MPI_Sendrecv(packed, at, MPI_PACKED, next, 1, came, ROOM, MPI_PACKED, before, 1, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_PACKED, &n);
    WANT(n == at);
    memset(&got, 0, sizeof got);
    at = 0;
    MPI_Unpack(came, n, &at, got.ints, N, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack(came, n, &at, got.numbers, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Unpack(came, n, &at, got.letters, 1, second, MPI_COMM_WORLD);
    WANT(at == n);
    return check(&got);
}

/* That form has the high byte first. */
static void is_for_all(const unsigned char *packed) {
    for (int i = 0; i < N; i++) {
        const unsigned char *it = packed + 4 * i;
        WANT(((it[0] * 256 + it[1]) * 256 + it[2]) * 256 + it[3] == 1000 * rank + i);
    }
}

static long pack_for_all(void) {
    struct load given, got;
    char packed[ROOM], came[ROOM];
    MPI_Aint at = 0, sizes[3];
    fill(&given, rank);
    MPI_Pack_external_size("external32", N, MPI_INT, &sizes[0]);
    MPI_Pack_external_size("external32", 2, MPI_DOUBLE, &sizes[1]);
    MPI_Pack_external_size("external32", 1, second, &sizes[2]);
    WANT(sizes[0] == 20 && sizes[1] == 16 && sizes[2] == 5);
    MPI_Pack_external("external32", given.ints, N, MPI_INT, packed, ROOM, &at);
    WANT(at == 20);
    MPI_Pack_external("external32", given.numbers, 2, MPI_DOUBLE, packed, ROOM, &at);
    MPI_Pack_external("external32", given.letters, 1, second, packed, ROOM, &at);
    WANT(at == 41);
    is_for_all((unsigned char *)packed);
    MPI_Sendrecv(packed, 41, MPI_BYTE, next, 2, came, 41, MPI_BYTE, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memset(&got, 0, sizeof got);
    at = 0;
    MPI_Unpack_external("external32", came, 41, &at, got.ints, N, MPI_INT);
    WANT(at == 20);
    MPI_Unpack_external("external32", came, 41, &at, got.numbers, 2, MPI_DOUBLE);
    MPI_Unpack_external("external32", came, 41, &at, got.letters, 1, second);
    WANT(at == 41);
    return check(&got);
}

#if MPI_VERSION >= 4
static long pack_large(void) {
    struct load given, got;
    char packed[ROOM], came[ROOM];
    MPI_Count at = 0, sizes[3], n;
    MPI_Status status;
    fill(&given, rank);
    MPI_Pack_size_c(N, MPI_INT, MPI_COMM_WORLD, &sizes[0]);
    MPI_Pack_size_c(2, MPI_DOUBLE, MPI_COMM_WORLD, &sizes[1]);
    MPI_Pack_size_c(1, second, MPI_COMM_WORLD, &sizes[2]);
    WANT(sizes[0] >= 20 && sizes[1] >= 16 && sizes[2] >= 5 && sizes[0] + sizes[1] + sizes[2] < ROOM);
    MPI_Pack_c(given.ints, N, MPI_INT, packed, ROOM, &at, MPI_COMM_WORLD);
    MPI_Pack_c(given.numbers, 2, MPI_DOUBLE, packed, ROOM, &at, MPI_COMM_WORLD);
    MPI_Pack_c(given.letters, 1, second, packed, ROOM, &at, MPI_COMM_WORLD);
    WANT(at >= 41 && at <= sizes[0] + sizes[1] + sizes[2]);
    MPI_Sendrecv(packed, at, MPI_PACKED, next, 3, came, ROOM, MPI_PACKED, before, 3, MPI_COMM_WORLD, &status);
    MPI_Get_count_c(&status, MPI_PACKED, &n);
    WANT(n == at);
    memset(&got, 0, sizeof got);
    at = 0;
    MPI_Unpack_c(came, n, &at, got.ints, N, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack_c(came, n, &at, got.numbers, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Unpack_c(came, n, &at, got.letters, 1, second, MPI_COMM_WORLD);
    WANT(at == n);
    return check(&got);
}

static long pack_large_for_all(void) {
    struct load given, got;
    char packed[ROOM], came[ROOM];
    MPI_Count at = 0, bytes;
    fill(&given, rank);
    MPI_Pack_external_size_c("external32", 2, MPI_DOUBLE, &bytes);
    WANT(bytes == 16);
    MPI_Pack_external_c("external32", given.ints, N, MPI_INT, packed, ROOM, &at);
    MPI_Pack_external_c("external32", given.numbers, 2, MPI_DOUBLE, packed, ROOM, &at);
    MPI_Pack_external_c("external32", given.letters, 1, second, packed, ROOM, &at);
    WANT(at == 41);
    is_for_all((unsigned char *)packed);
    MPI_Sendrecv(packed, 41, MPI_BYTE, next, 4, came, 41, MPI_BYTE, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memset(&got, 0, sizeof got);
    at = 0;
    MPI_Unpack_external_c("external32", came, 41, &at, got.ints, N, MPI_INT);
    MPI_Unpack_external_c("external32", came, 41, &at, got.numbers, 2, MPI_DOUBLE);
    MPI_Unpack_external_c("external32", came, 41, &at, got.letters, 1, second);
    WANT(at == 41);
    return check(&got);
}
#endif

/* How many pairs, and how many integers of them. */
static void want_pairs(MPI_Status *status, MPI_Datatype pair, int n_pairs, int n_ints) {
    int n;
    MPI_Count many;
    MPI_Get_count(status, pair, &n);
    WANT(n == n_pairs);
    MPI_Get_elements(status, pair, &n);
    WANT(n == n_ints);
    MPI_Get_elements_x(status, pair, &many);
    WANT(many == n_ints);
#if MPI_VERSION >= 4
    MPI_Get_count_c(status, pair, &many);
    WANT(many == n_pairs || (n_pairs == MPI_UNDEFINED && many == MPI_UNDEFINED));
    MPI_Get_elements_c(status, pair, &many);
    WANT(many == n_ints);
#endif
}

/* Every process gets as many integers as its sender has a rank, and some, in pairs. */
static int count(void) {
    int given[ROOM] = {0}, got[ROOM], n_ints = 2 + before, flag;
    MPI_Datatype pair;
    MPI_Status status;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Sendrecv(given, 2 + rank, MPI_INT, next, 5, got, ROOM / 2, pair, before, 5, MPI_COMM_WORLD, &status);
    want_pairs(&status, pair, n_ints % 2 ? MPI_UNDEFINED : n_ints / 2, n_ints);
    /* The program may say otherwise. */
    MPI_Status_set_elements(&status, MPI_INT, 6);
    want_pairs(&status, pair, 3, 6);
    MPI_Status_set_elements_x(&status, MPI_INT, 7);
    want_pairs(&status, pair, MPI_UNDEFINED, 7);
#if MPI_VERSION >= 5
    MPI_Status_set_elements_c(&status, MPI_INT, 8);
    want_pairs(&status, pair, 4, 8);
    MPI_Status_set_elements_c(&status, MPI_BYTE, (MPI_Count)1 << 33);
    MPI_Count many;
    MPI_Get_count_c(&status, pair, &many);
    WANT(many == 1 << 30);
#endif
    MPI_Status_set_cancelled(&status, 1);
    MPI_Test_cancelled(&status, &flag);
    WANT(flag);
    MPI_Type_free(&pair);
    return n_ints;
}

#if MPI_VERSION >= 5
/* What a status holds, by calls. */
static void hold(void) {
    int given = rank, got, is;
    MPI_Status status;
    MPI_Sendrecv(&given, 1, MPI_INT, next, 60 + rank, &got, 1, MPI_INT, MPI_ANY_SOURCE, 60 + before, MPI_COMM_WORLD,
                 &status);
    MPI_Status_get_source(&status, &is);
    WANT(is == before && is == status.MPI_SOURCE);
    MPI_Status_get_tag(&status, &is);
    WANT(is == 60 + before && is == status.MPI_TAG);
    MPI_Status_set_source(&status, 3);
    MPI_Status_set_tag(&status, 12345);
    MPI_Status_set_error(&status, MPI_ERR_TRUNCATE);
    WANT(status.MPI_SOURCE == 3 && status.MPI_TAG == 12345 && status.MPI_ERROR == MPI_ERR_TRUNCATE);
    MPI_Status_get_error(&status, &is);
    WANT(is == MPI_ERR_TRUNCATE);
    MPI_Status_set_error(&status, MPI_SUCCESS);
    MPI_Status_get_error(&status, &is);
    WANT(is == MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &is);
    WANT(is == 1);
}
#endif

#ifndef MPI_ABI_VERSION
static void want_same(const MPI_Status *a, const MPI_Status *b) {
    int n[2];
    MPI_Get_count(a, MPI_INT, &n[0]);
    MPI_Get_count(b, MPI_INT, &n[1]);
    WANT(n[0] == n[1] && a->MPI_SOURCE == b->MPI_SOURCE && a->MPI_TAG == b->MPI_TAG);
}

/* A status goes to Fortran, in both its forms there, and comes back. */
static void to_fortran(void) {
    int given[9] = {0}, got[9], n;
    MPI_Fint there[32];
    MPI_Status status, back;
    MPI_Sendrecv(given, 1 + rank, MPI_INT, next, 7 + rank, got, 9, MPI_INT, before, 7 + before, MPI_COMM_WORLD,
                 &status);
    memset(&back, 0, sizeof back);
    MPI_Status_c2f(&status, there);
    MPI_Status_f2c(there, &back);
    want_same(&status, &back);
    MPI_Get_count(&back, MPI_INT, &n);
    WANT(n == 1 + before && back.MPI_SOURCE == before && back.MPI_TAG == 7 + before);
/* MPICH 4 of Debian declares these and lacks them. */
#if defined MPICH && MPI_VERSION >= 5 || defined OPEN_MPI && OMPI_MAJOR_VERSION >= 5
    MPI_F08_status there_08, again_08;
    MPI_Fint again[32];
    memset(&back, 0, sizeof back);
    MPI_Status_c2f08(&status, &there_08);
    MPI_Status_f082c(&there_08, &back);
    want_same(&status, &back);
    WANT(there_08.MPI_SOURCE == before && there_08.MPI_TAG == 7 + before);
    memset(&back, 0, sizeof back);
    MPI_Status_f082f(&there_08, again);
    MPI_Status_f2f08(again, &again_08);
    MPI_Status_f082c(&again_08, &back);
    want_same(&status, &back);
    memset(&back, 0, sizeof back);
    MPI_Status_f2c(again, &back);
    want_same(&status, &back);
#endif
}
#endif

static void tell(const char *what, long own) {
    long all;
    MPI_Reduce(&own, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s: %ld\n", what, all);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    MPI_Type_vector(N, 1, 2, MPI_CHAR, &second);
    MPI_Type_commit(&second);
    tell("packed", pack());
    tell("packed for all", pack_for_all());
#if MPI_VERSION >= 4
    tell("packed with large counts", pack_large());
    tell("packed for all with large counts", pack_large_for_all());
#endif
    tell("counted", count());
#if MPI_VERSION >= 5
    hold();
#endif
#ifndef MPI_ABI_VERSION
    to_fortran();
#endif
    MPI_Type_free(&second);
    MPI_Finalize();
    return 0;
}
