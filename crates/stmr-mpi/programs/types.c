/* Types of data: every way to build one, with counts of both sizes, what MPI says of each (its size, its
   extents, how it was built and of what), and what of a buffer it moves from one process to the next.
   Then names of types, and what the program keeps with them.
   usage: types */
#include "want.h"

enum { ROOM = 64, MOST = 32 };

static int rank, size, next, before, n_copied, n_gone;
static const MPI_Aint WIDTH = sizeof(int);

/* What a type is to be: the integers it has, in order, and its bounds, all counted in integers. */
struct plan {
    int n, at[MOST], low, extent;
};

/* The sizes and bounds, in all the calls that tell them. */
static void ask_bounds(MPI_Datatype type, const struct plan *it) {
    int first = it->at[0], last = it->at[0], bytes;
    MPI_Aint low, extent;
    MPI_Count bytes_x, low_x, extent_x;
    for (int i = 1; i < it->n; i++) {
        if (it->at[i] < first) first = it->at[i];
        if (it->at[i] > last) last = it->at[i];
    }
    MPI_Type_size(type, &bytes);
    MPI_Type_size_x(type, &bytes_x);
    WANT(bytes == it->n * WIDTH && bytes_x == bytes);
    MPI_Type_get_extent(type, &low, &extent);
    WANT(low == it->low * WIDTH && extent == it->extent * WIDTH);
    MPI_Type_get_extent_x(type, &low_x, &extent_x);
    WANT(low_x == low && extent_x == extent);
    MPI_Type_get_true_extent(type, &low, &extent);
    WANT(low == first * WIDTH && extent == (last - first + 1) * WIDTH);
    MPI_Type_get_true_extent_x(type, &low_x, &extent_x);
    WANT(low_x == low && extent_x == extent);
#if MPI_VERSION >= 4
    bytes_x = low_x = extent_x = -1;
    MPI_Type_size_c(type, &bytes_x);
    MPI_Type_get_true_extent_c(type, &low_x, &extent_x);
    WANT(bytes_x == bytes && low_x == low && extent_x == extent);
    MPI_Type_get_extent_c(type, &low_x, &extent_x);
    WANT(low_x == it->low * WIDTH && extent_x == it->extent * WIDTH);
#endif
#if defined MPICH && !defined MPI_ABI_VERSION
    MPI_Aint upper;
    MPI_Type_lb(type, &low);
    MPI_Type_ub(type, &upper);
    MPI_Type_extent(type, &extent);
    WANT(low == it->low * WIDTH && extent == it->extent * WIDTH && upper == low + extent);
#endif
}

/* The next process gets what the type has of this one's buffer, as integers and in a buffer like it. */
static long move(MPI_Datatype type, const struct plan *it) {
    int given[ROOM], got[ROOM], like[ROOM];
    long sum = 0;
    for (int i = 0; i < ROOM; i++) given[i] = 1000 * rank + i;
    MPI_Sendrecv(given, 1, type, next, 1, got, ROOM, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < it->n; i++) WANT(got[i] == 1000 * before + it->at[i]);
    for (int i = 0; i < ROOM; i++) like[i] = -1;
    MPI_Sendrecv(given, 1, type, next, 2, like, 1, type, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < it->n; i++) {
        WANT(like[it->at[i]] == 1000 * before + it->at[i]);
        like[it->at[i]] = -1;
        sum = (31 * sum + it->at[i] + 1) % 1000003;
    }
    for (int i = 0; i < ROOM; i++) WANT(like[i] == -1);
    return sum;
}

static void forget_made(MPI_Datatype type) {
    int n_ints, n_places, n_types, combiner;
    MPI_Type_get_envelope(type, &n_ints, &n_places, &n_types, &combiner);
    if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&type);
}

/* How it was built: the numbers given, and that it is all made of integers. */
static void ask_contents(MPI_Datatype type, int combiner, int n_types, int n_ints, const int *ints) {
    int n[3], how, got[MOST];
    MPI_Aint places[MOST];
    MPI_Datatype types[MOST];
    MPI_Type_get_envelope(type, &n[0], &n[1], &n[2], &how);
    WANT(how == combiner && n[0] == n_ints && n[2] == n_types);
    MPI_Type_get_contents(type, n[0], n[1], n[2], got, places, types);
    for (int i = 0; i < n_ints; i++) WANT(got[i] == ints[i]);
    for (int i = 0; i < n_types; i++) {
        int bytes;
        MPI_Type_size(types[i], &bytes);
        WANT(bytes % WIDTH == 0 && bytes > 0);
        forget_made(types[i]);
    }
}

