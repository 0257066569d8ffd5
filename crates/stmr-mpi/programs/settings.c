/* What the program tells MPI and asks of it: infos, hints for a communicator, classes and codes of errors that
   it adds, things kept with a communicator in the old form, places on a grid and a graph, the level of threads,
   and what this MPI is.
   usage: settings */
#include <stdlib.h>

#include "want.h"

enum { MOST = 8, ROOM = 64 };

static int rank, size, n_heard, heard_code, n_copied, n_dropped;

static void want_value(MPI_Info info, const char *key, const char *value) {
    char got[ROOM];
    int n, has;
    MPI_Info_get(info, key, ROOM - 1, got, &has);
    WANT(has == !!value && (!has || !strcmp(got, value)));
    MPI_Info_get_valuelen(info, key, &n, &has);
    WANT(has == !!value && (!has || n == (int)strlen(value)));
#if MPI_VERSION >= 4 || defined OPEN_MPI && OMPI_MAJOR_VERSION >= 5
    n = ROOM;
    MPI_Info_get_string(info, key, &n, got, &has);
    WANT(has == !!value && (!has || (!strcmp(got, value) && n == (int)strlen(value) + 1)));
#endif
}

/* The keys that an info has, sorted, in one line. */
static int keys_of(MPI_Info info, char *line, int room) {
    char keys[MOST][MPI_MAX_INFO_KEY + 1];
    int n, first;
    MPI_Info_get_nkeys(info, &n);
    WANT(n <= MOST);
    for (int i = 0; i < n; i++) MPI_Info_get_nthkey(info, i, keys[i]);
    *line = 0;
    for (int k = 0; k < n; k++) {
        first = 0;
        for (int i = 1; i < n; i++)
            if (strcmp(keys[i], keys[first]) < 0) first = i;
        snprintf(line + strlen(line), room - strlen(line), "%s%s", k ? " " : "", keys[first]);
        strcpy(keys[first], "~");
    }
    return n;
}

static void inform(int argc, char **argv) {
    char line[500], deep[ROOM];
    MPI_Info info, copy;
    snprintf(deep, sizeof deep, "as deep as %d", rank);
    MPI_Info_create(&info);
    WANT(keys_of(info, line, sizeof line) == 0);
    MPI_Info_set(info, "colour", "red");
    MPI_Info_set(info, "depth", deep);
    MPI_Info_set(info, "colour", "dark blue");
    MPI_Info_dup(info, &copy);
    MPI_Info_delete(info, "colour");
    want_value(info, "colour", NULL);
    want_value(copy, "colour", "dark blue");
    MPI_Info_set(info, "age", "9");
    MPI_Info_free(&info);
    WANT(info == MPI_INFO_NULL && keys_of(copy, line, sizeof line) == 2 && !strcmp(line, "colour depth"));
    want_value(copy, "depth", deep);
    want_value(copy, "age", NULL);
    MPI_Info_free(&copy);
#if MPI_VERSION >= 4 || defined OPEN_MPI && OMPI_MAJOR_VERSION >= 5
    MPI_Info_create_env(argc, argv, &info);
    want_value(info, "no such key", NULL);
    MPI_Info_free(&info);
    WANT(info == MPI_INFO_NULL);
#endif
    if (rank == 0) printf("infos: %s\n", line);
}

/* An MPI may leave a hint out that it does not know, but not change its value. */
static void hint(void) {
    char got[ROOM];
    int has;
    MPI_Comm copy;
    MPI_Info info, used;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_allow_overtaking", "false");
    MPI_Comm_set_info(copy, info);
    MPI_Info_free(&info);
    MPI_Comm_get_info(copy, &used);
    WANT(used != MPI_INFO_NULL);
    MPI_Info_get(used, "mpi_assert_allow_overtaking", ROOM - 1, got, &has);
    WANT(!has || !strcmp(got, "false"));
    MPI_Info_free(&used);
    MPI_Comm_free(&copy);
}

static void hear(MPI_Comm *comm, int *code, ...) {
    n_heard++;
    heard_code = *code;
}

static void want_error(int code, int class, const char *text) {
    char got[MPI_MAX_ERROR_STRING];
    int n, is;
    MPI_Error_class(code, &is);
    WANT(is == class);
    MPI_Error_string(code, got, &n);
    WANT(n == (int)strlen(got) && (!text || !strcmp(got, text)));
}

/* Errors of the program's own: they are told by their text, and go to its handler as MPI's do. */
static void add_errors(void) {
    int class, code, other, has, *last;
    MPI_Errhandler handler;
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_code(class, &other);
    WANT(class > MPI_ERR_LASTCODE && code > MPI_ERR_LASTCODE && code != other);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &has);
    WANT(has && *last >= class);
    MPI_Add_error_string(class, "a class of ours");
    MPI_Add_error_string(code, "a code of ours");
    MPI_Add_error_string(other, "another code of ours");
