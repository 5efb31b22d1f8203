/* Which threads take numbers from counters that they share (compiler/tickets.cpp): once each where a number names the
 * thread's part, again and again where numbers are pieces of work. */
#include "backtrace.h"
#include "observer.h"

static uint32_t numbered(uint32_t *id) {
    static uint32_t ids;
    uint32_t mine = __atomic_load_n(id, __ATOMIC_RELAXED), none = 0;
    if (nw_likely(mine != 0))
        return mine;
    if (__atomic_load_n(&ids, __ATOMIC_RELAXED) >= NW_TICKETS)
        return NW_TICKETS + 1;
    mine = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
    return __atomic_compare_exchange_n(id, &none, mine, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ? mine : none;
}

static NW_COLD void log_ticket(const nw_observer *observer, uint32_t id, bool again, uintptr_t caller) {
    uintptr_t chain[NW_CHAIN];
    uint32_t depth = nw_backtrace(caller, chain);
    nw_line line = {0};
    nw_line_begin(&line, "ticket");
    nw_line_number(&line, id);
    nw_line_number(&line, observer->ordinal);
    nw_line_number(&line, again);
    for (uint32_t i = 0; i < depth; i++)
        nw_line_number(&line, chain[i]);
    nw_event(&line);
}

void nw_ticket(uint32_t *site) {
    nw_observer *observer = nw_here();
    uint32_t id = numbered(site);
    if (nw_unlikely(observer == NULL || id > NW_TICKETS) || nw_likely(observer->tickets[id - 1] == 2))
        return;
    observer->tickets[id - 1]++;
    if (nw_recording())
        log_ticket(observer, id, observer->tickets[id - 1] == 2, (uintptr_t)__builtin_return_address(0));
}
