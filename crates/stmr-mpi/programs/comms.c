/* Communicators of some processes, of pairs of groups and of rings, copies with hints, and what is
   said of those who failed (nobody has). */
#include <stdlib.h>

#include "want.h"

#if defined OPEN_MPI && OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#endif

enum { ROUNDS = 3, MOST = 64 };

static int rank, size;

static long sum_in(MPI_Comm comm, int own) {
    int sum = -1;
    WANT(!MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm));
    return sum;
}

/* The processes whose rank has this parity. */
static MPI_Group those(int parity) {
    int some[MOST], n = 0;
    MPI_Group all, group;
    for (int i = parity; i < size; i += 2) some[n++] = i;
    WANT(!MPI_Comm_group(MPI_COMM_WORLD, &all) && !MPI_Group_incl(all, n, some, &group));
    WANT(!MPI_Group_free(&all));
    return group;
}

/* All make one of the even ranks; the odd ones make theirs by themselves. */
static long of_some(int k) {
    MPI_Group even = those(0), odd = those(1);
    MPI_Comm comm = MPI_COMM_WORLD;
    int of_kind[2] = {0, 0}, place, n;
    for (int i = 0; i < size; i++) of_kind[i % 2] += i + k;
    WANT(!MPI_Comm_create(MPI_COMM_WORLD, even, &comm) && (comm == MPI_COMM_NULL) == rank % 2);
    if (rank % 2) WANT(!MPI_Comm_create_group(MPI_COMM_WORLD, odd, 5 + k, &comm) && comm != MPI_COMM_NULL);
    WANT(!MPI_Comm_rank(comm, &place) && place == rank / 2);
    WANT(!MPI_Comm_size(comm, &n) && n == (size + 1 - rank % 2) / 2);
    long sum = sum_in(comm, rank + k);
    WANT(sum == of_kind[rank % 2]);
    WANT(!MPI_Comm_disconnect(&comm) && comm == MPI_COMM_NULL);
    MPI_Group_free(&even), MPI_Group_free(&odd);
    return sum;
}

/* A ring in which each names its neighbours: it hears of two, and tells two, with weights and without. */
static long of_ring(int k) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size, n_in, n_out, weighted, kind;
    int in[2] = {left, right}, out[2] = {right, left}, weights[2] = {2 + k, 3 + k};
    int told_in[2], told_out[2], told_weights[2][2], own = 10 * rank + k, got[2];
    MPI_Comm ring;
    for (int turn = 0; turn < 2; turn++) {
        int *of = turn ? weights : MPI_UNWEIGHTED;
        WANT(!MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, in, of, 2, out, of, MPI_INFO_NULL, 0, &ring));
        WANT(!MPI_Topo_test(ring, &kind) && kind == MPI_DIST_GRAPH);
        WANT(!MPI_Dist_graph_neighbors_count(ring, &n_in, &n_out, &weighted) && weighted == turn);
        WANT(n_in == 2 && n_out == 2);
        WANT(!MPI_Dist_graph_neighbors(ring, 2, told_in, turn ? told_weights[0] : MPI_UNWEIGHTED, 2, told_out,
                                       turn ? told_weights[1] : MPI_UNWEIGHTED));
        WANT(!memcmp(told_in, in, sizeof in) && !memcmp(told_out, out, sizeof out));
        for (int i = 0; turn && i < 4; i++) WANT(told_weights[i / 2][i % 2] == weights[i % 2]);
        WANT(!MPI_Neighbor_allgather(&own, 1, MPI_INT, got, 1, MPI_INT, ring));
        WANT(got[0] == 10 * left + k && got[1] == 10 * right + k);
        WANT(!MPI_Comm_free(&ring));
    }
    return got[0] + got[1];
}

static int copied, forgotten;
static int copy(MPI_Comm comm, int keyval, void *extra, void *from, void *to, int *flag) {
    copied += *(int *)extra;
    *(void **)to = from;
    *flag = 1;
    return MPI_SUCCESS;
}

static int forget(MPI_Comm comm, int keyval, void *value, void *extra) {
    forgotten += *(int *)value;
    return MPI_SUCCESS;
}