static long finish(MPI_Datatype type, const struct plan *it) {
    ask_bounds(type, it);
    MPI_Type_commit(&type);
    long sum = move(type, it);
    MPI_Type_free(&type);
    WANT(type == MPI_DATATYPE_NULL);
    return sum;
}

#define INTS(...) sizeof((int[]){__VA_ARGS__}) / sizeof(int), (int[]){__VA_ARGS__}

static const struct plan row = {3, {0, 1, 2}, 0, 3};
static const struct plan steps = {6, {0, 1, 5, 6, 10, 11}, 0, 12};
static const struct plan parts = {6, {9, 2, 3, 4, 20, 21}, 2, 20};
static const struct plan blocks = {6, {8, 9, 3, 4, 20, 21}, 3, 19};
static const struct plan box = {6, {7, 8, 9, 12, 13, 14}, 0, 20};
static const struct plan spaced = {1, {0}, -2, 7};

static const int lengths[] = {1, 3, 2}, at[] = {9, 2, 20}, block_at[] = {8, 3, 20};
static const int whole[] = {4, 5}, piece[] = {2, 3}, start[] = {1, 2};

/* The numbers that the program gives, as addresses. */
static void to_places(const int *from, MPI_Aint *to) {
    for (int i = 0; i < 3; i++) to[i] = from[i] * WIDTH;
}

static long build(void) {
    MPI_Datatype type, types[] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Aint places[3], block_places[3];
    long sum = 0;
    to_places(at, places);
    to_places(block_at, block_places);
    MPI_Type_contiguous(3, MPI_INT, &type);
    ask_contents(type, MPI_COMBINER_CONTIGUOUS, 1, INTS(3));
    sum += finish(type, &row);
    MPI_Type_vector(3, 2, 5, MPI_INT, &type);
    ask_contents(type, MPI_COMBINER_VECTOR, 1, INTS(3, 2, 5));
    sum += finish(type, &steps);
    MPI_Type_create_hvector(3, 2, 5 * WIDTH, MPI_INT, &type);
    ask_contents(type, MPI_COMBINER_HVECTOR, 1, INTS(3, 2));
    sum += finish(type, &steps);
    MPI_Type_indexed(3, lengths, at, MPI_INT, &type);
    ask_contents(type, MPI_COMBINER_INDEXED, 1, INTS(3, 1, 3, 2, 9, 2, 20));
    sum += finish(type, &parts);
    MPI_Type_create_hindexed(3, lengths, places, MPI_INT, &type);
    ask_contents(type, MPI_COMBINER_HINDEXED, 1, INTS(3, 1, 3, 2));
    sum += finish(type, &parts);
    MPI_Type_create_indexed_block(3, 2, block_at, MPI_INT, &type);
    ask_contents(type, MPI_COMBINER_INDEXED_BLOCK, 1, INTS(3, 2, 8, 3, 20));
    sum += finish(type, &blocks);
    MPI_Type_create_hindexed_block(3, 2, block_places, MPI_INT, &type);
    ask_contents(type, MPI_COMBINER_HINDEXED_BLOCK, 1, INTS(3, 2));
    sum += finish(type, &blocks);
    MPI_Type_create_struct(3, lengths, places, types, &type);
    ask_contents(type, MPI_COMBINER_STRUCT, 3, INTS(3, 1, 3, 2));
    sum += finish(type, &parts);
    MPI_Type_create_subarray(2, whole, piece, start, MPI_ORDER_C, MPI_INT, &type);
    ask_contents(type, MPI_COMBINER_SUBARRAY, 1, INTS(2, 4, 5, 2, 3, 1, 2, MPI_ORDER_C));
    sum += finish(type, &box);
    MPI_Type_create_resized(MPI_INT, -2 * WIDTH, 7 * WIDTH, &type);
    ask_contents(type, MPI_COMBINER_RESIZED, 1, 0, NULL);
    sum += finish(type, &spaced);
    return sum;
}

