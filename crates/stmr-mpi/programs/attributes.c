/* What the program keeps with communicators, in the way of libraries: its functions are called when such a
   thing is copied or goes, and call MPI themselves.  So do those of errors, of requests that the program
   completes, and of operations, which may only ask.
   usage: attributes [dies: replica 1 of process 1 ends in the third round] */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "want.h"

enum { ROUNDS = 6 };

/* A library's own communicator, which it keeps with the program's, and how many use it. */
struct inner {
    MPI_Comm comm;
    int users;
};

static int key, counter, n_gone, n_heard, place[2];

/* Every process adds its part, on the communicator of all processes. */
static int sum(int part) {
    int all = 0;
    MPI_Allreduce(&part, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static int copy(MPI_Comm comm, int which, void *more, void *value, void *to, int *is_copied) {
    struct inner *old = value, *new = malloc(sizeof *new);
    new->users = old->users + sum(1);
    MPI_Comm_dup(old->comm, &new->comm);
    *(void **)to = new;
    *is_copied = 1;
    return MPI_SUCCESS;
}

static int forget(MPI_Comm comm, int which, void *value, void *more) {
    struct inner *it = value;
    int rank, size, own;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(it->comm, &own);
    printf("process %d: gone of %d, used by %d, there %d, in all %d\n", rank, size, it->users, own, sum(it->users));
    fflush(stdout);
    MPI_Comm_free(&it->comm);
    free(it);
    n_gone++;
    return MPI_SUCCESS;
}

static int refuse(MPI_Comm comm, int which, void *value, void *more) {
    return *(int *)value ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void keep(MPI_Comm comm, int users) {
    struct inner *it = malloc(sizeof *it);
    it->users = users;
    MPI_Comm_dup(MPI_COMM_WORLD, &it->comm);
    MPI_Comm_set_attr(comm, key, it);
}

/* A window that goes with another. */
static int close_window(MPI_Win window, int which, void *value, void *more) { return MPI_Win_free(value); }

static void windows(int rank) {
    int mine = rank, its = rank, found, which;
    MPI_Win outer, inner, *got;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, close_window, &which, NULL);
    MPI_Win_create(&mine, sizeof mine, sizeof mine, MPI_INFO_NULL, MPI_COMM_WORLD, &outer);
    MPI_Win_create(&its, sizeof its, sizeof its, MPI_INFO_NULL, MPI_COMM_WORLD, &inner);
    MPI_Win_set_attr(outer, which, &inner);
    MPI_Win_get_attr(outer, which, &got, &found);
    WANT(found && got == &inner);
    MPI_Win_free(&outer);
    WANT(inner == MPI_WIN_NULL && outer == MPI_WIN_NULL);
    MPI_Win_free_keyval(&which);
}

/* Keys, and functions that refuse. */
static void keys(int rank) {
    int plain, other, second, found, refuses = 1, *value;
    MPI_Comm comm;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &plain, NULL);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, refuse, &other, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_attr(MPI_COMM_WORLD, plain, &refuses);
    MPI_Comm_set_attr(MPI_COMM_WORLD, other, &refuses);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_get_attr(comm, plain, &value, &found);
    WANT(!found);
    MPI_Comm_get_attr(comm, other, &value, &found);
    WANT(found && value == &refuses);
    WANT(MPI_Comm_delete_attr(comm, other) != MPI_SUCCESS);
    WANT(MPI_Comm_set_attr(comm, other, NULL) != MPI_SUCCESS);
    WANT(MPI_Comm_free(&comm) != MPI_SUCCESS && comm != MPI_COMM_NULL);
    /* The number of a key that is in use is not given again. */
    second = other;
    MPI_Comm_free_keyval(&second);
    WANT(second == MPI_KEYVAL_INVALID);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &second, NULL);
    MPI_Comm_get_attr(comm, second, &value, &found);
    WANT(!found);
    refuses = 0;
    WANT(MPI_Comm_free(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
    WANT(found && 32767 <= *value);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, plain);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, other);
    MPI_Comm_free_keyval(&plain);
    MPI_Comm_free_keyval(&second);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Who hears of an error hears of the communicator that it is set on. */
static void hear(MPI_Comm *comm, int *code, ...) {
    void *value;
    int found = 0;
    MPI_Comm_get_attr(*comm, key, &value, &found);
    n_heard += found;
}

/* A request that the program completes, whose functions communicate. */
static int query(void *more, MPI_Status *status) {
    MPI_Status_set_elements(status, MPI_INT, sum(1));
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int end(void *more) {
    *(int *)more = sum(1);
    return MPI_SUCCESS;
}

static int cancel(void *more, int is_complete) { return MPI_SUCCESS; }

static void requests(int rank) {
    int count, told = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Grequest_start(query, end, cancel, &told, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Get_elements(&status, MPI_INT, &count);
    WANT(count == place[1] && told == place[1]);
}

/* The greater, and in its place -1 where the function is told of another process than this. */
static void greater(void *in, void *to, int *n, MPI_Datatype *type) {
    int here[2], *kept, is_kept;
    MPI_Comm_rank(MPI_COMM_WORLD, &here[0]);
    MPI_Comm_size(MPI_COMM_WORLD, &here[1]);
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, &kept, &is_kept);
    if (!is_kept || kept != place) here[0] = -1;
    for (int i = 0; i < *n; i++) {
        int *a = in, *b = (int *)to + i;
        *b = here[0] == place[0] && here[1] == place[1] ? (a[i] < *b ? *b : a[i]) : -1;
    }
}

int main(int argc, char **argv) {
    int rank, greatest, length, is_replica = getenv("SELVEDGE_SET") && getenv("SELVEDGE_SET")[0] == '1';
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &place[1]);
    place[0] = rank;
    MPI_Op op;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, place);
    MPI_Op_create(greater, 1, &op);
    MPI_Allreduce(&rank, &greatest, 1, MPI_INT, op, MPI_COMM_WORLD);
    WANT(greatest == place[1] - 1);
    MPI_Op_free(&op);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    WANT(!strcmp(name, "MPI_COMM_WORLD"));
    requests(rank);
    keys(rank);
    windows(rank);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_create_keyval(copy, forget, &key, &counter);
    keep(MPI_COMM_SELF, 100);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comm, again, later;
        MPI_Request request;
        struct inner *found;
        int is_there;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm);
        keep(comm, round);
        if (1 < argc && round == 2 && rank == 1 && is_replica) raise(SIGKILL);
        MPI_Comm_dup(comm, &again);
        MPI_Comm_idup(comm, &later, &request);
        keep(comm, 10 + round);
        MPI_Barrier(comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_get_attr(later, key, &found, &is_there);
        WANT(is_there && found->users == round + sum(1));
        MPI_Comm_set_errhandler(later, handler);
        MPI_Comm_call_errhandler(later, MPI_ERR_OTHER);
        WANT(n_heard == round + 1);
        MPI_Comm_delete_attr(again, key);
        MPI_Comm_get_attr(again, key, &found, &is_there);
        WANT(!is_there);
        MPI_Comm_free(&again);
        MPI_Comm_free(&comm);
        MPI_Comm_free(&later);
        WANT(n_gone == 4 * (round + 1));
    }
    MPI_Comm_free_keyval(&key);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return 0;
}
