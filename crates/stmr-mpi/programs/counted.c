/* Sums of fractions after a number of other calls on the same communicator: MPICH adds in another
   order once it has counted some.  A dot is a sum, a bar one that differs from that before. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { N = 500, SUMS = 8 };

static int rank, size;
static char bytes[1 << 16], more[1 << 16];

static void window(MPI_Comm comm, char how) {
    MPI_Win win;
    void *at;
    if (how == 'c') MPI_Win_create(bytes, 8, 1, MPI_INFO_NULL, comm, &win);
    if (how == 'a') MPI_Win_allocate(8, 1, MPI_INFO_NULL, comm, &at, &win);
    if (how == 's') MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, comm, &at, &win);
    if (how == 'd') MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void call(MPI_Comm comm, const char *what) {
    MPI_Request request;
    MPI_Comm made;
    MPI_File file;
    if (!strcmp(what, "barrier")) MPI_Barrier(comm);
    if (!strcmp(what, "bcast")) MPI_Bcast(bytes, sizeof bytes, MPI_CHAR, size - 1, comm);
    if (!strcmp(what, "reduce")) MPI_Reduce(bytes, more, 9, MPI_INT, MPI_SUM, 0, comm);
    if (!strcmp(what, "allreduce")) MPI_Allreduce(bytes, more, 9, MPI_INT, MPI_MAX, comm);
    if (!strcmp(what, "scan")) MPI_Scan(bytes, more, 9, MPI_INT, MPI_SUM, comm);
    if (!strcmp(what, "gather")) MPI_Gather(bytes, 1, MPI_INT, more, 1, MPI_INT, 0, comm);
    if (!strcmp(what, "dup")) MPI_Comm_dup(comm, &made), MPI_Comm_free(&made);
    if (!strcmp(what, "nothing")) {
        MPI_Bcast(bytes, 0, MPI_CHAR, 0, comm);
        MPI_Reduce(bytes, more, 0, MPI_INT, MPI_SUM, 0, comm);
        MPI_Allreduce(bytes, more, 0, MPI_INT, MPI_SUM, comm);
    }
    if (!strcmp(what, "refused")) MPI_Bcast(bytes, 4, MPI_CHAR, size, comm);
    if (!strcmp(what, "refused to one") && rank == 1) MPI_Bcast(bytes, -1, MPI_CHAR, 0, comm);
    if (!strcmp(what, "later")) {
        MPI_Ibcast(bytes, 4, MPI_CHAR, 0, comm, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Ibarrier(comm, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (!strcmp(what, "file")) {
        MPI_File_open(comm, "counted.out", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                      MPI_INFO_NULL, &file);
        MPI_File_close(&file);
    }
    if (strchr(what, '-')) window(comm, strchr(what, '-')[1]);
}

static double weighed(const double *all) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += all[i] * (i + 1);
    return sum;
}

int main(int argc, char **argv) {
    const char *kinds[] = {"none",   "barrier", "bcast",   "reduce",  "scan",           "allreduce",
                           "gather", "dup",     "later",   "nothing", "refused",        "refused to one",
                           "file",   "window-c", "window-a", "window-s", "window-d"};
    static double own[N], all[N];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (unsigned i = 0; i < N; i++) {
        unsigned long mixed = (i * size + rank + 1) * 0x9e3779b97f4a7c15UL;
        own[i] = (mixed ^ mixed >> 29) % 1000003 / 1000003.0;
    }
    for (unsigned kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (int calls = 1; calls < 4; calls++) {
            char text[2][SUMS + 1] = {{0}};
            double last[2] = {0, 0}, sum;
            MPI_Comm comm;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
            for (int i = 0; i < calls; i++) call(comm, kinds[kind]);
            for (int i = 0; i < SUMS; i++) {
                MPI_Reduce(own, all, N, MPI_DOUBLE, MPI_SUM, 0, comm), sum = weighed(all);
                text[0][i] = i && sum != last[0] ? '|' : '.', last[0] = sum;
                MPI_Allreduce(own, all, N, MPI_DOUBLE, MPI_SUM, comm), sum = weighed(all);
                text[1][i] = i && sum != last[1] ? '|' : '.', last[1] = sum;
            }
            if (rank == 0) printf("%s %d: %s %s %.17g %.17g\n", kinds[kind], calls, text[0], text[1], last[0], last[1]);
            MPI_Comm_free(&comm);
        }
    MPI_Finalize();
    return 0;
}
