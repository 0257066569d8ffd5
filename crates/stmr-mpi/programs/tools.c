/* The tools' interface: a variable of MPI's control, what MPI counts of itself, and what is known of
   both.  Which there are is each MPI's own affair: only what does not depend on that is printed. */
#include <stdlib.h>

#include "want.h"

enum { ROOM = 1024 };

static int rank;

static void read_controls(void) {
    int n, found, is_read = 0;
    MPI_T_cvar_get_num(&n);
    WANT(0 < n);
    for (int i = 0; i < n && !is_read; i++) {
        char name[ROOM], words[ROOM];
        int length = ROOM, words_length = ROOM, level, bind, scope, count, again;
        MPI_Datatype type;
        MPI_T_enum kinds;
        if (MPI_T_cvar_get_info(i, name, &length, &level, &type, &kinds, words, &words_length, &bind, &scope)) continue;
        WANT(!MPI_T_cvar_get_index(name, &again));
        if (type != MPI_INT || bind != MPI_T_BIND_NO_OBJECT) continue;
        MPI_T_cvar_handle handle;
        WANT(!MPI_T_cvar_handle_alloc(i, NULL, &handle, &count) && 0 < count);
        int *values = calloc(count, sizeof *values);
        is_read = !MPI_T_cvar_read(handle, values);
        /* What it is already; many may not be changed. */
        if (is_read) MPI_T_cvar_write(handle, values);
        if (is_read && kinds != MPI_T_ENUM_NULL) {
            int items, value;
            length = ROOM;
            WANT(!MPI_T_enum_get_info(kinds, &items, name, &length) && 0 < items);
            length = ROOM;
            WANT(!MPI_T_enum_get_item(kinds, 0, &value, name, &length));
        }
        free(values);
        WANT(!MPI_T_cvar_handle_free(&handle));
    }
    MPI_T_category_get_num(&n);
    for (int i = 0; i < n; i++) {
        char name[ROOM], words[ROOM];
        int length = ROOM, words_length = ROOM, n_cvars, n_pvars, n_categories;
        /* Open MPI has some that are not there any more. */
        if (MPI_T_category_get_info(i, name, &length, words, &words_length, &n_cvars, &n_pvars, &n_categories)) continue;
        WANT(!MPI_T_category_get_index(name, &found) && found == i);
        int *some = calloc(1 + n_cvars + n_pvars + n_categories, sizeof *some);
        WANT(!MPI_T_category_get_cvars(i, n_cvars, some));
        WANT(!MPI_T_category_get_pvars(i, n_pvars, some));
        WANT(!MPI_T_category_get_categories(i, n_categories, some));
        free(some);
#if MPI_VERSION >= 4
        WANT(!MPI_T_category_get_num_events(i, &found));
        some = calloc(1 + found, sizeof *some);
        WANT(!MPI_T_category_get_events(i, found, some));
        free(some);
#endif
    }
    WANT(!MPI_T_category_changed(&n));
    if (rank == 0) printf("a variable of control is read: %d\n", is_read);
}

static void read_counters(void) {
    int n, n_known = 0;
    MPI_T_pvar_session session;
    MPI_T_pvar_get_num(&n);
    WANT(!MPI_T_pvar_session_create(&session));
    for (int i = 0; i < n; i++) {
        char name[ROOM], words[ROOM];
        int length = ROOM, words_length = ROOM, level, class, bind, is_fixed, continuous, atomic, count, again;
        MPI_Datatype type;
        MPI_T_enum kinds;
        if (MPI_T_pvar_get_info(i, name, &length, &level, &class, &type, &kinds, words, &words_length, &bind, &is_fixed,
                                &continuous, &atomic))
            continue;
        n_known++;
        WANT(!MPI_T_pvar_get_index(name, class, &again));
        if (bind != MPI_T_BIND_NO_OBJECT) continue;
        MPI_T_pvar_handle handle;
        if (MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count)) continue;
        long long values[ROOM];
        if (count < ROOM / 2) {
            if (!continuous) MPI_T_pvar_start(session, handle);
            MPI_T_pvar_read(session, handle, values);
            if (!is_fixed) {
                MPI_T_pvar_write(session, handle, values);
                MPI_T_pvar_readreset(session, handle, values);
                MPI_T_pvar_reset(session, handle);
            }
            if (!continuous) MPI_T_pvar_stop(session, handle);
        }
        WANT(!MPI_T_pvar_handle_free(session, &handle));
    }
    WANT(!MPI_T_pvar_session_free(&session));
    if (rank == 0) printf("counters are known: %d\n", 0 < n_known || n == 0);
}

/* Clocks of events, if there are. */
static void read_sources(void) {
#if MPI_VERSION >= 4
    int n;
    WANT(!MPI_T_source_get_num(&n));
    for (int i = 0; i < n; i++) {
        char name[ROOM], words[ROOM];
        int length = ROOM, words_length = ROOM;
        MPI_T_source_order order;
        MPI_Count ticks, most, now;
        MPI_Info info;
        if (MPI_T_source_get_info(i, name, &length, words, &words_length, &order, &ticks, &most, &info)) continue;
        WANT(!MPI_T_source_get_timestamp(i, &now));
        MPI_Info_free(&info);
    }
#endif
}

int main(int argc, char **argv) {
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    read_controls();
    read_counters();
    read_sources();
    MPI_Barrier(MPI_COMM_WORLD);
    /* Behind MPI_Finalize Open MPI 4.1.4 crashes. */
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
