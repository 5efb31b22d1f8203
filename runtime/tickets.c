/* Logs which threads take numbers from shared counters (compiler/tickets.cpp). Each thread takes one number if the
 * number selects its part of the data, and many if numbers are pieces of work. */
#include "backtrace.h"
#include "observer.h"

#include <signal.h>

static uint32_t numbered(uint32_t *id) {
    static uint32_t ids;
    uint32_t mine = __atomic_load_n(id, __ATOMIC_RELAXED);
    if (nw_likely(mine != 0))
        return mine;
    sigset_t before;
    nw_threads_lock(&before);
    mine = __atomic_load_n(id, __ATOMIC_RELAXED);
    if (mine == 0) {
        mine = ids < NW_TICKETS ? ++ids : NW_TICKETS + 1;
        __atomic_store_n(id, mine, __ATOMIC_RELAXED);
    }
    nw_threads_unlock(&before);
    return mine;
}

static NW_COLD void log_ticket(const nw_observer *observer, uint32_t id, uint64_t counter, uintptr_t caller) {
    uintptr_t chain[NW_CHAIN];
    uint32_t depth = nw_backtrace(caller, chain);
    nw_line line = {0};
    nw_line_begin(&line, "ticket");
    nw_line_number(&line, id);
    nw_line_number(&line, observer->ordinal);
    nw_line_number(&line, counter);
    nw_line_numbers(&line, chain, depth);
    nw_event(&line);
}

void nw_ticket(uint32_t *site, uint64_t counter, uint32_t taken) {
    nw_observer *observer = nw_here();
    if (taken == 0 || nw_unlikely(observer == NULL))
        return;
    uint32_t id = numbered(site);
    if (nw_unlikely(id > NW_TICKETS) || nw_likely(observer->tickets[id - 1] >= 2))
        return;
    observer->tickets[id - 1]++;
    if (nw_recording())
        log_ticket(observer, id, counter, (uintptr_t)__builtin_return_address(0));
}