/* Copies have the attributes of what they are copies of, and hints of their own. */
static long with_hints(int k) {
    int keyval, result, flag, seven = 7, three = 3, *got;
    long sum = 0;
    MPI_Info info;
    MPI_Comm from, to[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
    copied = forgotten = 0;
    WANT(!MPI_Comm_dup(MPI_COMM_WORLD, &from));
    WANT(!MPI_Comm_create_keyval(copy, forget, &keyval, &three) && !MPI_Comm_set_attr(from, keyval, &seven));
    WANT(!MPI_Info_create(&info) && !MPI_Info_set(info, "mpi_assert_no_any_tag", "false"));
    WANT(!MPI_Comm_dup_with_info(from, info, &to[0]));
#if MPI_VERSION >= 4
    MPI_Request request;
    WANT(!MPI_Comm_idup_with_info(from, info, &to[1], &request));
    WANT(!MPI_Wait(&request, MPI_STATUS_IGNORE) && request == MPI_REQUEST_NULL);
#else
    WANT(!MPI_Comm_dup(from, &to[1]));
#endif
    WANT(!MPI_Info_free(&info) && copied == 6);
    for (int i = 0; i < 2; i++) {
        WANT(!MPI_Comm_compare(from, to[i], &result) && result == MPI_CONGRUENT);
        WANT(!MPI_Comm_get_attr(to[i], keyval, &got, &flag) && flag && got == &seven);
        sum += sum_in(to[i], rank * (i + 1) + k);
        WANT(!MPI_Comm_disconnect(&to[i]) && to[i] == MPI_COMM_NULL && forgotten == 7 * (i + 1));
    }
    WANT(!MPI_Comm_free_keyval(&keyval) && !MPI_Comm_free(&from) && forgotten == 21);
    WANT(sum == 3 * size * (size - 1) / 2 + 2 * size * k);
    return sum;
}

/* Two groups that face each other, of which no communicator was made before. */
static long facing(int k) {
#if MPI_VERSION >= 4
    MPI_Group own = those(rank % 2), other = those(1 - rank % 2);
    MPI_Comm comm;
    MPI_Errhandler handler;
    int n, is_inter, of_kind[2] = {0, 0};
    char name[32];
    for (int i = 0; i < size; i++) of_kind[i % 2] += i + k;
    snprintf(name, sizeof name, "facing %d", k);
    WANT(!MPI_Intercomm_create_from_groups(own, 0, other, 0, name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    WANT(!MPI_Comm_test_inter(comm, &is_inter) && is_inter);
    WANT(!MPI_Comm_remote_size(comm, &n) && n == (size + rank % 2) / 2);
    WANT(!MPI_Comm_get_errhandler(comm, &handler) && handler == MPI_ERRORS_RETURN);
    WANT(!MPI_Errhandler_free(&handler));
    WANT(sum_in(comm, rank + k) == of_kind[1 - rank % 2]);
    WANT(!MPI_Comm_free(&comm) && comm == MPI_COMM_NULL);
    MPI_Group_free(&own), MPI_Group_free(&other);
#endif
    return k;
}

static int n_heard;
static void hear(MPI_Comm *comm, int *code, ...) { n_heard++; }

/* Names of communicators for Fortran, who started the program, and handlers by their old names. */
static void known(void) {
    MPI_Comm parent = MPI_COMM_WORLD, copy;
    MPI_Errhandler handler, got;
    WANT(!MPI_Comm_get_parent(&parent) && parent == MPI_COMM_NULL);
    WANT(!MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    /* In parentheses these are the functions: MPICH 5 has macros of these names too, and MPICH 4 nothing else. */
#if !defined MPI_ABI_VERSION && !(defined MPICH && MPI_VERSION < 5)
    WANT((MPI_Comm_f2c)((MPI_Comm_c2f)(copy)) == copy);
    WANT((MPI_Comm_f2c)((MPI_Comm_c2f)(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    WANT((MPI_Comm_f2c)((MPI_Comm_c2f)(MPI_COMM_NULL)) == MPI_COMM_NULL);
#endif
#if MPI_VERSION >= 5
    WANT(MPI_Comm_fromint(MPI_Comm_toint(copy)) == copy);
    WANT(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    WANT(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_NULL)) == MPI_COMM_NULL);
#endif
#if defined MPICH && !defined MPI_ABI_VERSION
    WANT(!MPI_Errhandler_create(hear, &handler) && !MPI_Errhandler_set(copy, handler));
    WANT(!MPI_Errhandler_get(copy, &got) && got == handler && !MPI_Errhandler_free(&got));
#else
    WANT(!MPI_Comm_create_errhandler(hear, &handler) && !MPI_Comm_set_errhandler(copy, handler));
    WANT(!MPI_Comm_get_errhandler(copy, &got) && got == handler && !MPI_Errhandler_free(&got));
#endif
    WANT(!MPI_Errhandler_free(&handler) && handler == MPI_ERRHANDLER_NULL);
    WANT(!MPI_Comm_call_errhandler(copy, MPI_ERR_OTHER) && n_heard == 1);
    WANT(!MPI_Comm_free(&copy));
}

#if defined MPICH && !defined MPI_ABI_VERSION && MPICH_NUMVERSION >= 50000000
#define HAS_FAILED
#elif defined OMPI_HAVE_MPI_EXT_FTMPI
#define HAS_FAILED
#define HAS_ALL
#endif

#ifdef HAS_FAILED
/* Nobody has failed. */
static void is_nobody(MPI_Group *group) {
    int n = -1;
    WANT(!MPI_Group_size(*group, &n) && n == 0);
    if (*group != MPI_GROUP_EMPTY) WANT(!MPI_Group_free(group));
}
#endif

/* What programs that live on ask.  MPICH 4.0.2 and 5.0.2 abort in all of it but the first. */
static void failures(void) {
#ifdef HAS_FAILED
    MPI_Comm comm;
    MPI_Group group;
    WANT(!MPI_Comm_dup(MPI_COMM_WORLD, &comm) && !MPIX_Comm_get_failed(comm, &group));
    is_nobody(&group);
#ifdef HAS_ALL
    int flag = -1, n = -1, bits = 0xf0f | (rank % 2 ? 0x1000 : 0x2000), result;
    MPI_Comm fewer;
    WANT(!MPIX_Comm_is_revoked(comm, &flag) && flag == 0);
    WANT(!MPIX_Comm_agree(comm, &bits) && bits == 0xf0f);
    WANT(!MPIX_Comm_failure_ack(comm) && !MPIX_Comm_failure_get_acked(comm, &group));
    is_nobody(&group);
    WANT(!MPIX_Comm_ack_failed(comm, size, &n) && n == 0);
    WANT(!MPIX_Comm_shrink(comm, &fewer));
    WANT(!MPI_Comm_compare(comm, fewer, &result) && result == MPI_CONGRUENT);
    WANT(sum_in(fewer, rank) == size * (size - 1) / 2);
    WANT(!MPI_Comm_free(&fewer));
#endif
    WANT(!MPI_Comm_free(&comm));
#endif
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    known();
    failures();
    for (int k = 0; k < ROUNDS; k++) {
        long own[4] = {of_some(k), of_ring(k), with_hints(k), facing(k)}, all[4];
        MPI_Reduce(own, all, 4, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("round %d: %ld %ld %ld %ld\n", k, all[0], all[1], all[2], all[3]), fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
