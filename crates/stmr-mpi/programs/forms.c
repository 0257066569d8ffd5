/* Every collective in each of its forms: blocking, non-blocking and persistent, with buffers and in
   place, on all processes and on half of them; many at once, completed in several orders.
   largecounts.c makes the same of the calls with counts of 64 bits. */
#include "forms.h"
#include "want.h"

/* The call in one of its forms. */
#define IN_FORM(Name, name, ...)                                                                            \
    (form == BLOCKING ? CALL(Name)(__VA_ARGS__, comm)                                                       \
     : form == NONBLOCKING ? CALL(I##name)(__VA_ARGS__, comm, request)                                      \
                           : INIT(CALL(Name##_init), __VA_ARGS__, comm, MPI_INFO_NULL, request))

enum { MOST = 8, SLOT = 6, ROOM = 64, N_REDUCED = 3, N_ROUNDS = 5 };
enum form { BLOCKING, NONBLOCKING, PERSISTENT };
enum kind { BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW,
            REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, SUM, ALL_SUM, SUM_SO_FAR, N_KINDS };

union room {
    int ints[ROOM];
    double doubles[ROOM / 2];
};

/* What is called, on these data. */
static struct part {
    enum kind kind;
    int in_place;
    union room give, got;
} parts[2 * N_KINDS];

static int rank, me, size, n_parts;
static MPI_Comm comm;
static Number by_rank[MOST], by_both[MOST];
static Place places[MOST], bytes[MOST];
static MPI_Datatype types[MOST], pair;
static MPI_Op after;
static unsigned long long hash;

static int root_of(enum kind kind) { return (kind + 1) % size; }

/* How many numbers go from one to another, and where those of one process stand among those of all. */
static int n_of(enum kind kind, int from, int to) {
    switch (kind) {
        case GATHERV: case ALLGATHERV: return from % 3;
        case SCATTERV: return to % 3;
        case ALLTOALLV: return (from + to) % 3;
        case ALLTOALLW: return (from + to) % 3 * ((from + to) % 2 + 1);
        default: return 2;
    }
}

static int place_of(enum kind kind, int who) {
    return kind == GATHERV || kind == ALLGATHERV || kind == SCATTERV || kind == ALLTOALLV || kind == ALLTOALLW
               ? SLOT * who + 1 : 2 * who;
}

static void fill(enum kind kind, int from, int to, int round, int *at) {
    for (int i = 0; i < n_of(kind, from, to); i++) at[i] = 100000 * kind + 10000 * round + 1000 * from + 100 * to + i;
}

/* Element i of a process: x -> a x + b, which is not the same in another order. */
static void map_of(int from, int i, int round, int *at) { at[0] = 2 + from + 3 * i, at[1] = 5 + 7 * from * i + round; }

static void apply_after(const int *first, const int *then, int *at) {
    int a = first[0] * then[0] % 9973, b = (first[0] * then[1] + first[1]) % 9973;
    at[0] = a, at[1] = b;
}

static void composed(void *in, void *out, int *n, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *n; i++) apply_after((int *)in + 2 * i, (int *)out + 2 * i, (int *)out + 2 * i);
}

static double double_of(int from, int i, int round) {
    static const double scale[] = {1e-7, 1e9, 1, -1e5, 1e-3, -1e8, 1e2, 1e-9};
    if (i == N_REDUCED - 1) return (from + 1) * 0.125 + round;
    return scale[(from + i + round) % 8] / (3 + from + 2 * i + round);
}

static int is_rooted(enum kind kind) { return kind == GATHER || kind == GATHERV || kind == REDUCE || kind == SUM; }

static int n_reduced(enum kind kind) {
    int n = 0;
    if (kind == REDUCE_SCATTER_BLOCK) return 2 * size;
    if (kind != REDUCE_SCATTER) return N_REDUCED;
    for (int i = 0; i < size; i++) n += i % 3;
    return n;
}

static void prepare(struct part *part, int round) {
    enum kind kind = part->kind;
    for (int i = 0; i < ROOM; i++) part->give.ints[i] = part->got.ints[i] = -1;
    int from_got = part->in_place && (!is_rooted(kind) || me == root_of(kind));
    union room *at = from_got ? &part->got : &part->give;
    if (kind == BCAST && me == root_of(kind)) fill(kind, me, 0, round, part->got.ints);
    if (kind == GATHER || kind == GATHERV || kind == ALLGATHER || kind == ALLGATHERV)
        fill(kind, me, 0, round, at->ints + (from_got ? place_of(kind, me) : 0));
    for (int to = 0; to < size; to++) {
        if ((kind == SCATTER || kind == SCATTERV) && me == root_of(kind))
            fill(kind, me, to, round, part->give.ints + place_of(kind, to));
        if (kind == ALLTOALL || kind == ALLTOALLV || kind == ALLTOALLW)
            fill(kind, me, to, round, at->ints + place_of(kind, to));
    }
    if (kind >= REDUCE && kind <= EXSCAN)
        for (int i = 0; i < n_reduced(kind); i++) map_of(me, i, round, at->ints + 2 * i);
    if (kind >= SUM)
        for (int i = 0; i < N_REDUCED; i++) at->doubles[i] = double_of(me, i, round);
}

static int moved(struct part *part, enum form form, MPI_Request *request) {
    int root = root_of(part->kind), own = n_of(part->kind, me, me), is_at_root = part->in_place && me == root;
    int *give = part->in_place ? MPI_IN_PLACE : part->give.ints, *got = part->got.ints;
    int *root_give = is_at_root ? MPI_IN_PLACE : part->give.ints, *root_got = is_at_root ? MPI_IN_PLACE : got;
    switch (part->kind) {
        case BCAST: return IN_FORM(Bcast, bcast, got, 2, MPI_INT, root);
        case GATHER: return IN_FORM(Gather, gather, root_give, 2, MPI_INT, got, 2, MPI_INT, root);
        case GATHERV: return IN_FORM(Gatherv, gatherv, root_give, own, MPI_INT, got, by_rank, places, MPI_INT, root);
        case SCATTER: return IN_FORM(Scatter, scatter, part->give.ints, 2, MPI_INT, root_got, 2, MPI_INT, root);
        case SCATTERV:
            return IN_FORM(Scatterv, scatterv, part->give.ints, by_rank, places, MPI_INT, root_got, own, MPI_INT, root);
        case ALLGATHER: return IN_FORM(Allgather, allgather, give, 2, MPI_INT, got, 2, MPI_INT);
        case ALLGATHERV:
            return IN_FORM(Allgatherv, allgatherv, give, own, MPI_INT, got, by_rank, places, MPI_INT);
        case ALLTOALL: return IN_FORM(Alltoall, alltoall, give, 2, MPI_INT, got, 2, MPI_INT);
        case ALLTOALLV:
            return IN_FORM(Alltoallv, alltoallv, give, by_both, places, MPI_INT, got, by_both, places, MPI_INT);
        case ALLTOALLW:
            return IN_FORM(Alltoallw, alltoallw, give, by_both, bytes, types, got, by_both, bytes, types);
        default: return MPI_ERR_OTHER;
    }
}

static int reduced(struct part *part, enum form form, MPI_Request *request) {
    int root = root_of(part->kind), n = N_REDUCED;
    void *got = &part->got, *give = part->in_place ? MPI_IN_PLACE : &part->give;
    void *root_give = part->in_place && me == root ? MPI_IN_PLACE : &part->give;
    switch (part->kind) {
        case REDUCE: return IN_FORM(Reduce, reduce, root_give, got, n, pair, after, root);
        case ALLREDUCE: return IN_FORM(Allreduce, allreduce, give, got, n, pair, after);
        case REDUCE_SCATTER: return IN_FORM(Reduce_scatter, reduce_scatter, give, got, by_rank, pair, after);
        case REDUCE_SCATTER_BLOCK:
            return IN_FORM(Reduce_scatter_block, reduce_scatter_block, give, got, 2, pair, after);
        case SCAN: return IN_FORM(Scan, scan, give, got, n, pair, after);
        case EXSCAN: return IN_FORM(Exscan, exscan, give, got, n, pair, after);
        case SUM: return IN_FORM(Reduce, reduce, root_give, got, n, MPI_DOUBLE, MPI_SUM, root);
        case ALL_SUM: return IN_FORM(Allreduce, allreduce, give, got, n, MPI_DOUBLE, MPI_SUM);
        case SUM_SO_FAR: return IN_FORM(Scan, scan, give, got, n, MPI_DOUBLE, MPI_SUM);
        default: return MPI_ERR_OTHER;
    }
}

static void call(struct part *part, enum form form, MPI_Request *request) {
    int answer;
    if (part->kind == BARRIER)
        answer = form == BLOCKING ? MPI_Barrier(comm)
                 : form == NONBLOCKING ? MPI_Ibarrier(comm, request)
                                       : INIT(MPI_Barrier_init, comm, MPI_INFO_NULL, request);
    else
        answer = part->kind < REDUCE ? moved(part, form, request) : reduced(part, form, request);
    WANT(answer == MPI_SUCCESS);
}

static void add(const void *from, size_t n, int kind) {
    unsigned long long own = 1469598103934665603ULL + kind;
    for (size_t i = 0; i < n; i++) own = (own ^ ((const unsigned char *)from)[i]) * 1099511628211ULL;
    hash += own;
}

/* All numbers are the right ones, and the gaps between them as they were. */
static void check_moved(struct part *part, int round) {
    enum kind kind = part->kind;
    int root = root_of(kind);
    union room right;
    for (int i = 0; i < ROOM; i++) right.ints[i] = -1;
    if (kind == BCAST) fill(kind, root, 0, round, right.ints);
    if ((kind == SCATTER || kind == SCATTERV) && !(part->in_place && me == root))
        fill(kind, root, me, round, right.ints);
    for (int from = 0; from < size; from++) {
        int *at = right.ints + place_of(kind, from);
        if (kind == ALLGATHER || kind == ALLGATHERV || ((kind == GATHER || kind == GATHERV) && me == root))
            fill(kind, from, 0, round, at);
        if (kind == ALLTOALL || kind == ALLTOALLV || kind == ALLTOALLW) fill(kind, from, me, round, at);
    }
    for (int i = 0; i < ROOM; i++) WANT(part->got.ints[i] == right.ints[i]);
    add(right.ints, sizeof right.ints, kind);
}

static void check_reduced(struct part *part, int round) {
    enum kind kind = part->kind;
    int first = 0, n = N_REDUCED, last = size - 1;
    if (kind == REDUCE && me != root_of(kind)) n = 0;
    if (kind == SCAN) last = me;
    if (kind == EXSCAN) last = me - 1;
    if (kind == REDUCE_SCATTER_BLOCK) first = 2 * me, n = 2;
    if (kind == REDUCE_SCATTER) {
        for (int i = 0; i < me; i++) first += i % 3;
        n = me % 3;
    }
    for (int i = 0; i < n && last >= 0; i++) {
        int right[2], next[2];
        map_of(0, first + i, round, right);
        for (int from = 1; from <= last; from++) {
            map_of(from, first + i, round, next);
            apply_after(right, next, right);
        }
        WANT(part->got.ints[2 * i] == right[0] && part->got.ints[2 * i + 1] == right[1]);
        add(right, sizeof right, kind);
    }
}

/* The last of the sums is exact in any order, so it is the same in every form.  Others are near what they
   should be: an MPI may add in another order in another form, but in that form always in the same one. */
static void check_sums(struct part *part, int round) {
    enum kind kind = part->kind;
    double *got = part->got.doubles;
    if (kind == SUM && me != root_of(kind)) return;
    for (int i = 0; i < N_REDUCED; i++) {
        double right = 0, all = 0;
        for (int from = 0; from <= (kind == SUM_SO_FAR ? me : size - 1); from++) {
            double own = double_of(from, i, round);
            right += own, all += own < 0 ? -own : own;
        }
        WANT(got[i] - right <= 1e-14 * all && right - got[i] <= 1e-14 * all);
        if (i == N_REDUCED - 1) WANT(got[i] == right);
    }
    add(got, N_REDUCED * sizeof *got, kind);
}

static void check(struct part *part, int round) {
    if (part->kind < REDUCE) check_moved(part, round);
    else if (part->kind < SUM) check_reduced(part, round);
    else check_sums(part, round);
}

/* Completes all, in one of the orders, and looks at each as soon as it is complete. */
static void finish(MPI_Request *requests, enum form form, int round) {
    int which[2 * N_KINDS], n, n_done = 0;
    MPI_Status statuses[2 * N_KINDS];
    if (round == 0) {
        WANT(!MPI_Waitall(n_parts, requests, statuses));
        for (; n_done < n_parts; n_done++) check(&parts[n_done], round);
    }
    for (; round == 1 && n_done < n_parts; n_done++) {
        WANT(!MPI_Waitany(n_parts, requests, which, MPI_STATUS_IGNORE) && which[0] != MPI_UNDEFINED);
        check(&parts[which[0]], round);
    }
    for (; round == 2 && n_done < n_parts; n_done++) {
        int i = me % 2 ? n_done : n_parts - 1 - n_done;
        WANT(!MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        check(&parts[i], round);
    }
    while (round > 2 && n_done < n_parts) {
        if (round == 3) WANT(!MPI_Testsome(n_parts, requests, &n, which, statuses));
        else WANT(!MPI_Waitsome(n_parts, requests, &n, which, statuses) && n > 0);
        WANT(n != MPI_UNDEFINED);
        for (int i = 0; i < n; i++) check(&parts[which[i]], round);
        n_done += n;
    }
    WANT(!MPI_Testsome(n_parts, requests, &n, which, statuses) && n == MPI_UNDEFINED);
    for (int i = 0; i < n_parts; i++) WANT((requests[i] == MPI_REQUEST_NULL) == (form == NONBLOCKING));
}

static void run(enum form form) {
    MPI_Request requests[2 * N_KINDS];
    if (form == PERSISTENT)
        for (int i = 0; i < n_parts; i++) call(&parts[i], form, &requests[i]);
    for (int round = 0; round < N_ROUNDS; round++) {
        for (int i = 0; i < n_parts; i++) prepare(&parts[i], round);
        for (int i = 0; i < n_parts; i++) {
            if (form == BLOCKING) call(&parts[i], form, NULL), check(&parts[i], round);
            if (form == NONBLOCKING) call(&parts[i], form, &requests[i]);
            if (form == PERSISTENT && round % 2) WANT(!MPI_Start(&requests[i]));
        }
        if (form == PERSISTENT && round % 2 == 0) WANT(!MPI_Startall(n_parts, requests));
        if (form != BLOCKING) finish(requests, form, round);
    }
    if (form == PERSISTENT)
        for (int i = 0; i < n_parts; i++) WANT(!MPI_Request_free(&requests[i]) && requests[i] == MPI_REQUEST_NULL);
}

static void on(MPI_Comm which, const char *name) {
    static const char *form_names[] = {"blocking", "non-blocking", "persistent"};
    comm = which;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) {
        by_rank[i] = i % 3, by_both[i] = (me + i) % 3;
        places[i] = SLOT * i + 1, bytes[i] = sizeof(int) * places[i];
        types[i] = (me + i) % 2 ? pair : MPI_INT;
    }
    for (enum form form = BLOCKING; form <= (HAS_PERSISTENT ? PERSISTENT : NONBLOCKING); form++) {
        unsigned long long all;
        hash = 0;
        run(form);
        MPI_Reduce(&hash, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("%s, %s: %llx\n", name, form_names[form], all);
    }
}

int main(int argc, char **argv) {
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    WANT(size <= MOST);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(composed, 0, &after);
    for (int i = 0; i < 2 * N_KINDS; i++) {
        enum kind kind = i / 2;
        if (i % 2 && (kind == BARRIER || kind == BCAST || (IS_MPICH_4_0 && kind == ALLTOALLW))) continue;
        parts[n_parts].kind = kind, parts[n_parts++].in_place = i % 2;
    }
    on(MPI_COMM_WORLD, "all");
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    on(half, "half");
    MPI_Comm_free(&half);
    MPI_Op_free(&after);
    MPI_Type_free(&pair);
    MPI_Finalize();
    return 0;
}