/* Types of types, and a copy that outlives what it was made of. */
static long build_on(void) {
    static const struct plan twice = {6, {0, 1, 2, 5, 6, 7}, 0, 8};
    MPI_Datatype inner, type, copy;
    MPI_Aint place;
    int n_ints, n_places, n_types, how, n;
    MPI_Type_contiguous(3, MPI_INT, &inner);
    MPI_Type_create_hvector(2, 1, 5 * WIDTH, inner, &type);
    MPI_Type_free(&inner);
    MPI_Type_get_contents(type, 2, 1, 1, (int[2]){0, 0}, &place, &inner);
    WANT(place == 5 * WIDTH);
    MPI_Type_get_envelope(inner, &n_ints, &n_places, &n_types, &how);
    WANT(how == MPI_COMBINER_CONTIGUOUS && n_ints == 1 && n_places == 0 && n_types == 1);
    MPI_Type_free(&inner);
    MPI_Type_dup(type, &copy);
    MPI_Type_free(&type);
    MPI_Type_get_envelope(copy, &n_ints, &n_places, &n_types, &how);
    WANT(how == MPI_COMBINER_DUP && n_ints == 0 && n_places == 0 && n_types == 1);
    MPI_Type_get_contents(copy, 0, 0, 1, &n, &place, &type);
    MPI_Type_get_envelope(type, &n_ints, &n_places, &n_types, &how);
    WANT(how == MPI_COMBINER_HVECTOR);
    MPI_Type_free(&type);
    return finish(copy, &twice);
}

/* This process's part of an array that all have by turns, two integers each time. */
static void turns(struct plan *it, int n) {
    it->n = it->low = 0;
    it->extent = n;
    for (int i = 0; i < n; i++)
        if (i / 2 % size == rank) it->at[it->n++] = i;
}

