/* Threads and the CPUs that they run on. Thread t of T belongs to the node of index t * N / T among the N that have
 * CPUs, and within that node to the next CPU in nw_cpus' order: one per core first, then the cores' other hardware
 * threads, then from the beginning again. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"
#include "nodewise_schedule.h"
#include "threads.h"

/* The threads that have been bound, by number; guarded by `lock`. */
typedef struct binding {
    pid_t tid; /* 0: never bound */
    int cpu;
} binding;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static binding *bindings;
static int binding_count;
static atomic_int in_force; /* the number of threads; 0: not determined yet */

/* A forked child must not inherit a lock that is held by a thread which does not exist in the child. Its bindings are
 * cleared, since its only thread has another number in the kernel. The handlers are registered early: those before a
 * fork run in reverse order of registration, so that MAI's lock is taken before this one, as everywhere else. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void renewed(void) {
    for (int thread = 0; thread < binding_count; thread++)
        bindings[thread].tid = 0;
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
__attribute__((constructor(101))) static void survive_forks(void) { pthread_atfork(before_fork, after_fork, renewed); }

/* ---- How many, and where ------------------------------------------------------------------------ */

/* OMP_NUM_THREADS may be a list, for nested regions. */
static int default_threads(void) {
    const char *text = getenv("OMP_NUM_THREADS");
    char *end;
    long threads = text ? strtol(text, &end, 10) : 0;
    if (threads >= 1 && threads <= NW_MOST_THREADS && (!*end || *end == ',' || *end == ' '))
        return (int)threads;
    return nw_machine_now()->cpu_count;
}

int nw_get_threads(void) {
    int threads = atomic_load(&in_force), none = 0;
    if (threads)
        return threads;
    threads = default_threads();
    return atomic_compare_exchange_strong(&in_force, &none, threads) ? threads : none;
}

int nw_set_threads(int threads) {
    if (threads < 0 || threads > NW_MOST_THREADS)
        return nw_fail(NW_INVALID, "%d threads: must be 1 to %d, or 0 for the default", threads, NW_MOST_THREADS);
    atomic_store(&in_force, threads);
    return nw_get_threads();
}

static int node_index(int thread, int threads) {
    return (int)((long)thread * nw_machine_now()->processor_count / threads);
}

/* The first of `threads` threads that belongs to the node of index `node` of `nodes`. */
static int first_thread(long node, long threads, long nodes) { return (int)((node * threads + nodes - 1) / nodes); }

/* The CPU of thread t of T by the rule above. If no node with memory has CPUs, all CPUs are used. */
static int cpu_by_rule(int thread, int threads) {
    const nw_machine *machine = nw_machine_now();
    int index = node_index(thread, threads), node = machine->processors[index], count = 0;
    int rank = thread - first_thread(index, threads, machine->processor_count); /* among the node's threads */
    for (int i = 0; i < machine->cpu_count; i++)
        count += machine->cpu_nodes[machine->cpus[i]] == node;
    if (!count)
        return machine->cpus[thread % machine->cpu_count];
    rank %= count;
    for (int i = 0;; i++)
        if (machine->cpu_nodes[machine->cpus[i]] == node && !rank--)
            return machine->cpus[i];
}

static int no_such_thread(int thread, int threads) {
    return nw_fail(NW_INVALID, "there is no thread %d of %d: numbers are 0 to %d (see nw_set_threads)", thread, threads,
                   threads - 1);
}

int nw_thread_node(int thread) {
    const nw_machine *machine = nw_machine_now();
    int threads = nw_get_threads(), cpu = -1;
    if (thread < 0 || thread >= threads)
        return no_such_thread(thread, threads);
    pthread_mutex_lock(&lock);
    if (thread < binding_count && bindings[thread].tid)
        cpu = bindings[thread].cpu;
    pthread_mutex_unlock(&lock);
    return cpu >= 0 ? machine->cpu_nodes[cpu] : machine->processors[node_index(thread, threads)];
}

/* ---- Moving ------------------------------------------------------------------------------------- */

/* A field of /proc/self/task/TID/stat, numbered as in proc(5), 3 and above; -1 if the thread is gone.
 * The name, which may hold anything, ends at the last parenthesis. */
static long long task_field(pid_t tid, int field) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = 0;
    char *at = strrchr(line, ')');
    for (int f = 2; at && f < field; f++)
        at = strchr(at + 1, ' ');
    return at ? strtoll(at + 1, NULL, 10) : -1;
}

enum { FLAGS = 9, STARTED = 22, LAST_CPU = 39 };
enum { EXITING = 4 }; /* PF_EXITING: the thread may have been joined, but is still listed */

/* When a thread started; -1 if it has ended or is ending. */
static long long start_of(pid_t tid) {
    long long flags = task_field(tid, FLAGS);
    return flags < 0 || flags & EXITING ? -1 : task_field(tid, STARTED);
}

int nw_running_on(pid_t tid) { return tid == gettid() ? sched_getcpu() : (int)task_field(tid, LAST_CPU); }

