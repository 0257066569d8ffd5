/* Two sides that talk to each other, communicators that are made meanwhile, requests that the program
   completes itself, and messages in parts; every answer is checked. */
#include <stdlib.h>

#include "want.h"

static int rank, size, side, own, n_own, n_other;
static MPI_Comm half, between;

/* The first of each three are one side, so that the sides differ in size. */
static void part_ways(void) {
    MPI_Group remote;
    int flag, n;
    side = rank * 3 >= size;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    int other = side ? 0 : (size + 2) / 3;
    WANT(!MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, other, 7, &between));
    MPI_Comm_test_inter(between, &flag);
    WANT(flag && !MPI_Comm_rank(between, &own) && !MPI_Comm_size(between, &n_own));
    WANT(!MPI_Comm_remote_size(between, &n_other) && n_own + n_other == size);
    WANT(!MPI_Comm_remote_group(between, &remote) && !MPI_Group_size(remote, &n) && n == n_other);
    MPI_Group_free(&remote);
}

static void messages(int round) {
    int out = 1000 * round + rank, in = -1, to = own % n_other;
    MPI_Request request;
    MPI_Status status;
    if (side) {
        WANT(!MPI_Send(&out, 1, MPI_INT, to, 3, between));
    } else {
        for (int from = own; from < n_other; from += n_own) {
            MPI_Irecv(&in, 1, MPI_INT, from, 3, between, &request);
            MPI_Wait(&request, &status);
            WANT(status.MPI_SOURCE == from && in == 1000 * round + n_own + from);
        }
    }
}

static void collectives(int round) {
    int mine = round + rank, sum = 0, all[64], parts[64], n = 0, wanted = 0;
    int first = side ? 0 : n_own;
    for (int i = 0; i < n_other; i++) wanted += round + first + i;
    WANT(!MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, between) && sum == wanted);
    WANT(!MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, between));
    for (int i = 0; i < n_other; i++) WANT(all[i] == round + first + i);
    for (int i = 0; i < n_other; i++) parts[i] = 100 * rank + i;
    WANT(!MPI_Alltoall(parts, 1, MPI_INT, all, 1, MPI_INT, between));
    for (int i = 0; i < n_other; i++) WANT(all[i] == 100 * (first + i) + own);
    /* The first process of each side in turn has something to say, or to hear. */
    int root = round % 2 != side ? 0 : own == 0 ? MPI_ROOT : MPI_PROC_NULL;
    sum = root == MPI_ROOT ? 42 + round : 0;
    WANT(!MPI_Bcast(root == MPI_PROC_NULL ? NULL : &sum, root != MPI_PROC_NULL, MPI_INT, root, between));
    if (root != MPI_PROC_NULL) WANT(sum == 42 + round);
    sum = 0;
    WANT(!MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, root, between));
    if (root == MPI_ROOT) WANT(sum == wanted);
    WANT(!MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, root, between));
    if (root == MPI_ROOT) WANT(all[n_other - 1] == round + first + n_other - 1);
    for (int i = 0; i < n_other; i++) all[i] = 7 * i;
    WANT(!MPI_Scatter(all, 1, MPI_INT, &n, 1, MPI_INT, root, between));
    if (root == 0) WANT(n == 7 * own);
    WANT(!MPI_Barrier(between));
}

static void made_meanwhile(int round) {
    MPI_Comm copy = MPI_COMM_NULL, merged, other;
    MPI_Request request;
    int at, n, flag, sum;
    WANT(!MPI_Comm_idup(between, &copy, &request) && !MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Comm_test_inter(copy, &flag);
    WANT(flag && !MPI_Comm_remote_size(copy, &n) && n == n_other && !MPI_Barrier(copy));
    WANT(!MPI_Intercomm_merge(copy, (round + side) % 2, &merged));
    MPI_Comm_rank(merged, &at);
    MPI_Comm_size(merged, &n);
    WANT(n == size && !MPI_Allreduce(&at, &sum, 1, MPI_INT, MPI_SUM, merged));
    WANT(sum == size * (size - 1) / 2);
    WANT(!MPI_Comm_idup(merged, &other, &request) && !MPI_Wait(&request, MPI_STATUS_IGNORE));
    WANT(!MPI_Comm_compare(merged, other, &flag) && flag == MPI_CONGRUENT);
    MPI_Comm_free(&other);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&copy);
}