/* Open MPI 4 and 5.0 say of a class of the program's that it is none. */
#ifndef OPEN_MPI
    want_error(class, class, "a class of ours");
#endif
    want_error(code, class, "a code of ours");
    want_error(other, class, "another code of ours");
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
    WANT(n_heard == 1 && heard_code == code);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
#if MPI_VERSION >= 5
    MPI_Remove_error_string(code);
    want_error(code, class, "");
    MPI_Remove_error_string(other);
    MPI_Remove_error_code(other);
    MPI_Remove_error_code(code);
    MPI_Remove_error_string(class);
    MPI_Remove_error_class(class);
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    want_error(code, class, "");
#endif
    if (rank == 0) printf("errors: heard %d\n", n_heard);
}

/* The forms of handlers that MPI 3 removed. */
#if defined MPICH && !defined MPI_ABI_VERSION
static void old_handlers(void) {
    MPI_Errhandler handler, is;
    int n = n_heard;
    MPI_Errhandler_create(hear, &handler);
    MPI_Errhandler_set(MPI_COMM_WORLD, handler);
    MPI_Errhandler_get(MPI_COMM_WORLD, &is);
    WANT(is == handler);
    MPI_Errhandler_free(&is);
    MPI_Errhandler_free(&handler);
    MPI_Send(&n, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    WANT(n_heard == n + 1);
    want_error(heard_code, MPI_ERR_RANK, NULL);
    MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_get(MPI_COMM_WORLD, &is);
    WANT(is == MPI_ERRORS_ARE_FATAL);
}
#endif

static int copy_kept(MPI_Comm comm, int key, void *more, void *value, void *to, int *is_copied) {
    n_copied += *(int *)more;
    *(void **)to = (int *)value + 1;
    *is_copied = 1;
    return MPI_SUCCESS;
}

static int drop_kept(MPI_Comm comm, int key, void *value, void *more) {
    n_dropped += *(int *)value;
    return MPI_SUCCESS;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void keep_old(void) {
    int key, kept[] = {3, 50, 700}, step = 10, has, *found, **tag;
    MPI_Comm base, copy, third;
    MPI_Keyval_create(copy_kept, drop_kept, &key, &step);
    MPI_Comm_dup(MPI_COMM_WORLD, &base);
    MPI_Attr_get(base, key, &found, &has);
    WANT(!has);
    MPI_Attr_put(base, key, &kept[0]);
    MPI_Comm_dup(base, &copy);
    MPI_Comm_dup(copy, &third);
    WANT(n_copied == 20);
    MPI_Attr_get(copy, key, &found, &has);
    WANT(has && found == &kept[1]);
    MPI_Attr_get(third, key, &found, &has);
    WANT(has && found == &kept[2]);
    MPI_Attr_delete(copy, key);
    MPI_Attr_get(copy, key, &found, &has);
    WANT(!has && n_dropped == 50);
    MPI_Attr_put(base, key, &kept[1]);
    WANT(n_dropped == 53);
    MPI_Keyval_free(&key);
    WANT(key == MPI_KEYVAL_INVALID);
    MPI_Comm_free(&base);
    MPI_Comm_free(&copy);
    WANT(n_dropped == 103);
    MPI_Comm_free(&third);
    WANT(n_dropped == 803);
    MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, &tag, &has);
    WANT(has && *(int *)tag >= 32767);
    if (rank == 0) printf("kept: %d, dropped: %d\n", n_copied, n_dropped);
}
#pragma GCC diagnostic pop

/* Each of so many places is some process's, and the others have none. */
static void want_order(int own, int n_places) {
    int all[MOST], n = 0;
    MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) n += all[i] == MPI_UNDEFINED;
    WANT(n == size - n_places);
    for (int i = 0; i < n_places; i++) {
        n = 0;
        for (int k = 0; k < size; k++) n += all[k] == i;
        WANT(n == 1);
    }
}

/* Where MPI would put this process, and how many dimensions a grid has. */
static void place(void) {
    int dims[] = {1, size, 1}, periods[] = {0, 1, 0}, ends[MOST], edges[2 * MOST], n, own;
    MPI_Comm grid;
    MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &own);
    want_order(own, size);
/* Open MPI 4 and 5.0 give a place to those that the grid has none for. */
#ifndef OPEN_MPI
    dims[1]--;
    MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &own);
    want_order(own, size - 1);
#endif
    for (int i = 0; i < size; i++) {
        edges[2 * i] = (i + 1) % size;
        edges[2 * i + 1] = (i + size - 1) % size;
        ends[i] = 2 * i + 2;
    }
    MPI_Graph_map(MPI_COMM_WORLD, size, ends, edges, &own);
    want_order(own, size);
    dims[1] = size;
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid);
    MPI_Cartdim_get(grid, &n);
    WANT(n == 3);
    MPI_Comm_free(&grid);
    if (rank == 0) printf("dimensions: %d\n", n);
}

