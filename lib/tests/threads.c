/* The properties of binding: thread t of T on node t * N / T, on CPUs that this process may use, spread evenly
 * over a node's; by number, by order of start, and by hand; refused where the kernel refuses.
 *
 *     threads          on this machine, or the one that NODEWISE_PRETEND describes
 *     threads N        and nw_get_threads() is N to begin with
 *     threads refused  with system calls that bind answered by EPERM */
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "nodewise_schedule.h"

enum { CPUS = 4096, TEAM = 9 };

static int cpus[CPUS], cpu_count, pretended;

/* The one CPU a thread is bound to; -1 if it has several. */
static int bound_to(pid_t tid) {
    cpu_set_t *mask = CPU_ALLOC(CPUS);
    size_t size = CPU_ALLOC_SIZE(CPUS);
    int cpu = -1;
    if (!sched_getaffinity(tid, size, mask) && CPU_COUNT_S(size, mask) == 1)
        for (cpu = 0; !CPU_ISSET_S((size_t)cpu, size, mask); cpu++)
            ;
    CPU_FREE(mask);
    return cpu;
}

static int usable(int cpu) {
    for (int i = 0; i < cpu_count; i++)
        if (cpus[i] == cpu)
            return 1;
    return 0;
}

/* The CPUs of the node in nw_cpus' order, repeated. */
static int expected_cpu(int thread, int threads) {
    int node = nw_thread_node(thread), rank = 0, count = 0;
    for (int t = 0; t < thread; t++)
        rank += (long)t * nw_processors() / threads == (long)thread * nw_processors() / threads;
    for (int i = 0; i < cpu_count; i++)
        count += nw_cpu_node(cpus[i]) == node;
    rank %= count;
    for (int i = 0; i < cpu_count; i++)
        if (nw_cpu_node(cpus[i]) == node && !rank--)
            return cpus[i];
    return -1;
}

static void threads_fill_nodes_evenly(void) {
    int processors = nw_processors();
    for (int threads = 1; threads < 70; threads++) {
        nw_set_threads(threads);
        int on_node[CPUS] = {0}, least = threads, most = 0, nodes[CPUS], count = 0;
        for (int t = 0; t < threads; t++) {
            int node = nw_thread_node(t);
            CHECK(t == 0 || node >= nw_thread_node(t - 1), "%d threads: thread %d", threads, t);
            if (on_node[node]++ == 0)
                nodes[count++] = node;
        }
        for (int i = 0; i < count; i++) {
            least = on_node[nodes[i]] < least ? on_node[nodes[i]] : least;
            most = on_node[nodes[i]] > most ? on_node[nodes[i]] : most;
        }
        CHECK(most - least <= 1 && count == (threads < processors ? threads : processors), "%d threads", threads);
    }
}

static void wrong_numbers_are_refused(void) {
    nw_set_threads(4);
    CHECK(nw_bind_thread(4) == NW_INVALID && nw_bind_thread(-1) == NW_INVALID, "thread 4 and -1 of 4");
    CHECK(strstr(nw_last_error(), "-1") != NULL, "%s", nw_last_error());
    CHECK(nw_thread_node(4) == NW_INVALID && nw_thread_node(-1) == NW_INVALID, "their nodes");
    CHECK(nw_set_threads(-1) == NW_INVALID && nw_get_threads() == 4, "-1 threads");
    CHECK(nw_set_threads(1 << 30) == NW_INVALID && nw_get_threads() == 4, "more than Linux has");
    CHECK(nw_migrate_thread(0, -1) == NW_INVALID && nw_migrate_thread(0, 1 << 30) == NW_INVALID, "no such CPU");
    CHECK(nw_migrate_thread(-1, cpus[0]) == NW_INVALID, "no such thread");
    CHECK(nw_migrate_thread(getppid(), cpus[0]) == NW_INVALID, "another process's thread");
}

static void *bind_myself(void *number) {
    int thread = (int)(intptr_t)number, status = nw_bind_thread(thread);
    CHECK(status == (pretended ? NW_NOT_DONE : NW_OK), "%s", nw_last_error());
    CHECK(pretended || bound_to(0) == expected_cpu(thread, TEAM), "thread %d is on CPU %d", thread, bound_to(0));
    CHECK(pretended || sched_getcpu() == bound_to(0), "and runs there");
    return NULL;
}

static void by_number(void) {
    pthread_t team[TEAM];
    nw_set_threads(TEAM);
    for (intptr_t t = 0; t < TEAM; t++) {
        pthread_create(&team[t], NULL, bind_myself, (void *)t);
        pthread_join(team[t], NULL); /* one at a time, since CHECK is not thread-safe */
    }
    nw_statistics statistics;
    nw_get_statistics(&statistics);
    CHECK(pretended ? statistics.thread_seconds == 0 : statistics.thread_seconds > 0 && statistics.calls >= TEAM,
          "%g s", statistics.thread_seconds);
}

static pthread_barrier_t meeting;
static pid_t tids[TEAM];

static void *wait_for_the_end(void *number) {
    tids[(intptr_t)number] = gettid();
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    return NULL;
}

/* Whether the process has one thread. A sanitizer may have one of its own, which counts too; a thread that was joined
 * may still be listed for a moment. */
static int alone(void) {
    int entries = 0;
    for (int wait = 0; wait < 100 && entries != 3; wait++) { /* with . and .. */
        DIR *folder = opendir("/proc/self/task");
        for (entries = 0; readdir(folder); entries++)
            ;
        closedir(folder);
        usleep(1000);
    }
    return entries == 3;
}

