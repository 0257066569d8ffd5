/* Ends before its own first instruction, by a library that it is linked with and that lacks what it
 * needs: it says so, and gives the code. */
#ifdef LIBRARY
#include <stdio.h>
#include <stdlib.h>

static void said(void) { puts("nothing is there"); }

__attribute__((constructor)) static void look_for_settings(void) {
    const char *code = getenv("LACKS");
    if (!code) return;
    atexit(said);
    exit(atoi(code));
}

int found(void) { return 1; }
#else
#include <mpi.h>

int found(void);

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return !found();
}
#endif
