/* MAI's threads: bound to the CPUs of the configuration, and counted. */
#include "mai_state.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static mai_thread *record_of(mai_state *s, pid_t tid) {
    for (size_t i = 0; i < s->thread_count; i++)
        if (s->threads[i].tid == tid)
            return &s->threads[i];
    if (!mai_grow((void **)&s->threads, s->thread_count, &s->thread_room, sizeof *s->threads))
        return NULL;
    s->threads[s->thread_count] = (mai_thread){.tid = tid, .number = -1};
    return &s->threads[s->thread_count++];
}

/* Moves a thread and counts the move. `number` -1: the thread keeps its number. */
static int move(mai_state *s, pid_t tid, int cpu, int number) {
    mai_thread *record = record_of(s, tid);
    if (!record)
        return nw_fail(NW_NO_MEMORY, "no memory for the list of threads");
    if (number >= 0)
        record->number = number;
    int before = nw_running_on(tid);
    double start = nw_seconds();
    int status = nw_migrate_thread(tid, cpu);
    double seconds = nw_seconds() - start;
    if (status == NW_OK && before >= 0 && before != cpu) {
        record->moves++;
        s->thread_moves++;
        s->thread_seconds += seconds;
    }
    return status;
}

static int bind_self(const char *function, int id) {
    mai_state *s = mai_enter(function);
    if (!s)
        return NW_NOT_STARTED;
    int threads = s->config.threads;
    if (id < 0 || id >= threads)
        return mai_leave(
            nw_fail(NW_INVALID, "%s: there is no thread %d: numbers are 0 to %d", function, id, threads - 1));
    return mai_leave(move(s, gettid(), s->config.thread_cpus[id], id));
}

void bind_thread_posix(int id) { bind_self("bind_thread_posix", id); }
void bind_thread_omp(int id) { bind_self("bind_thread_omp", id); }

/* If there are more threads than configured, CPUs are used again from the first one on. */
void bind_threads(void) {
    mai_state *s = mai_enter("bind_threads");
    if (!s)
        return;
    nw_task *list;
    int count, worst = nw_tasks(&list, &count);
    for (int i = 0; i < count; i++) {
        int status = move(s, list[i].tid, s->config.thread_cpus[i % s->config.threads], i);
        if (status != NW_OK && nw_running_on(list[i].tid) >= 0) /* else it has ended */
            worst = status;
    }
    free(list);
    mai_leave(worst);
}

void mai_migrate_thread(pid_t id, unsigned long cpu) {
    mai_state *s = mai_enter("mai_migrate_thread");
    if (!s)
        return;
    if (id < 0 || cpu > INT_MAX || nw_running_on(id ? id : gettid()) < 0)
        mai_leave(nw_fail(NW_INVALID, "mai_migrate_thread: thread %d to CPU %lu: no such thread here, or no such CPU",
                          (int)id, cpu));
    else
        mai_leave(move(s, id ? id : gettid(), (int)cpu, -1));
}

/* ---- Statistics --------------------------------------------------------------------------------- */

/* The number with which a thread was bound, otherwise its position in the order of start. */
static int number_of(const mai_state *s, pid_t tid, int place) {
    for (size_t i = 0; i < s->thread_count; i++)
        if (s->threads[i].tid == tid && s->threads[i].number >= 0)
            return s->threads[i].number;
    return place;
}

void mai_print_threadcpus(void) {
    mai_state *s = mai_enter("mai_print_threadcpus");
    if (!s)
        return;
    nw_task *list;
    int count, status = nw_tasks(&list, &count);
    for (int i = 0; i < count; i++) {
        int cpu = nw_running_on(list[i].tid);
        if (cpu >= 0)
            printf("thread %d: tid %d, cpu %d, node %d\n", number_of(s, list[i].tid, i), (int)list[i].tid, cpu,
                   nw_cpu_node(cpu));
    }
    free(list);
    mai_leave(status);
}

/* Moves of the threads with this number; -1 if there never was one. */
static long moves_of(const mai_state *s, const nw_task *list, int count, unsigned number) {
    long moves = -1;
    for (size_t i = 0; i < s->thread_count; i++)
        if (s->threads[i].number >= 0 && (unsigned)s->threads[i].number == number)
            moves = (moves < 0 ? 0 : moves) + s->threads[i].moves;
    for (int place = 0; place < count && moves < 0; place++) {
        if (number_of(s, list[place].tid, place) != (int)number)
            continue;
        moves = 0;
        for (size_t i = 0; i < s->thread_count; i++)
            if (s->threads[i].tid == list[place].tid)
                moves = s->threads[i].moves;
    }
    return moves;
}

static long moves_of_all(const mai_state *s, const unsigned *threads, int size) {
    nw_task *list;
    int count, status = nw_tasks(&list, &count);
    long sum = status == NW_NO_MEMORY ? status : 0; /* threads that were bound are known without a list */
    for (int i = 0; i < size && sum >= 0; i++) {
        long moves = moves_of(s, list, count, threads[i]);
        if (moves < 0)
            sum = nw_fail(NW_INVALID, "mai_number_thread_migration: there is no thread %u", threads[i]);
        else
            sum += moves;
    }
    free(list);
    return sum;
}

int mai_number_thread_migration(unsigned int *threads, int size) {
    mai_state *s = mai_enter("mai_number_thread_migration");
    if (!s)
        return NW_NOT_STARTED;
    long moves = (long)s->thread_moves;
    if (threads && size < 0)
        moves = nw_fail(NW_INVALID, "mai_number_thread_migration: %d threads", size);
    else if (threads)
        moves = moves_of_all(s, threads, size);
    mai_leave(moves < 0 ? (int)moves : NW_OK);
    return moves > INT_MAX ? INT_MAX : (int)moves;
}

double mai_get_time_tmigration(void) {
    mai_state *s = mai_enter("mai_get_time_tmigration");
    if (!s)
        return 0;
    double seconds = s->thread_seconds;
    mai_leave(NW_OK);
    return seconds;
}