static void by_order_of_start(void) {
    pthread_t team[TEAM];
    int in_order = alone();
    pthread_barrier_init(&meeting, NULL, TEAM);
    tids[0] = gettid();
    for (intptr_t t = 1; t < TEAM; t++)
        pthread_create(&team[t], NULL, wait_for_the_end, (void *)t);
    pthread_barrier_wait(&meeting);
    nw_set_threads(TEAM);
    CHECK(nw_bind_threads() == (pretended ? NW_NOT_DONE : NW_OK), "%s", nw_last_error());
    for (int t = 0; t < TEAM && in_order && !pretended; t++)
        CHECK(bound_to(tids[t]) == expected_cpu(t, TEAM), "thread %d is on CPU %d", t, bound_to(tids[t]));
    if (in_order && !pretended) { /* by hand: the last thread to the last CPU, whose node it then belongs to */
        int last = cpus[cpu_count - 1];
        CHECK(nw_migrate_thread(tids[TEAM - 1], last) == NW_OK && bound_to(tids[TEAM - 1]) == last, "%s",
              nw_last_error());
        CHECK(nw_thread_node(TEAM - 1) == nw_cpu_node(last), "its node");
        CHECK(nw_migrate_thread(0, last) == NW_OK && bound_to(0) == last, "the caller");
        nw_set_threads(4); /* fewer than there are, so numbers repeat */
        CHECK(nw_bind_threads() == NW_OK && bound_to(tids[5]) == bound_to(tids[1]), "thread 5 with thread 1");
    }
    pthread_barrier_wait(&meeting);
    for (int t = 1; t < TEAM; t++)
        pthread_join(team[t], NULL);
    CHECK(nw_migrate_thread(tids[1], cpus[0]) == NW_INVALID, "a thread that has ended");
    pthread_barrier_destroy(&meeting);
}

/* ---- Forks --------------------------------------------------------------------------------------- */

static atomic_int enough;

static void *ask(void *none) {
    while (!enough)
        nw_thread_node(0);
    return none;
}

/* A child can bind, query and place, whatever its parent's threads were doing at the fork. */
static int child(void) {
    alarm(20);
    double *a = nw_alloc_1d(1000, sizeof *a);
    int works = nw_bind_thread(1) >= 0 && nw_place(a, nw_bind(NW_ROWS)) >= 0 && nw_free(a) == NW_OK;
    return works && nw_thread_node(1) >= 0 ? 0 : 1;
}

static void children_are_free(void) {
    enum { FORKS = 200, ASKERS = 3 };
    pthread_t team[ASKERS];
    int ended = 0, status = 0;
    nw_set_threads(TEAM);
    for (int t = 0; t < ASKERS; t++)
        pthread_create(&team[t], NULL, ask, NULL);
    for (int i = 0; i < FORKS; i++, ended += !status) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(child());
        waitpid(pid, &status, 0);
        if (status)
            break;
    }
    enough = 1;
    for (int t = 0; t < ASKERS; t++)
        pthread_join(team[t], NULL);
    CHECK(ended == FORKS, "fork %d: status %#x", ended, (unsigned)status);
}

static void cpus_are_ours(void) {
    for (int i = 0; i < cpu_count; i++) {
        CHECK(nw_cpu_node(cpus[i]) >= 0, "CPU %d has a node", cpus[i]);
        for (int j = 0; j < i; j++)
            CHECK(cpus[i] != cpus[j], "CPU %d twice", cpus[i]);
    }
    CHECK(nw_cpu_node(-1) == -1 && nw_cpu_node(1 << 30) == -1, "CPUs that are none");
    CHECK(usable(cpus[0]) && !usable(1 << 30), "the list");
}

#ifdef _OPENMP
static void an_openmp_team(void) {
    int status = nw_bind_openmp();
    CHECK(status == (pretended ? NW_NOT_DONE : NW_OK), "%s", nw_last_error());
#pragma omp parallel
#pragma omp critical
    {
        CHECK(nw_get_threads() == omp_get_num_threads(), "the team's size");
        CHECK(pretended || bound_to(0) == expected_cpu(omp_get_thread_num(), omp_get_num_threads()), "thread %d",
              omp_get_thread_num());
    }
}
#endif

/* From here on, system calls that bind fail with EPERM. */
static int refuse(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void refusals_are_told(void) {
    CHECK(!refuse(), "no seccomp here");
    CHECK(nw_bind_thread(0) == NW_NOT_DONE && strstr(nw_last_error(), "not permitted"), "%s", nw_last_error());
    CHECK(nw_bind_threads() == NW_NOT_DONE, "%s", nw_last_error());
    CHECK(nw_migrate_thread(0, cpus[0]) == NW_NOT_DONE, "%s", nw_last_error());
}

int main(int argc, char **argv) {
    cpu_count = nw_cpus(cpus, CPUS);
    pretended = getenv("NODEWISE_PRETEND") != NULL;
    if (argc > 1 && strcmp(argv[1], "refused"))
        CHECK(nw_get_threads() == atoi(argv[1]), "%d", nw_get_threads());
    if (argc > 1 && !strcmp(argv[1], "refused")) {
        refusals_are_told();
        return check_end();
    }
    cpus_are_ours();
    threads_fill_nodes_evenly();
    wrong_numbers_are_refused();
    by_number();
    by_order_of_start();
    children_are_free();
#ifdef _OPENMP
    an_openmp_team(); /* last: its threads stay */
#endif
    return check_end();
}
