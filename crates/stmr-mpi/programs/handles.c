/* Things of MPI that the program holds: groups and what is made of them; operations, its own among them,
   also on its own memory; and the numbers that Fortran and others know such things by, and back from them
   to the things, which must still be what they were.
   usage: handles */
#include "want.h"

enum { MOST = 8 };

static int rank, size, next, before;
static MPI_Group world;

/* The members, as digits. */
static int members(MPI_Group group) {
    int n, own[MOST], there[MOST], digits = 0;
    MPI_Group_size(group, &n);
    for (int i = 0; i < n; i++) own[i] = i;
    MPI_Group_translate_ranks(group, n, own, world, there);
    for (int i = 0; i < n; i++) digits = 10 * digits + there[i] + 1;
    return digits;
}

static int is_in(int who, const int *some, int n) {
    for (int i = 0; i < n; i++)
        if (some[i] == who) return i;
    return MPI_UNDEFINED;
}

/* The group made must have just these, and is then gone. */
static long want_group(MPI_Group group, const int *some, int n) {
    int own, digits = 0;
    for (int i = 0; i < n; i++) digits = 10 * digits + some[i] + 1;
    MPI_Group_rank(group, &own);
    WANT(own == is_in(rank, some, n) && members(group) == digits);
    if (n == 0) WANT(group == MPI_GROUP_EMPTY);
    if (n > 0) MPI_Group_free(&group);
    return digits;
}

/* The group of the first and the last of all, and that of all but the first. */
static long group(void) {
    int ends[] = {size - 1, 0}, most[MOST], back[MOST], both[MOST], range[1][3] = {{size - 1, 0, -1}}, how, last;
    MPI_Group a, b, made;
    long sum = 0;
    for (int i = 0; i < size; i++) most[i] = i + 1, back[i] = size - 1 - i;
    MPI_Group_incl(world, 2, ends, &a);
    MPI_Group_excl(world, 1, &ends[1], &b);
    MPI_Group_compare(a, b, &how);
    WANT(how == MPI_UNEQUAL);
    MPI_Group_union(a, b, &made);
    both[0] = size - 1, both[1] = 0;
    for (int i = 2; i < size; i++) both[i] = i - 1;
    MPI_Group_compare(made, world, &how);
    WANT(how == MPI_SIMILAR);
    sum += want_group(made, both, size);
    MPI_Group_intersection(b, a, &made);
    sum += want_group(made, ends, 1);
    MPI_Group_difference(a, b, &made);
    sum += want_group(made, &ends[1], 1);
    MPI_Group_difference(a, world, &made);
    sum += want_group(made, NULL, 0);
    MPI_Group_range_incl(world, 1, range, &made);
    sum += want_group(made, back, size);
    range[0][0] = range[0][1] = 0, range[0][2] = 1;
    MPI_Group_range_excl(world, 1, range, &made);
    MPI_Group_compare(made, b, &how);
    WANT(how == MPI_IDENT);
    sum += want_group(made, most, size - 1);
    last = 1;
    MPI_Group_translate_ranks(a, 1, &last, b, &how);
    WANT(how == MPI_UNDEFINED);
    MPI_Group_free(&a);
    MPI_Group_free(&b);
    return sum;
}

static void join(void *from, void *to, int *n, MPI_Datatype *type) {
    for (int i = 0; i < *n; i++) ((int *)to)[i] = 10 * ((int *)from)[i] + ((int *)to)[i] % 10;
}

static void keep_low(void *from, void *to, int *n, MPI_Datatype *type) {
    for (int i = 0; i < *n; i++)
        if (((int *)from)[i] < ((int *)to)[i]) ((int *)to)[i] = ((int *)from)[i];
}

static long operate(void) {
    int a[] = {7, 8, 9}, b[] = {1, 22, 3}, flag, own = 100 + 7 * rank % 5, low, all;
    MPI_Op ordered, any;
    MPI_Op_create(join, 0, &ordered);
    MPI_Op_create(keep_low, 1, &any);
    MPI_Op_commutative(ordered, &flag);
    WANT(!flag);
    MPI_Op_commutative(any, &flag);
    WANT(flag);
    MPI_Op_commutative(MPI_SUM, &flag);
    WANT(flag);
    MPI_Reduce_local(a, b, 3, MPI_INT, ordered);
    WANT(b[0] == 71 && b[1] == 82 && b[2] == 93 && a[0] == 7);
    MPI_Reduce_local(a, b, 2, MPI_INT, MPI_SUM);
    WANT(b[0] == 78 && b[1] == 90 && b[2] == 93);
    MPI_Reduce_local(a, b, 3, MPI_INT, any);
    WANT(b[0] == 7 && b[1] == 8 && b[2] == 9);
    MPI_Allreduce(&own, &low, 1, MPI_INT, any, MPI_COMM_WORLD);
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    WANT(low == all);
    MPI_Op_free(&ordered);
    MPI_Op_free(&any);
    WANT(ordered == MPI_OP_NULL);
    return low;
}

#if MPI_VERSION >= 4
static void join_many(void *from, void *to, MPI_Count *n, MPI_Datatype *type) {
    for (MPI_Count i = 0; i < *n; i++) ((int *)to)[i] = 2 * ((int *)from)[i] + ((int *)to)[i];
}

static long operate_large(void) {
    int a[] = {7, 8, 9}, b[] = {1, 22, 3}, flag;
    MPI_Op own;
    MPI_Op_create_c(join_many, 0, &own);
    MPI_Op_commutative(own, &flag);
    WANT(!flag);
    MPI_Reduce_local_c(a, b, 3, MPI_INT, own);
    WANT(b[0] == 15 && b[1] == 38 && b[2] == 21);
    MPI_Reduce_local_c(a, b, 3, MPI_INT, MPI_MAX);
    WANT(b[0] == 15 && b[1] == 38 && b[2] == 21 && a[2] == 9);
    MPI_Op_free(&own);
    return b[0] + b[1] + b[2];
}
#endif

