#include "recent.h"

#include "counters.h"

static uint16_t *chain_of(nw_recent *recent, uint64_t page) {
    return &recent->chains[(page * 0x9e3779b97f4a7c15ull >> 32) & (NW_RECENT_CHAINS - 1)];
}

static void unlink(nw_recent_page *pages, uint16_t place) {
    pages[pages[place].newer].older = pages[place].older;
    pages[pages[place].older].newer = pages[place].newer;
}

static void link_newest(nw_recent_page *pages, uint16_t place) {
    pages[place].newer = 0;
    pages[place].older = pages[0].older;
    pages[pages[0].older].newer = place;
    pages[0].older = place;
}

/* Whether the slot's page was touched since the last call for this slot. */
static bool touched(nw_thread *thread, const nw_slot *slot) {
    uint64_t accesses = slot->counter->reads + slot->counter->writes;
    uint64_t *seen = &thread->recent->seen[slot - thread->window];
    bool more = accesses != *seen;
    *seen = accesses;
    return more;
}

/* Drops the lines of a page from the modelled cache; the page stays in the window. */
static void forget_lines(nw_slot *slot) {
    nw_pay(slot);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    slot->bitmap = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    slot->known = 0;
}

/* Forgets the least recently used page and returns its place. A page that turns out to have been touched in the window
 * since it was last checked becomes the newest instead. */
static uint16_t give_up_oldest(nw_thread *thread) {
    nw_recent *recent = thread->recent;
    uint16_t oldest;
    for (;;) {
        oldest = recent->pages[0].newer;
        nw_slot *slot = nw_slot_of(thread->window, recent->pages[oldest].page);
        uint16_t *inside = &recent->inside[slot - thread->window];
        unlink(recent->pages, oldest);
        if (*inside != oldest)
            break;
        if (!touched(thread, slot)) {
            forget_lines(slot);
            *inside = 0;
            break;
        }
        link_newest(recent->pages, oldest);
    }
    uint16_t *at = chain_of(recent, recent->pages[oldest].page);
    while (*at != oldest)
        at = &recent->pages[*at].next;
    *at = recent->pages[oldest].next;
    return oldest;
}

static void renew(nw_recent *recent, uint16_t place) {
    unlink(recent->pages, place);
    link_newest(recent->pages, place);
}

/* Makes the page the newest, remembering it if necessary; returns its place. */
static uint16_t come(nw_thread *thread, uint64_t page) {
    nw_recent *recent = thread->recent;
    uint16_t *chain = chain_of(recent, page), place = *chain;
    while (place && recent->pages[place].page != page)
        place = recent->pages[place].next;
    if (place) {
        renew(recent, place);
        return place;
    }
    place = recent->used < NW_WINDOW_SLOTS ? (uint16_t)++recent->used : give_up_oldest(thread);
    recent->pages[place] = (nw_recent_page){.page = page, .next = *chain};
    *chain = place;
    link_newest(recent->pages, place);
    return place;
}

/* If the slot's page was touched since the last check, makes it the newest. If its lines had been forgotten, it is
 * remembered again. */
static void look_at(nw_thread *thread, const nw_slot *slot) {
    uint16_t *inside = &thread->recent->inside[slot - thread->window];
    if (!touched(thread, slot))
        return;
    if (*inside)
        renew(thread->recent, *inside);
    else
        *inside = come(thread, slot->key & NW_KEY_PAGE);
}

uint64_t nw_recent_enter(nw_thread *thread, nw_slot *slot, uint64_t page) {
    nw_recent *recent = thread->recent;
    uint16_t *inside = &recent->inside[slot - thread->window];
    if (slot->key != NW_KEY_NONE)
        look_at(thread, slot);
    if (*inside)
        recent->pages[*inside].lines = slot->bitmap;
    *inside = 0;
    *inside = come(thread, page);
    return recent->pages[*inside].lines;
}

void nw_recent_entered(nw_thread *thread, const nw_slot *slot) { touched(thread, slot); }

void nw_recent_turn_hand(nw_thread *thread) {
    nw_recent *recent = thread->recent;
    for (uint32_t i = 0; i < NW_HAND_SLOTS; i++) {
        const nw_slot *at = &thread->window[recent->hand++ % NW_WINDOW_SLOTS];
        if (at->key != NW_KEY_NONE)
            look_at(thread, at);
    }
}