/* Binds a thread of this process to a CPU; 0 or an errno. */
static int move(pid_t tid, int cpu) {
    cpu_set_t *mask = CPU_ALLOC((size_t)cpu + 1);
    if (!mask)
        return ENOMEM;
    size_t size = CPU_ALLOC_SIZE((size_t)cpu + 1);
    CPU_ZERO_S(size, mask);
    CPU_SET_S((size_t)cpu, size, mask);
    int before = nw_running_on(tid);
    double start = nw_seconds();
    int error = sched_setaffinity(tid, size, mask) ? errno : 0;
    double took = nw_seconds() - start;
    CPU_FREE(mask);
    nw_count_call();
    nw_count_thread(!error && before >= 0 && nw_cpu_node(before) != nw_cpu_node(cpu), took);
    return error;
}

/* Remembers the CPU that a numbered thread is bound to. */
static int remember(int thread, pid_t tid, int cpu) {
    int status = NW_OK;
    pthread_mutex_lock(&lock);
    if (thread >= binding_count) {
        int count = thread + 1 > 2 * binding_count ? thread + 1 : 2 * binding_count;
        binding *more = realloc(bindings, (size_t)count * sizeof *more);
        if (more) {
            memset(more + binding_count, 0, (size_t)(count - binding_count) * sizeof *more);
            bindings = more;
            binding_count = count;
        } else {
            status = nw_fail(NW_NO_MEMORY, "no memory for the bindings of %d threads", count);
        }
    }
    if (status == NW_OK)
        bindings[thread] = (binding){tid, cpu};
    pthread_mutex_unlock(&lock);
    return status;
}

static int not_bound(const char *whom, int number, int cpu, int error) {
    const char *why = error == EINVAL ? "not a CPU this process may run on any more" : strerror(error);
    return nw_fail(NW_NOT_DONE, "%s %d not bound to CPU %d: %s", whom, number, cpu, why);
}

static int pretending(void) {
    return nw_machine_now()->pretended
               ? nw_fail(NW_NOT_DONE, "no thread was bound: the machine is one that NODEWISE_PRETEND describes")
               : NW_OK;
}

int nw_bind_thread(int thread) {
    int threads = nw_get_threads();
    if (thread < 0 || thread >= threads)
        return no_such_thread(thread, threads);
    if (pretending())
        return NW_NOT_DONE;
    int cpu = cpu_by_rule(thread, threads), error = move(gettid(), cpu);
    return error ? not_bound("thread", thread, cpu, error) : remember(thread, gettid(), cpu);
}

/* ---- All threads, and one by its number in the kernel ---------------------------------------------- */

/* Threads started within one tick have ascending numbers. */
static int by_start(const void *left, const void *right) {
    const nw_task *a = left, *b = right;
    if (a->started != b->started)
        return a->started < b->started ? -1 : 1;
    return (a->tid > b->tid) - (a->tid < b->tid);
}

int nw_tasks(nw_task **list, int *count) {
    DIR *folder = opendir("/proc/self/task");
    int room = 0;
    *list = NULL;
    *count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        long long started = tid > 0 ? start_of(tid) : -1;
        if (started < 0)
            continue;
        if (*count == room) {
            nw_task *more = realloc(*list, (size_t)(room = 2 * room + 16) * sizeof *more);
            if (!more) {
                closedir(folder);
                free(*list);
                *list = NULL;
                *count = 0;
                return nw_fail(NW_NO_MEMORY, "no memory for a list of %d threads", room);
            }
            *list = more;
        }
        (*list)[(*count)++] = (nw_task){tid, started};
    }
    if (folder)
        closedir(folder);
    if (!*count)
        return nw_fail(NW_NOT_DONE, "threads cannot be listed: /proc/self/task cannot be read");
    qsort(*list, (size_t)*count, sizeof **list, by_start);
    return NW_OK;
}

int nw_bind_threads(void) {
    if (pretending())
        return NW_NOT_DONE;
    nw_task *list;
    int threads = nw_get_threads(), count, bound = 0, refused = 0, status = nw_tasks(&list, &count);
    for (int i = 0; i < count; i++) {
        int thread = i % threads, cpu = cpu_by_rule(thread, threads), error = move(list[i].tid, cpu);
        if (error == ESRCH)
            continue; /* it has ended */
        if (error) {
            refused++;
            not_bound("thread", thread, cpu, error);
            continue;
        }
        bound++;
        if (i < threads && remember(thread, list[i].tid, cpu) != NW_OK)
            status = NW_NO_MEMORY;
    }
    free(list);
    return status != NW_OK ? status : !refused ? NW_OK : bound ? NW_PARTLY : NW_NOT_DONE;
}

static int may_run_on(int cpu) {
    const nw_machine *machine = nw_machine_now();
    for (int i = 0; i < machine->cpu_count; i++)
        if (machine->cpus[i] == cpu)
            return 1;
    return 0;
}

int nw_migrate_thread(int tid, int cpu) {
    if (tid < 0 || (tid && start_of(tid) < 0))
        return nw_fail(NW_INVALID, "thread %d is not one of this process", tid);
    if (!may_run_on(cpu))
        return nw_fail(NW_INVALID, "CPU %d is not one that this process may run on (see nw_cpus)", cpu);
    if (pretending())
        return NW_NOT_DONE;
    pid_t who = tid ? tid : gettid();
    int error = move(who, cpu);
    if (error)
        return not_bound("thread", who, cpu, error);
    pthread_mutex_lock(&lock);
    for (int thread = 0; thread < binding_count; thread++)
        if (bindings[thread].tid == who)
            bindings[thread].cpu = cpu;
    pthread_mutex_unlock(&lock);
    return NW_OK;
}
