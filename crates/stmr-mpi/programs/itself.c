/* A program that asks about itself by its own number, and that ends itself.
   usage: itself ask | die | alone | term | raise | abort | assert
   die: the replica of rank 1 whose number all go by is killed; alone: one replica aborts by itself. */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "want.h"

static int rank, size;

/* Sends what it is told, which is compared. */
static void tell(const void *row, int length) {
    char got[512];
    MPI_Sendrecv(row, length, MPI_BYTE, (rank + 1) % size, 1, got, sizeof got, MPI_BYTE, (rank + size - 1) % size, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void *number(void *to) {
    *(pid_t *)to = getpid();
    return NULL;
}

/* Its threads have its number, and a process that it forks has its own and knows whose child it is. */
static void numbers(pid_t own) {
    pid_t found = 0;
    pthread_t thread;
    int status;
    WANT(!pthread_create(&thread, NULL, number, &found) && !pthread_join(thread, NULL) && found == own);
    pid_t child = fork();
    if (child == 0) _exit(getpid() != own && getppid() == own ? 3 : 4);
    WANT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
}

static void ask(void) {
    int pid = getpid(), file, word = 5, copy = 0;
    char name[64];
    cpu_set_t cores;
    clockid_t clocks[2];
    struct sched_param schedule;
    struct rlimit limit;
    struct rusage used;
    struct timespec now[2];
    struct iovec here = {&copy, sizeof copy}, there = {&word, sizeof word};
    numbers(pid);
    WANT(!kill(pid, 0));
    WANT(!sched_getaffinity(pid, sizeof cores, &cores));
    WANT(!sched_setaffinity(pid, sizeof cores, &cores));
    WANT(sched_getscheduler(pid) == SCHED_OTHER && !sched_getparam(pid, &schedule));
    errno = 0;
    WANT(getpriority(PRIO_PROCESS, pid) == 0 && errno == 0);
    WANT(getpgid(pid) == getpgrp() && getsid(pid) == getsid(0));
    WANT(!prlimit(pid, RLIMIT_NOFILE, NULL, &limit));
    WANT(process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof copy && copy == 5);
    snprintf(name, sizeof name, "/proc/%d/stat", pid);
    WANT(!access(name, R_OK) && 0 <= (file = open(name, O_RDONLY)) && !close(file));
    WANT(!clock_getcpuclockid(pid, &clocks[0]) && !pthread_getcpuclockid(pthread_self(), &clocks[1]));
    for (int i = 0; i < 2; i++) WANT(!clock_gettime(clocks[i], &now[i]) && 0 < now[i].tv_nsec + now[i].tv_sec);
    tell(now, sizeof now);
    /* There are no such clocks, and nobody whose use could be told. */
    int none[] = {10, 16, 50, 1000};
    for (int i = 0; i < 4; i++) WANT(clock_gettime(none[i], &now[0]) == -1 && errno == EINVAL);
    WANT(getrusage(77, &used) == -1 && errno == EINVAL);
    /* What is another in each replica. */
    struct sysinfo host;
    struct itimerval left = {{0, 0}, {3600, 0}};
    WANT(!sysinfo(&host));
    tell(&host.uptime, sizeof host.uptime);
    tell(&host.freeram, sizeof host.freeram);
    WANT(!setitimer(ITIMER_REAL, &left, NULL) && !getitimer(ITIMER_REAL, &left) && 3000 < left.it_value.tv_sec);
    tell(&left, sizeof left);
    pid_t child = fork();
    if (child == 0) _exit(3);
    WANT(wait4(child, &word, 0, &used) == child && WEXITSTATUS(word) == 3);
    tell(&used.ru_utime, sizeof used.ru_utime + sizeof used.ru_stime + sizeof used.ru_maxrss);
    /* Where memory is mapped is compared. */
    void *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    WANT(at != MAP_FAILED);
    tell(&at, sizeof at);
    WANT(!munmap(at, 1 << 20));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *how = argc > 1 ? argv[1] : "ask", *own = getenv("SELVEDGE_SET");
    int set = own ? atoi(own) : 0;
    for (int round = 0; round < 8; round++) {
        ask();
        if (rank != 1 || round != 3) continue;
        if (!strcmp(how, "die") && own && set == 0) raise(SIGKILL);
        if (!strcmp(how, "alone") && set == 1) abort();
        if (!strcmp(how, "term")) kill(getpid(), SIGTERM);
        if (!strcmp(how, "raise")) raise(SIGXCPU);
        if (!strcmp(how, "abort")) abort();
        assert(strcmp(how, "assert"));
    }
    printf("rank %d asked\n", rank);
    MPI_Finalize();
    return 0;
}
