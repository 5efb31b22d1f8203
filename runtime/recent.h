/* A model of the thread's private cache: it holds the NW_WINDOW_SLOTS pages that the thread touched last, at any
 * addresses. The window is direct-mapped, so conflicts evict pages from it that such a cache still holds. When
 * such a page returns to the window, its lines are restored and are not counted as traffic again.
 *
 * A page is forgotten only when more than NW_WINDOW_SLOTS pages would be remembered; it is then the least
 * recently used one. So a thread counts each line of any NW_WINDOW_SLOTS pages once, whatever their addresses.
 * Accesses to pages in the window do not pass through here. They are noticed by the growth of the page's counter,
 * which is checked by a clock hand that goes round the window, and before a page is forgotten. */
#ifndef NODEWISE_RECENT_H
#define NODEWISE_RECENT_H

#include "runtime.h"

/* Slots that the hand checks when a page enters the window. The order of pages by recency is accurate to one round
 * of the hand: NW_WINDOW_SLOTS / NW_HAND_SLOTS pages that enter. */
#define NW_HAND_SLOTS 2u
#define NW_RECENT_CHAINS 4096u

typedef struct nw_recent_page {
    uint64_t page;
    uint64_t lines; /* its bitmap when it left the window */
    uint16_t newer, older;
    uint16_t next; /* in its hash chain */
} nw_recent_page;

/* Zero-initialised. Places are numbered from 1; place 0 is the sentinel of the list. */
typedef struct nw_recent {
    nw_recent_page pages[NW_WINDOW_SLOTS + 1];
    uint16_t chains[NW_RECENT_CHAINS];
    uint16_t inside[NW_WINDOW_SLOTS]; /* place of the page in each slot; 0: its lines were forgotten */
    uint64_t seen[NW_WINDOW_SLOTS];   /* accesses of each slot's counter when it was last checked */
    uint64_t paced[NW_WINDOW_SLOTS];  /* accesses of each slot already charged to the slice */
    uint32_t used, hand;
} nw_recent;

/* To be called before `slot` takes `page`, which is touched now. Returns the page's lines that are in the cache.
 * The lines of the page that the slot holds so far must have been added to its counter. */
uint64_t nw_recent_enter(nw_thread *thread, nw_slot *slot, uint64_t page);

/* Checks the next slots of the window; to be called for each page that enters it. */
void nw_recent_turn_hand(nw_thread *thread);

/* To be called after the slot has taken the page and its counter. */
void nw_recent_entered(nw_thread *thread, const nw_slot *slot);

#endif