/* A probe for nobody finds a message from nobody. */
static void from_nobody(void) {
    MPI_Message message;
    MPI_Status status;
    int flag;
    WANT(!MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status));
    WANT(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL);
    WANT(!MPI_Mrecv(NULL, 0, MPI_INT, &message, &status) && message == MPI_MESSAGE_NULL);
    WANT(!MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &message, &status));
    WANT(flag && message == MPI_MESSAGE_NO_PROC);
}

static int freed;
static int query(void *extra, MPI_Status *status) {
    MPI_Status_set_elements(status, MPI_INT, *(int *)extra);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 5;
    status->MPI_TAG = 6;
    return MPI_SUCCESS;
}
static int free_it(void *extra) { return freed++, MPI_SUCCESS; }
static int cancel(void *extra, int complete) { return MPI_SUCCESS; }

static void own_requests(int round) {
    MPI_Request request;
    MPI_Status status;
    int count, flag, before = freed;
    WANT(!MPI_Grequest_start(query, free_it, cancel, &round, &request));
    WANT(!MPI_Test(&request, &flag, &status) && !flag);
    WANT(!MPI_Cancel(&request) && !MPI_Grequest_complete(request));
    WANT(!MPI_Wait(&request, &status) && request == MPI_REQUEST_NULL && freed == before + 1);
    MPI_Get_count(&status, MPI_INT, &count);
    WANT(count == round && status.MPI_SOURCE == 5 && status.MPI_TAG == 6);
}

/* A handler that is freed lives as long as it is set. */
static int failures;
static void count_failures(MPI_Comm *comm, int *code, ...) { failures++; }

static void handlers(void) {
    MPI_Errhandler mine, got;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(count_failures, &mine);
    MPI_Comm_set_errhandler(comm, mine);
    MPI_Errhandler_free(&mine);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_get_errhandler(comm, &got);
        MPI_Errhandler_free(&got);
        MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got);
        MPI_Errhandler_free(&got);
    }
    int before = failures;
    MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
    WANT(failures == before + 1 && !MPI_Comm_free(&comm));
}

static void in_parts(int round) {
#if MPI_VERSION >= 4
    enum { PARTS = 5, EACH = 3 };
    int out[PARTS * EACH], in[PARTS * EACH], flag, up = (rank + 1) % size, down = (rank + size - 1) % size;
    MPI_Request requests[2];
    WANT(!MPI_Psend_init(out, PARTS, EACH, MPI_INT, up, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    WANT(!MPI_Precv_init(in, PARTS, EACH, MPI_INT, down, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int turn = 0; turn < 3; turn++) {
        memset(in, 0, sizeof in);
        for (int i = 0; i < PARTS * EACH; i++) out[i] = 100 * rank + i + turn + round;
        WANT(!MPI_Startall(2, requests));
        MPI_Pready(1, requests[0]);
        MPI_Pready_range(2, 3, requests[0]);
        int list[2] = {4, 0};
        MPI_Pready_list(2, list, requests[0]);
        do MPI_Parrived(requests[1], 2, &flag);
        while (!flag);
        for (int i = 2 * EACH; i < 3 * EACH; i++) WANT(in[i] == 100 * down + i + turn + round);
        WANT(!MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < PARTS * EACH; i++) WANT(in[i] == 100 * down + i + turn + round);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Group group;
    MPI_Comm comm;
    MPI_Comm_group(half, &group);
    WANT(!MPI_Comm_create_from_group(group, "half", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    MPI_Comm_compare(comm, half, &flag);
    WANT(flag == MPI_CONGRUENT && !MPI_Barrier(comm) && !MPI_Comm_free(&comm));
    MPI_Group_free(&group);
#endif
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    part_ways();
    for (int round = 0; round < (argc > 1 ? atoi(argv[1]) : 3); round++) {
        messages(round);
        collectives(round);
        made_meanwhile(round);
        own_requests(round);
        from_nobody();
        handlers();
        in_parts(round);
        if (rank == 0) {
            printf("round %d\n", round);
            fflush(stdout);
        }
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