/* The standard ABI's header leaves Fortran out.  In parentheses it is the function: MPICH 5 has macros of these
   names, too, and MPICH 4 has nothing else. */
#if defined MPI_ABI_VERSION
#define TO_FORTRAN(kind, it) it
#elif defined MPICH && MPI_VERSION < 5
#define TO_FORTRAN(kind, it) MPI_##kind##_f2c(MPI_##kind##_c2f(it))
#else
#define TO_FORTRAN(kind, it) (MPI_##kind##_f2c)((MPI_##kind##_c2f)(it))
#endif
#if MPI_VERSION >= 5
#define TO_INT(kind, it) MPI_##kind##_fromint(MPI_##kind##_toint(it))
#else
#define TO_INT(kind, it) it
#endif
#define THERE_AND_BACK(kind, it) \
    WANT(TO_FORTRAN(kind, it) == (it)); \
    WANT(TO_INT(kind, it) == (it)); \
    (it) = TO_INT(kind, TO_FORTRAN(kind, it))

static void hear(MPI_Comm *comm, int *code, ...) { *code = 0; }

/* Of MPI's own things and of the program's: each is still itself afterwards. */
static int convert(void) {
    MPI_Comm comm = MPI_COMM_WORLD, copy, none = MPI_COMM_NULL;
    MPI_Group group = world;
    MPI_Datatype type = MPI_DOUBLE, made;
    MPI_Op op = MPI_PROD, own;
    MPI_Info info = MPI_INFO_NULL, mine;
    MPI_Errhandler handler = MPI_ERRORS_RETURN, hears;
    int n, flag, one = 2, other = 3;
    char text[10];
    THERE_AND_BACK(Comm, comm);
    THERE_AND_BACK(Comm, none);
    THERE_AND_BACK(Group, group);
    THERE_AND_BACK(Type, type);
    THERE_AND_BACK(Op, op);
    THERE_AND_BACK(Info, info);
    THERE_AND_BACK(Errhandler, handler);
    MPI_Comm_split(comm, 0, -rank, &copy);
    THERE_AND_BACK(Comm, copy);
    MPI_Comm_rank(copy, &n);
    WANT(n == size - 1 - rank);
    MPI_Comm_create_errhandler(hear, &hears);
    THERE_AND_BACK(Errhandler, hears);
    MPI_Comm_set_errhandler(copy, hears);
    MPI_Errhandler_free(&hears);
    MPI_Comm_free(&copy);
    MPI_Type_contiguous(3, MPI_INT, &made);
    THERE_AND_BACK(Type, made);
    MPI_Type_size(made, &n);
    WANT(n == 12);
    MPI_Type_free(&made);
    MPI_Op_create(join, 0, &own);
    THERE_AND_BACK(Op, own);
    MPI_Reduce_local(&one, &other, 1, MPI_INT, own);
    WANT(other == 23);
    MPI_Op_free(&own);
    MPI_Info_create(&mine);
    MPI_Info_set(mine, "a", "b");
    THERE_AND_BACK(Info, mine);
    MPI_Info_get(mine, "a", 9, text, &flag);
    WANT(flag && !strcmp(text, "b"));
    MPI_Info_free(&mine);
    n = 0;
    MPI_Group_excl(world, 1, &n, &group);
    THERE_AND_BACK(Group, group);
    MPI_Group_size(group, &n);
    MPI_Group_free(&group);
    return n;
}

/* Things under way: what Fortran, or another part of the program, completes. */
static int convert_under_way(void) {
    int given = 50 + rank, got = 0, n, flag = 0;
    MPI_Request request, sent, none = MPI_REQUEST_NULL;
    MPI_Message message, gone = MPI_MESSAGE_NULL, nobody = MPI_MESSAGE_NO_PROC;
    MPI_Status status;
    MPI_Irecv(&got, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &request);
    THERE_AND_BACK(Request, request);
    THERE_AND_BACK(Request, none);
    MPI_Isend(&given, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &sent);
    THERE_AND_BACK(Request, sent);
    while (!flag) MPI_Test(&request, &flag, &status);
    WANT(got == 50 + before && status.MPI_SOURCE == before && request == MPI_REQUEST_NULL);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Send_init(&given, 1, MPI_INT, next, 2, MPI_COMM_WORLD, &sent);
    THERE_AND_BACK(Request, sent);
    MPI_Start(&sent);
    MPI_Mprobe(before, 2, MPI_COMM_WORLD, &message, &status);
    THERE_AND_BACK(Message, message);
    THERE_AND_BACK(Message, gone);
    THERE_AND_BACK(Message, nobody);
    got = 0;
    MPI_Mrecv(&got, 1, MPI_INT, &message, &status);
    MPI_Get_count(&status, MPI_INT, &n);
    WANT(got == 50 + before && n == 1 && message == MPI_MESSAGE_NULL);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Request_free(&sent);
    MPI_Mrecv(&got, 1, MPI_INT, &nobody, &status);
    WANT(status.MPI_SOURCE == MPI_PROC_NULL && nobody == MPI_MESSAGE_NULL);
    return got;
}

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
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    tell("groups", group());
    tell("operations", operate());
#if MPI_VERSION >= 4
    tell("operations with large counts", operate_large());
#endif
    tell("converted", convert());
    tell("converted under way", convert_under_way());
    MPI_Group_free(&world);
    MPI_Finalize();
    return 0;
}
