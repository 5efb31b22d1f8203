/* The private cache that the window stands for: the NW_WINDOW_SLOTS pages that the thread touched last,
 * wherever they lie. The window is direct mapped, so pages leave it that the cache still has; they come
 * back with their lines, which are not traffic again.
 *
 * A page is forgotten only when one more than NW_WINDOW_SLOTS would be known, and then the one that was
 * touched longest ago. So a thread pays for each line of any NW_WINDOW_SLOTS pages once, whatever their
 * addresses. Accesses to pages in the window pass by unseen: that their counters have grown is noticed
 * when a hand that goes round the window comes by, and before a page is forgotten. */
#ifndef NODEWISE_RECENT_H
#define NODEWISE_RECENT_H

#include "runtime.h"

/* Slots that the hand looks at when a page enters the window. The order of pages is true to one round,
 * NW_WINDOW_SLOTS / NW_HAND_SLOTS entries. */
#define NW_HAND_SLOTS 2u
#define NW_RECENT_CHAINS 4096u

typedef struct nw_recent_page {
    uint64_t page;
    uint64_t lines; /* when it left the window */
    uint16_t newer, older;
    uint16_t next; /* in its chain */
} nw_recent_page;

/* Zero at first. Places are numbered from 1; place 0 is both ends of the list. */
typedef struct nw_recent {
    nw_recent_page pages[NW_WINDOW_SLOTS + 1];
    uint16_t chains[NW_RECENT_CHAINS];
    uint16_t inside[NW_WINDOW_SLOTS]; /* place of the page in each slot; 0: its lines were forgotten */
    uint64_t seen[NW_WINDOW_SLOTS];   /* accesses of each slot's counter when it was looked at */
    uint64_t paced[NW_WINDOW_SLOTS];  /* accesses of each slot already charged to the slice */
    uint32_t used, hand;
} nw_recent;

/* `slot` is about to take `page`, touched now. Returns the lines it has in the cache. What the slot held
 * has been paid for. */
uint64_t nw_recent_enter(nw_thread *thread, nw_slot *slot, uint64_t page);

/* It has taken the page and its counter. */
void nw_recent_entered(nw_thread *thread, const nw_slot *slot);

#endif
