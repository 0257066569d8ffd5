/* Reductions of everything that C has numbers of, by all of MPI's operations, whose results are held
   against a plain run's to the last bit: sums of fractions hang on the order in which they are made,
   and so does which of two zeros, or of a number and none, is the greater. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MOST 6000
#define OF(a) (int)(sizeof a / sizeof *a)

static int rank, size;
static char own[MOST * 32], all[MOST * 32];
static unsigned long hash;

static void mix(const void *at, size_t n) {
    for (size_t i = 0; i < n; i++) hash = (hash ^ ((const unsigned char *)at)[i]) * 1099511628211ul;
}

static double fraction(int i) {
    static const double odd[] = {0.0, -0.0, NAN, INFINITY, 1e16, -1e16, 1.0, 1e-9};
    return i % 5 == 0 ? odd[(i / 5 + rank * (1 + i / 40)) % 8] : sin(rank * 7919.0 + i) * pow(10, (rank + i) % 9);
}

/* By each collective; what is no number of `bytes` bytes to the last (a long double's holes) is left out. */
static void reduce(const char *name, MPI_Datatype type, int bytes, int used, const MPI_Op *ops, int n_ops) {
    static const int counts[] = {1, 7, 700};
    hash = 14695981039346656037ul;
    for (int op = 0; op < n_ops; op++)
        for (int c = 0; c < OF(counts); c++) {
            int n = counts[c], each[64];
            for (int i = 0; i < size; i++) each[i] = n;
            for (int form = 0; form < 6; form++) {
                memset(all, 0, sizeof all);
                if (form == 0) MPI_Allreduce(own, all, n, type, ops[op], MPI_COMM_WORLD);
                if (form == 1) MPI_Reduce(own, all, n, type, ops[op], op % size, MPI_COMM_WORLD);
                if (form == 2) MPI_Reduce_scatter(own, all, each, type, ops[op], MPI_COMM_WORLD);
                if (form == 3) MPI_Reduce_scatter_block(own, all, n, type, ops[op], MPI_COMM_WORLD);
                if (form == 4) MPI_Scan(own, all, n, type, ops[op], MPI_COMM_WORLD);
                if (form == 5) MPI_Exscan(own, all, n, type, ops[op], MPI_COMM_WORLD);
                if (form == 5 && rank == 0) continue;
                for (int i = 0; i < n; i++) mix(all + (size_t)i * bytes, used);
            }
        }
    unsigned long sum;
    MPI_Allreduce(&hash, &sum, 1, MPI_UNSIGNED_LONG, MPI_BXOR, MPI_COMM_WORLD);
    printf("rank %d: %s %016lx of %016lx\n", rank, name, hash, sum);
}

#define FRACTIONS(type, c)                                         \
    do {                                                           \
        for (int i = 0; i < MOST; i++) ((c *)own)[i] = fraction(i); \
        reduce(#type, type, sizeof(c), sizeof(c) == 16 ? 10 : sizeof(c), real, OF(real)); \
    } while (0)

#define WHOLE(type, c)                                                              \
    do {                                                                            \
        for (int i = 0; i < MOST; i++) ((c *)own)[i] = (c)((rank * 31 + i) * 2654435761u); \
        reduce(#type, type, sizeof(c), sizeof(c), whole, OF(whole));                \
    } while (0)

int main(int argc, char **argv) {
    const MPI_Op real[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
    const MPI_Op whole[] = {MPI_SUM,  MPI_PROD, MPI_MAX, MPI_MIN,  MPI_LAND,
                            MPI_BAND, MPI_LOR,  MPI_BOR, MPI_LXOR, MPI_BXOR};
    const MPI_Op pairs[] = {MPI_MINLOC, MPI_MAXLOC};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    FRACTIONS(MPI_FLOAT, float);
    FRACTIONS(MPI_DOUBLE, double);
    FRACTIONS(MPI_LONG_DOUBLE, long double);
    /* Real and imaginary parts lie behind each other. */
    for (int i = 0; i < MOST; i++) ((double *)own)[i] = fraction(i);
    reduce("MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, 16, 16, real, 1);
    for (int i = 0; i < MOST; i++) ((float *)own)[i] = (float)fraction(i);
    reduce("MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX, 8, 8, real, 1);
    WHOLE(MPI_SIGNED_CHAR, signed char);
    WHOLE(MPI_UNSIGNED_CHAR, unsigned char);
    WHOLE(MPI_SHORT, short);
    WHOLE(MPI_UNSIGNED_SHORT, unsigned short);
    WHOLE(MPI_INT, int);
    WHOLE(MPI_UNSIGNED, unsigned);
    WHOLE(MPI_LONG, long);
    WHOLE(MPI_UNSIGNED_LONG, unsigned long);
    WHOLE(MPI_LONG_LONG, long long);
    WHOLE(MPI_UNSIGNED_LONG_LONG, unsigned long long);
    WHOLE(MPI_INT8_T, int8_t);
    WHOLE(MPI_INT16_T, int16_t);
    WHOLE(MPI_INT32_T, int32_t);
    WHOLE(MPI_INT64_T, int64_t);
    WHOLE(MPI_UINT8_T, uint8_t);
    WHOLE(MPI_UINT16_T, uint16_t);
    WHOLE(MPI_UINT32_T, uint32_t);
    WHOLE(MPI_UINT64_T, uint64_t);
    /* A double, an int, and a hole. */
    memset(own, 0, sizeof own);
    for (int i = 0; i < MOST; i++) {
        double value = (rank * 5 + i) % 3;
        int at = (rank * 11 + i) % 7;
        memcpy(own + 16 * i, &value, 8);
        memcpy(own + 16 * i + 8, &at, 4);
    }
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    /* Of equal values Intel's MPI finds one time this and one time that, plain as well. */
    if (!strstr(version, "Intel")) reduce("MPI_DOUBLE_INT", MPI_DOUBLE_INT, 16, 12, pairs, OF(pairs));
    MPI_Finalize();
    return 0;
}
