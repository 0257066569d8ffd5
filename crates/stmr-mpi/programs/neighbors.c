/* Collectives of neighbours in each of their forms, blocking, non-blocking and persistent: on a grid with
   two edges and on a graph whose processes have more sources than destinations or fewer; on all processes
   and on half of them; all at once, completed in several orders.
   largeneighbors.c makes the same of the calls with counts of 64 bits. */
#include "forms.h"
#include "want.h"

/* The call in one of its forms. */
#define IN_FORM(name, ...)                                                                                  \
    (form == BLOCKING ? CALL(Neighbor_##name)(__VA_ARGS__, comm)                                            \
     : form == NONBLOCKING ? CALL(Ineighbor_##name)(__VA_ARGS__, comm, request)                             \
                           : INIT(CALL(Neighbor_##name##_init), __VA_ARGS__, comm, MPI_INFO_NULL, request))

enum { MOST = 10, SLOT = 6, ROOM = MOST * SLOT, N_ROUNDS = 5 };
enum form { BLOCKING, NONBLOCKING, PERSISTENT };
enum kind { GATHER, GATHERV, EACH, EACHV, EACHW, N_KINDS };

/* Those on one side, and what goes from or to each of them. */
struct side {
    int n, who[MOST];
    Number gathered[MOST], each[MOST], typed[MOST];
    Place places[MOST];
    MPI_Aint bytes[MOST];
    MPI_Datatype types[MOST];
};

static int rank, me, size, n_kinds, give[N_KINDS][ROOM], got[N_KINDS][ROOM];
static MPI_Comm comm;
static MPI_Datatype pair;
static struct side sources, targets;
static unsigned long long hash;

static int n_of(enum kind kind, int from, int to) {
    switch (kind) {
        case GATHERV: return from % 3;
        case EACHV: return (from + 2 * to) % 4;
        case EACHW: return (from + 2 * to) % 3 * (to % 2 + 1);
        default: return 2;
    }
}

static int place_of(enum kind kind, int i) { return kind == GATHER || kind == EACH ? 2 * i : SLOT * i + 1; }

static void fill(enum kind kind, int from, int to, int round, int *at) {
    for (int i = 0; i < n_of(kind, from, to); i++) at[i] = 100000 * kind + 10000 * round + 1000 * from + 100 * to + i;
}

static void prepare(enum kind kind, int round) {
    for (int i = 0; i < ROOM; i++) give[kind][i] = got[kind][i] = -1;
    if (kind == GATHER || kind == GATHERV) fill(kind, me, 0, round, give[kind]);
    else
        for (int i = 0; i < targets.n; i++)
            if (targets.who[i] >= 0) fill(kind, me, targets.who[i], round, give[kind] + place_of(kind, i));
}

static void call(enum kind kind, enum form form, MPI_Request *request) {
    int answer = MPI_ERR_OTHER, *out = give[kind], *in = got[kind];
    struct side *s = &sources, *t = &targets;
    switch (kind) {
        case GATHER: answer = IN_FORM(allgather, out, 2, MPI_INT, in, 2, MPI_INT); break;
        case GATHERV:
            answer = IN_FORM(allgatherv, out, me % 3, MPI_INT, in, s->gathered, s->places, MPI_INT);
            break;
        case EACH: answer = IN_FORM(alltoall, out, 2, MPI_INT, in, 2, MPI_INT); break;
        case EACHV:
            answer = IN_FORM(alltoallv, out, t->each, t->places, MPI_INT, in, s->each, s->places, MPI_INT);
            break;
        default:
            answer = IN_FORM(alltoallw, out, t->typed, t->bytes, t->types, in, s->typed, s->bytes, s->types);
    }
    WANT(answer == MPI_SUCCESS);
}

/* All numbers are the right ones, and what lies between them or is for nobody is as it was. */
static void check(enum kind kind, int round) {
    int right[ROOM];
    unsigned long long own = 1469598103934665603ULL + kind;
    for (int i = 0; i < ROOM; i++) right[i] = -1;
    for (int i = 0; i < sources.n; i++)
        if (sources.who[i] >= 0)
            fill(kind, sources.who[i], kind <= GATHERV ? 0 : me, round, right + place_of(kind, i));
    for (int i = 0; i < ROOM; i++) {
        WANT(got[kind][i] == right[i]);
        own = (own ^ (unsigned)got[kind][i]) * 1099511628211ULL;
    }
    hash += own;
}

/* Completes all, in one of the orders, and looks at each as soon as it is complete. */
static void finish(MPI_Request *requests, enum form form, int round) {
    int which[N_KINDS], n, n_done = 0;
    MPI_Status statuses[N_KINDS];
    if (round == 0) {
        WANT(!MPI_Waitall(n_kinds, requests, statuses));
        for (; n_done < n_kinds; n_done++) check(n_done, round);
    }
    for (; round == 1 && n_done < n_kinds; n_done++) {
        WANT(!MPI_Waitany(n_kinds, requests, which, MPI_STATUS_IGNORE) && which[0] != MPI_UNDEFINED);
        check(which[0], round);
    }
    for (; round == 2 && n_done < n_kinds; n_done++) {
        int i = me % 2 ? n_done : n_kinds - 1 - n_done;
        WANT(!MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        check(i, round);
    }
    while (round > 2 && n_done < n_kinds) {
        if (round == 3) WANT(!MPI_Testsome(n_kinds, requests, &n, which, statuses));
        else WANT(!MPI_Waitsome(n_kinds, requests, &n, which, statuses) && n > 0);
        WANT(n != MPI_UNDEFINED);
        for (int i = 0; i < n; i++) check(which[i], round);
        n_done += n;
    }
    WANT(!MPI_Testsome(n_kinds, requests, &n, which, statuses) && n == MPI_UNDEFINED);
    for (int i = 0; i < n_kinds; i++) WANT((requests[i] == MPI_REQUEST_NULL) == (form == NONBLOCKING));
}

static void run(enum form form) {
    MPI_Request requests[N_KINDS];
    if (form == PERSISTENT)
        for (int i = 0; i < n_kinds; i++) call(i, form, &requests[i]);
    for (int round = 0; round < N_ROUNDS; round++) {
        for (int i = 0; i < n_kinds; i++) prepare(i, round);
        for (int i = 0; i < n_kinds; i++) {
            if (form == BLOCKING) call(i, form, NULL), check(i, round);
            if (form == NONBLOCKING) call(i, form, &requests[i]);
            if (form == PERSISTENT && round % 2) WANT(!MPI_Start(&requests[i]));
        }
        if (form == PERSISTENT && round % 2 == 0) WANT(!MPI_Startall(n_kinds, requests));
        if (form != BLOCKING) finish(requests, form, round);
    }
    if (form == PERSISTENT)
        for (int i = 0; i < n_kinds; i++) WANT(!MPI_Request_free(&requests[i]) && requests[i] == MPI_REQUEST_NULL);
}

/* What goes between this process and those on that side. */
static void lay_out(struct side *side, int is_given) {
    for (int i = 0; i < side->n; i++) {
        int other = side->who[i], from = is_given ? me : other, to = is_given ? other : me, is_there = other >= 0;
        side->gathered[i] = is_there ? n_of(GATHERV, from, to) : 0;
        side->each[i] = is_there ? n_of(EACHV, from, to) : 0;
        side->typed[i] = is_there ? n_of(EACHW, from, to) / (to % 2 + 1) : 0;
        side->types[i] = is_there && to % 2 ? pair : MPI_INT;
        side->places[i] = SLOT * i + 1, side->bytes[i] = sizeof(int) * side->places[i];
    }
}

static void in_each_form(const char *name, const char *shape) {
    static const char *form_names[] = {"blocking", "non-blocking", "persistent"};
    for (enum form form = BLOCKING; form <= (HAS_PERSISTENT ? PERSISTENT : NONBLOCKING); form++) {
        unsigned long long all;
        hash = 0;
        run(form);
        MPI_Reduce(&hash, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("%s, %s, %s: %llx\n", shape, name, form_names[form], all);
    }
}

static void begin(MPI_Comm made, int n) {
    comm = made, n_kinds = n;
    lay_out(&sources, 0), lay_out(&targets, 1);
}

static void on_grid(MPI_Comm all, const char *name) {
    int dims[2] = {0, 0}, is_closed[2] = {1, 0}, low, high;
    MPI_Comm grid;
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(all, 2, dims, is_closed, 0, &grid);
    MPI_Comm_rank(grid, &me);
    sources.n = 0;
    for (int along = 0; along < 2; along++) {
        MPI_Cart_shift(grid, along, 1, &low, &high);
        sources.who[sources.n++] = low, sources.who[sources.n++] = high;
    }
    targets = sources;
    begin(grid, N_KINDS);
    in_each_form(name, "grid");
    MPI_Comm_free(&grid);
}

/* All give to the next one and to the first, and half of them to one more. */
static int is_edge(int from, int to) {
    return to == (from + 1) % size || to == 0 || (from % 2 == 0 && to == (from + 2) % size);
}

static void on_graph(MPI_Comm all, const char *name) {
    int weights[2][MOST], told[2][MOST], n_sources, n_targets, is_weighted;
    MPI_Comm graph;
    MPI_Comm_rank(all, &me);
    sources.n = targets.n = 0;
    for (int i = 0; i < size; i++) {
        if (is_edge(size - 1 - i, me)) weights[0][sources.n] = size - i + me, sources.who[sources.n++] = size - 1 - i;
        if (is_edge(me, i)) weights[1][targets.n] = 1 + me + i, targets.who[targets.n++] = i;
    }
    WANT(!MPI_Dist_graph_create_adjacent(all, sources.n, sources.who, weights[0], targets.n, targets.who, weights[1],
                                         MPI_INFO_NULL, 0, &graph));
    MPI_Dist_graph_neighbors_count(graph, &n_sources, &n_targets, &is_weighted);
    WANT(n_sources == sources.n && n_targets == targets.n && is_weighted);
    MPI_Dist_graph_neighbors(graph, MOST, told[0], weights[0], MOST, told[1], weights[1]);
    for (int i = 0; i < n_sources; i++) WANT(told[0][i] == sources.who[i] && weights[0][i] == 1 + told[0][i] + me);
    for (int i = 0; i < n_targets; i++) WANT(told[1][i] == targets.who[i] && weights[1][i] == 1 + told[1][i] + me);
    /* MPICH 4.0.2's MPI_Neighbor_alltoallw goes wrong where a process has more destinations than sources. */
    begin(graph, IS_MPICH_4_0 ? EACHW : N_KINDS);
    in_each_form(name, "graph");
    MPI_Comm_free(&graph);
}

static void on(MPI_Comm all, const char *name) {
    MPI_Comm_size(all, &size);
    on_grid(all, name);
    on_graph(all, name);
}

int main(int argc, char **argv) {
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    WANT(size <= 8);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    on(MPI_COMM_WORLD, "all");
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    on(half, "half");
    MPI_Comm_free(&half);
    MPI_Type_free(&pair);
    MPI_Finalize();
    return 0;
}
