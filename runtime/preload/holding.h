/* Memory policies that hold pages of this process where they are. Takes no locks and does not allocate, so that
 * it can be used in a child that was just forked. */
#ifndef NODEWISE_PRELOAD_HOLDING_H
#define NODEWISE_PRELOAD_HOLDING_H

#include "companion.h"

#pragma GCC visibility push(hidden)

typedef struct nw_pages {
    uint64_t page, end;
} nw_pages;

/* Carries out the requests and stores a status for each. */
void nw_hold(const nw_request *requests, int32_t *statuses, uint32_t count);
/* Lifts the holds in a range; the program's own policies stay. Returns the number of mappings. */
uint32_t nw_lift(nw_pages within);
void nw_lift_all(void);
/* Whether there are strict policies, which can make an allocation fail. */
int nw_holds_strictly(void);
/* Lifts all holds if a node with strict policies becomes short of memory. */
void nw_hold_while_room(void);

#pragma GCC visibility pop
#endif
