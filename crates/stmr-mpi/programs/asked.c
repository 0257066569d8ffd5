/* A communicator in each round, and all that can be asked of it without a message: its name and hints,
   where its processes would stand, who is on one host, how much room contents take. */
#include <stdlib.h>
#include <string.h>

#include "want.h"

enum { ROOM = 256 };

static int rank, size;

static void hints_of(MPI_Comm comm) {
    MPI_Info given, told;
    WANT(!MPI_Info_create(&given) && !MPI_Info_set(given, "mpi_assert_no_any_tag", "false"));
    WANT(!MPI_Comm_set_info(comm, given) && !MPI_Comm_get_info(comm, &told) && told != MPI_INFO_NULL);
    MPI_Info_free(&given), MPI_Info_free(&told);
}

static void name_of(MPI_Comm comm, int k) {
    char name[MPI_MAX_OBJECT_NAME], wanted[32];
    int length;
    snprintf(wanted, sizeof wanted, "asked %d", k);
    WANT(!MPI_Comm_set_name(comm, wanted) && !MPI_Comm_get_name(comm, name, &length));
    WANT(!strcmp(name, wanted) && length == (int)strlen(wanted));
}

/* Where this process would stand in a grid, and in a graph of all but the last, which differs by the MPI. */
static int places_in(MPI_Comm comm) {
    int dims[2] = {2, size / 2}, periods[2] = {1, 0}, ends[64], edges[64], in_grid, in_graph;
    for (int i = 0; i < size - 1; i++) ends[i] = i + 1, edges[i] = (i + 1) % (size - 1);
    WANT(!MPI_Cart_map(comm, 2, dims, periods, &in_grid));
    WANT(in_grid == rank || (size / 2 * 2 <= rank && in_grid == MPI_UNDEFINED));
    WANT(!MPI_Graph_map(comm, size - 1, ends, edges, &in_graph));
    WANT(in_graph == rank || (rank == size - 1 && in_graph == MPI_UNDEFINED));
    /* Open MPI gives a rank to those for whom there is no place. */
    return in_grid + in_graph;
}

/* What is packed for it goes round. */
static int packed_in(MPI_Comm comm, int k) {
    char out[ROOM], in[ROOM];
    int own[2] = {rank, k}, got[2], at = 0, room, right = (rank + 1) % size, left = (rank + size - 1) % size;
    WANT(!MPI_Pack_size(2, MPI_INT, comm, &room) && 8 <= room && room <= ROOM);
    WANT(!MPI_Pack(own, 1, MPI_INT, out, ROOM, &at, comm) && !MPI_Pack(own + 1, 1, MPI_INT, out, ROOM, &at, comm));
    MPI_Sendrecv(out, at, MPI_PACKED, right, k, in, ROOM, MPI_PACKED, left, k, comm, MPI_STATUS_IGNORE);
    at = 0;
    WANT(!MPI_Unpack(in, ROOM, &at, got, 2, MPI_INT, comm) && got[0] == left && got[1] == k);
#if MPI_VERSION >= 4
    MPI_Count far = 0, wide;
    WANT(!MPI_Pack_size_c(2, MPI_INT, comm, &wide) && 8 <= wide);
    WANT(!MPI_Pack_c(own, 2, MPI_INT, out, ROOM, &far, comm));
    far = 0;
    WANT(!MPI_Unpack_c(out, ROOM, &far, got, 2, MPI_INT, comm) && got[0] == rank);
#endif
    return got[0];
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int k = 0; k < rounds; k++) {
        MPI_Comm comm, host;
        int n, sum, own;
        WANT(!MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        name_of(comm, k);
        hints_of(comm);
        own = places_in(comm) + packed_in(comm, k);
        WANT(!MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &host));
        WANT(!MPI_Comm_size(host, &n) && 0 < n && n <= size);
        WANT(!MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, host));
        hints_of(host);
        if (rank == 0) printf("round %d: %d of %d, %d\n", k, n, size, sum), fflush(stdout);
        WANT(!MPI_Comm_free(&host) && !MPI_Comm_free(&comm));
        WANT(!MPI_Comm_split_type(MPI_COMM_WORLD, rank % 2 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
        WANT((host == MPI_COMM_NULL) == rank % 2);
        if (host != MPI_COMM_NULL) MPI_Comm_free(&host);
    }
    MPI_Finalize();
    return 0;
}