/* What this MPI is, where it runs, and what it allows of threads. */
static void ask(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING], host[MPI_MAX_PROCESSOR_NAME] = "", again[MPI_MAX_PROCESSOR_NAME];
    int n, flag, level;
    int pair[2];
    MPI_Aint first, second;
    MPI_Get_library_version(text, &n);
    WANT(n > 0 && n < MPI_MAX_LIBRARY_VERSION_STRING && strlen(text) <= (size_t)n);
    WANT(strstr(text, "Open MPI") || strstr(text, "MPICH") || strstr(text, "Intel"));
    MPI_Get_processor_name(host, &n);
    WANT(n > 0 && n == (int)strlen(host));
    MPI_Get_processor_name(again, &n);
    WANT(!strcmp(host, again));
    MPI_Is_thread_main(&flag);
    WANT(flag);
    MPI_Query_thread(&level);
    WANT(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE);
    MPI_Get_address(&pair[0], &first);
    MPI_Get_address(&pair[1], &second);
    WANT(MPI_Aint_diff(second, first) == sizeof(int) && MPI_Aint_add(first, sizeof(int)) == second);
    if (rank == 0) printf("this is %s\n", strstr(text, "MPICH") ? "MPICH" : "Open MPI");
}

#if MPI_VERSION >= 5
/* Fortran's truth has a form of its own.  It is told once: by a Fortran that MPI knows, or else by the program. */
static void ask_fortran(void) {
    int yes = 77, no = 77, true_is = -1, false_is = 0, is_set, class, has;
    char text[ROOM];
    MPI_Info info, own;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Abi_get_fortran_booleans(sizeof yes, &yes, &no, &is_set);
    MPI_Error_class(MPI_Abi_set_fortran_booleans(sizeof yes, &true_is, &false_is), &class);
    WANT(class == (is_set ? MPI_ERR_ABI : MPI_SUCCESS));
    if (is_set) true_is = yes, false_is = no;
    MPI_Abi_get_fortran_booleans(sizeof yes, &yes, &no, &is_set);
    WANT(is_set && yes == true_is && no == false_is && yes != no);
    MPI_Info_create(&own);
    MPI_Info_set(own, "mpi_logical_size", "4");
    MPI_Info_set(own, "mpi_integer_size", "4");
    MPI_Info_set(own, "mpi_real_size", "4");
    MPI_Info_set(own, "mpi_double_precision_size", "8");
    MPI_Abi_get_fortran_info(&info);
    MPI_Error_class(MPI_Abi_set_fortran_info(own), &class);
    WANT(class == (info == MPI_INFO_NULL ? MPI_SUCCESS : MPI_ERR_ABI));
    if (info == MPI_INFO_NULL) MPI_Abi_get_fortran_info(&info);
    MPI_Info_get(info, "mpi_double_precision_size", ROOM - 1, text, &has);
    WANT(has && atoi(text) == sizeof(double));
    MPI_Info_free(&info);
    MPI_Info_free(&own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* What the standard says of binary interfaces, and what MPI says of the machine. */
static void ask_interface(void) {
    int major = -9, minor = -9, has, n = -1;
    char text[ROOM];
    MPI_Info info;
    MPI_Abi_get_version(&major, &minor);
#ifdef MPI_ABI_VERSION
    WANT(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
#else
    WANT(major == -1 && minor == -1);
#endif
    MPI_Abi_get_info(&info);
    MPI_Info_get(info, "mpi_aint_size", ROOM - 1, text, &has);
    WANT(has && atoi(text) == sizeof(MPI_Aint));
    MPI_Info_get(info, "mpi_count_size", ROOM - 1, text, &has);
    WANT(has && atoi(text) == sizeof(MPI_Count));
    MPI_Info_get(info, "mpi_offset_size", ROOM - 1, text, &has);
    WANT(has && atoi(text) == sizeof(MPI_Offset));
    MPI_Info_free(&info);
    MPI_Get_hw_resource_info(&info);
    MPI_Info_get_nkeys(info, &n);
    WANT(n >= 0);
    want_value(info, "no such key", NULL);
    MPI_Info_free(&info);
    if (rank == 0) printf("interface %d.%d\n", major, minor);
}
#endif

int main(int argc, char **argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int is;
    MPI_Query_thread(&is);
    WANT(is == level);
    inform(argc, argv);
    hint();
    add_errors();
#if defined MPICH && !defined MPI_ABI_VERSION
    old_handlers();
#endif
    keep_old();
    place();
    ask();
#if MPI_VERSION >= 5
    ask_fortran();
    ask_interface();
#endif
    MPI_Finalize();
    return 0;
}
