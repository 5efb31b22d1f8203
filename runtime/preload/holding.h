/* Policies that hold this process's pages where they are. Without allocations and locks: also for a
 * freshly forked child. */
#ifndef NODEWISE_PRELOAD_HOLDING_H
#define NODEWISE_PRELOAD_HOLDING_H

#include "companion.h"

#pragma GCC visibility push(hidden)

typedef struct nw_pages {
    uint64_t page, end;
} nw_pages;

/* Does what is asked and writes a status for each. */
void nw_hold(const nw_request *requests, int32_t *statuses, uint32_t count);
/* Lifts what is held; the program's own policies stay. How many mappings it were. */
uint32_t nw_lift(nw_pages within);
void nw_lift_all(void);
/* Whether there are policies that can fail an allocation; and lifts them when a node becomes short. */
int nw_holds_strictly(void);
void nw_hold_while_room(void);

#pragma GCC visibility pop
#endif