static long build_shared(void) {
    int n = 4 * size, whole[] = {n}, how[] = {MPI_DISTRIBUTE_CYCLIC}, by[] = {2}, grid[] = {size};
    struct plan it;
    MPI_Datatype type;
    turns(&it, n);
    MPI_Type_create_darray(size, rank, 1, whole, how, by, grid, MPI_ORDER_C, MPI_INT, &type);
    ask_contents(type, MPI_COMBINER_DARRAY, 1, INTS(size, rank, 1, n, how[0], 2, size, MPI_ORDER_C));
    ask_bounds(type, &it);
    /* The parts of all processes, together, are the whole array. */
    int given[MOST], all[MOST], got[MOST];
    for (int i = 0; i < n; i++) given[i] = i + 1;
    memset(got, 0, sizeof got);
    MPI_Type_commit(&type);
    MPI_Sendrecv(given, 1, type, rank, 1, got, 1, type, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    MPI_Allreduce(got, all, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) WANT(all[i] == i + 1);
#if MPI_VERSION >= 4
    MPI_Count whole_c[] = {n};
    MPI_Type_create_darray_c(size, rank, 1, whole_c, how, by, grid, MPI_ORDER_C, MPI_INT, &type);
    ask_bounds(type, &it);
    memset(got, 0, sizeof got);
    MPI_Type_commit(&type);
    MPI_Sendrecv(given, 1, type, rank, 1, got, 1, type, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    for (int i = 0; i < n; i++) WANT(got[i] == (i / 2 % size == rank ? i + 1 : 0));
#endif
    return all[n - 1];
}

#if MPI_VERSION >= 4
/* How a type with large counts was built: all its numbers are large ones, but for those in `ints`. */
static void ask_large(MPI_Datatype type, int combiner, int n_types, int n_ints, int n_wide, const int *wide) {
    MPI_Count n[4], got[MOST];
    MPI_Aint places[MOST];
    MPI_Datatype types[MOST];
    int how, ints[MOST];
    MPI_Type_get_envelope_c(type, &n[0], &n[1], &n[2], &n[3], &how);
    WANT(how == combiner && n[0] == n_ints && n[1] == 0 && n[2] == n_wide && n[3] == n_types);
    MPI_Type_get_contents_c(type, n[0], n[1], n[2], n[3], ints, places, got, types);
    for (int i = 0; i < n_wide; i++) WANT(got[i] == wide[i]);
    for (int i = 0; i < n_types; i++) WANT(types[i] == MPI_INT);
}

static long build_large(void) {
    MPI_Datatype type, types[] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Count lengths_c[3], at_c[3], block_at_c[3], places[3], block_places[3];
    int W = WIDTH;
    long sum = 0;
    for (int i = 0; i < 3; i++) {
        lengths_c[i] = lengths[i];
        places[i] = (at_c[i] = at[i]) * WIDTH;
        block_places[i] = (block_at_c[i] = block_at[i]) * WIDTH;
    }
    MPI_Type_contiguous_c(3, MPI_INT, &type);
    ask_large(type, MPI_COMBINER_CONTIGUOUS, 1, 0, INTS(3));
    sum += finish(type, &row);
    MPI_Type_vector_c(3, 2, 5, MPI_INT, &type);
    ask_large(type, MPI_COMBINER_VECTOR, 1, 0, INTS(3, 2, 5));
    sum += finish(type, &steps);
    MPI_Type_create_hvector_c(3, 2, 5 * WIDTH, MPI_INT, &type);
    ask_large(type, MPI_COMBINER_HVECTOR, 1, 0, INTS(3, 2, 5 * W));
    sum += finish(type, &steps);
    MPI_Type_indexed_c(3, lengths_c, at_c, MPI_INT, &type);
    ask_large(type, MPI_COMBINER_INDEXED, 1, 0, INTS(3, 1, 3, 2, 9, 2, 20));
    sum += finish(type, &parts);
    MPI_Type_create_hindexed_c(3, lengths_c, places, MPI_INT, &type);
    ask_large(type, MPI_COMBINER_HINDEXED, 1, 0, INTS(3, 1, 3, 2, 9 * W, 2 * W, 20 * W));
    sum += finish(type, &parts);
    MPI_Type_create_indexed_block_c(3, 2, block_at_c, MPI_INT, &type);
    ask_large(type, MPI_COMBINER_INDEXED_BLOCK, 1, 0, INTS(3, 2, 8, 3, 20));
    sum += finish(type, &blocks);
    MPI_Type_create_hindexed_block_c(3, 2, block_places, MPI_INT, &type);
    ask_large(type, MPI_COMBINER_HINDEXED_BLOCK, 1, 0, INTS(3, 2, 8 * W, 3 * W, 20 * W));
    sum += finish(type, &blocks);
    MPI_Type_create_struct_c(3, lengths_c, places, types, &type);
    ask_large(type, MPI_COMBINER_STRUCT, 3, 0, INTS(3, 1, 3, 2, 9 * W, 2 * W, 20 * W));
    sum += finish(type, &parts);
    MPI_Type_create_subarray_c(2, (MPI_Count[]){4, 5}, (MPI_Count[]){2, 3}, (MPI_Count[]){1, 2}, MPI_ORDER_C,
                               MPI_INT, &type);
    ask_large(type, MPI_COMBINER_SUBARRAY, 1, 2, INTS(4, 5, 2, 3, 1, 2));
    sum += finish(type, &box);
    MPI_Type_create_resized_c(MPI_INT, -2 * WIDTH, 7 * WIDTH, &type);
    ask_large(type, MPI_COMBINER_RESIZED, 1, 0, INTS(-2 * W, 7 * W));
    sum += finish(type, &spaced);
    return sum;
}
#endif

#if defined MPICH && !defined MPI_ABI_VERSION
/* The forms that MPI 3 removed. */
static void build_old(void) {
    MPI_Datatype type, types[] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Aint places[3], first, second;
    int lengths_old[3], pair[2];
    to_places(at, places);
    memcpy(lengths_old, lengths, sizeof lengths);
    MPI_Address(&pair[0], &first);
    MPI_Address(&pair[1], &second);
    WANT(second - first == WIDTH);
    MPI_Type_hvector(3, 2, 5 * WIDTH, MPI_INT, &type);
    finish(type, &steps);
    MPI_Type_hindexed(3, lengths_old, places, MPI_INT, &type);
    finish(type, &parts);
    MPI_Type_struct(3, lengths_old, places, types, &type);
    finish(type, &parts);
}
#endif

static void want_made(MPI_Datatype type, int combiner, int n_ints, const int *ints, int bytes) {
    int n[3], how, got[2], is;
    MPI_Aint place;
    MPI_Datatype none;
    MPI_Type_size(type, &is);
    MPI_Type_get_envelope(type, &n[0], &n[1], &n[2], &how);
    WANT(how == combiner && n[0] == n_ints && n[1] == 0 && n[2] == 0 && is == bytes);
    MPI_Type_get_contents(type, n_ints, 0, 0, got, &place, &none);
    for (int i = 0; i < n_ints; i++) WANT(got[i] == ints[i]);
}

/* Types that MPI picks. */
static void pick(void) {
    static const int classes[] = {MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_REAL,
                                  MPI_TYPECLASS_REAL, MPI_TYPECLASS_COMPLEX};
    static const int bytes[] = {4, 8, 4, 8, 16};
    MPI_Datatype type;
    int is;
    for (int i = 0; i < 5; i++) {
        MPI_Type_match_size(classes[i], bytes[i], &type);
        MPI_Type_size(type, &is);
        WANT(is == bytes[i]);
    }
    MPI_Type_create_f90_integer(9, &type);
    want_made(type, MPI_COMBINER_F90_INTEGER, INTS(9), 4);
    MPI_Type_create_f90_real(15, 307, &type);
    want_made(type, MPI_COMBINER_F90_REAL, INTS(15, 307), 8);
    double given = rank + 0.5, got;
    MPI_Sendrecv(&given, 1, type, next, 3, &got, 1, type, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    WANT(got == before + 0.5);
    MPI_Type_create_f90_complex(6, 37, &type);
    want_made(type, MPI_COMBINER_F90_COMPLEX, INTS(6, 37), 8);
#if MPI_VERSION >= 5
    MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type);
    WANT(type == MPI_DOUBLE_INT);
    MPI_Type_get_value_index(MPI_INT, MPI_INT, &type);
    WANT(type == MPI_2INT);
#endif
}

static int copy_kept(MPI_Datatype type, int key, void *more, void *value, void *to, int *is_copied) {
    n_copied++;
    *(void **)to = value;
    return *is_copied = 1, *(int *)more == 77 ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static int drop_kept(MPI_Datatype type, int key, void *value, void *more) {
    n_gone += *(int *)value;
    return MPI_SUCCESS;
}

/* What the program keeps with a type goes to copies of it, and goes with them. */
static void keep_with(void) {
    int key, more = 77, kept = 3, others = 100, has, *found;
    MPI_Datatype type, copy;
    MPI_Type_create_keyval(copy_kept, drop_kept, &key, &more);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_get_attr(type, key, &found, &has);
    WANT(!has);
    MPI_Type_set_attr(type, key, &kept);
    MPI_Type_dup(type, &copy);
    MPI_Type_get_attr(copy, key, &found, &has);
    WANT(has && found == &kept && n_copied == 1);
    MPI_Type_set_attr(copy, key, &others);
    WANT(n_gone == 3);
    MPI_Type_delete_attr(copy, key);
    MPI_Type_get_attr(copy, key, &found, &has);
    WANT(!has && n_gone == 103);
    MPI_Type_free(&copy);
    WANT(n_gone == 103);
    int was = key;
    MPI_Type_free_keyval(&key);
    WANT(key == MPI_KEYVAL_INVALID && was != key);
    MPI_Type_free(&type);
    WANT(n_gone == 106);
}

static void name(void) {
    char text[MPI_MAX_OBJECT_NAME], given[MPI_MAX_OBJECT_NAME];
    int n;
    MPI_Datatype type, copy;
    MPI_Type_get_name(MPI_INT, text, &n);
    WANT(!strcmp(text, "MPI_INT") && n == 7);
    if (rank == 0) printf("a name: %s", text);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_get_name(type, text, &n);
    WANT(n == 0 && !*text);
    snprintf(given, sizeof given, "pair of %d", rank);
    MPI_Type_set_name(type, given);
    MPI_Type_get_name(type, text, &n);
    WANT(!strcmp(text, given) && n == (int)strlen(given));
    MPI_Type_dup(type, &copy);
    MPI_Type_set_name(type, "another");
    MPI_Type_get_name(type, text, &n);
    WANT(!strcmp(text, "another"));
    if (rank == 0) printf(", %s\n", text);
    MPI_Type_free(&copy);
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    long sum = build();
    if (rank == 0) printf("built: %ld, on others: ", sum);
    sum = build_on();
    if (rank == 0) printf("%ld, shared: ", sum);
    sum = build_shared();
    if (rank == 0) printf("%ld\n", sum);
#if MPI_VERSION >= 4
    sum = build_large();
    if (rank == 0) printf("with large counts: %ld\n", sum);
#endif
#if defined MPICH && !defined MPI_ABI_VERSION
    build_old();
#endif
    pick();
    keep_with();
    name();
    if (rank == 0) printf("kept: %d copied, %d gone\n", n_copied, n_gone);
    MPI_Finalize();
    return 0;
}
