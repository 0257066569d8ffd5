/* Numbers with bytes in them that are no part of their value: each replica has others there.
   usage: padding */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair { long double value; int place; };

int main(int argc, char **argv) {
    long double out[8], in[8];
    struct pair given, got;
    int rank, size;
    MPI_Datatype every_second;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *set = getenv("SELVEDGE_SET");
    int rest = 1 + (set ? atoi(set) : 0);
    memset(out, rest, sizeof out);
    memset(in, rest, sizeof in);
    memset(&given, rest, sizeof given);
    for (int i = 0; i < 8; i++) out[i] = rank + i / 8.0L;
    given.value = rank % 2;
    given.place = rank;
    int next = (rank + 1) % size, last = (rank + size - 1) % size;

    MPI_Sendrecv(out, 8, MPI_LONG_DOUBLE, next, 1, in, 8, MPI_LONG_DOUBLE, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%d: %Lg\n", rank, in[3]);
    MPI_Type_vector(4, 1, 2, MPI_LONG_DOUBLE, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Sendrecv(out, 1, every_second, next, 2, in, 4, MPI_LONG_DOUBLE, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%d: %Lg\n", rank, in[3]);
    MPI_Type_free(&every_second);
    MPI_Allreduce(out, in, 8, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    printf("%d: %Lg\n", rank, in[3]);
    MPI_Allreduce(MPI_IN_PLACE, in, 8, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    printf("%d: %Lg\n", rank, in[3]);
    MPI_Bcast(out, 8, MPI_LONG_DOUBLE, 0, MPI_COMM_WORLD);
    printf("%d: %Lg\n", rank, out[3]);
    MPI_Allreduce(&given, &got, 1, MPI_LONG_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    printf("%d: %Lg at %d\n", rank, got.value, got.place);
    MPI_Finalize();
    return 0;
}
