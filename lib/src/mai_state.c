/* MAI's state between mai_init and mai_final, behind one lock. */
#include "mai_state.h"

#include <pthread.h>

static mai_state state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int last_status;

/* A forked child must not inherit a lock that is held by a thread which does not exist in the child. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

mai_state *mai_lock(void) {
    pthread_mutex_lock(&lock);
    return &state;
}

mai_state *mai_enter(const char *function) {
    pthread_mutex_lock(&lock);
    if (state.started)
        return &state;
    pthread_mutex_unlock(&lock);
    last_status = nw_fail(NW_NOT_STARTED, "%s: call mai_init first", function);
    return NULL;
}

int mai_leave(int status) {
    pthread_mutex_unlock(&lock);
    return last_status = status;
}

int mai_last_status(void) { return last_status; }

int mai_array_lives(const mai_array *array) {
    const nw_array *now = nw_array_of(array->data);
    return now && now->serial == array->serial;
}
