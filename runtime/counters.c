/* Counters of a thread: found by a private hash index, appended when a page is new, reached through
 * the window. Only the owning thread writes them. Accesses of a signal handler that interrupts the slow
 * path are not counted but added to `dropped`. */
#define _DEFAULT_SOURCE
#include "counters.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INDEX_SLOTS 4096u
#define HASH 0x9e3779b97f4a7c15ull

_Static_assert(offsetof(nw_thread, window) == 0, "read by instrumented code");
_Static_assert(offsetof(nw_thread, region) == 8, "read by instrumented code");
_Static_assert(sizeof(nw_slot) == 32 && sizeof(nw_counter) == 32, "shared with the recorder");
_Static_assert(offsetof(nw_counter, reads) == 8 && offsetof(nw_counter, writes) == 16, "likewise");
_Static_assert(offsetof(nw_slot, counter) == 8 && offsetof(nw_slot, bitmap) == 16, "likewise");

#if defined __has_feature
#if __has_feature(thread_sanitizer)
#define TELLS_SANITIZER
#endif
#endif

/* Used instead of mmap(3), which this library intercepts and which sets errno. */
static long raw_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined __x86_64__
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined __aarch64__
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
#error "system calls of this architecture are not known here"
#endif
}

#ifdef TELLS_SANITIZER
/* ThreadSanitizer has to know that memory is another one when addresses are mapped again. */
static void *map_zeroed(uint64_t bytes) {
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

static void unmap(void *start, uint64_t bytes) {
    if (start)
        munmap(start, bytes);
}
#else
static void *map_zeroed(uint64_t bytes) {
    long result = raw_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return (unsigned long)result > -4096ul ? NULL : (void *)result;
}

static void unmap(void *start, uint64_t bytes) {
    if (start)
        raw_call(SYS_munmap, (long)start, (long)bytes, 0, 0, 0, 0);
}
#endif

static void index_insert(uint64_t *index, uint64_t slots, uint64_t key, uint64_t number) {
    uint64_t hash = key * HASH;
    uint64_t i = hash >> 32 & (slots - 1);
    while (index[i])
        i = (i + 1) & (slots - 1);
    index[i] = hash << 32 | (number + 1);
}

/* Doubles the index; false if out of memory. */
static bool index_grow(nw_thread *thread) {
    uint64_t slots = thread->index_slots ? thread->index_slots * 2 : INDEX_SLOTS;
    uint64_t *index = map_zeroed(slots * sizeof *index);
    if (!index)
        return false;
    for (uint64_t i = thread->first; i < thread->header->counters; i++)
        index_insert(index, slots, nw_counter_at(thread, i)->key, i);
    unmap(thread->index, thread->index_slots * sizeof *index);
    thread->index = index;
    thread->index_slots = slots;
    return true;
}

static void index_prefetch(const nw_thread *thread, uint64_t key) {
    if (thread->index)
        __builtin_prefetch(&thread->index[key * HASH >> 32 & (thread->index_slots - 1)]);
}

/* Prefetches the counter that most probably is the key's: the first whose hash has the same tag. */
static void counter_prefetch(const nw_thread *thread, uint64_t key) {
    uint64_t hash = key * HASH, mask = thread->index_slots - 1;
    for (uint64_t i = hash >> 32 & mask; thread->index && thread->index[i]; i = (i + 1) & mask)
        if ((uint32_t)(thread->index[i] >> 32) == (uint32_t)hash)
            return __builtin_prefetch(nw_counter_at(thread, (uint32_t)thread->index[i] - 1), 1);
}

static nw_counter *index_find(const nw_thread *thread, uint64_t key) {
    if (!thread->index)
        return NULL;
    uint64_t hash = key * HASH;
    uint64_t mask = thread->index_slots - 1;
    for (uint64_t i = hash >> 32 & mask; thread->index[i]; i = (i + 1) & mask) {
        uint64_t entry = thread->index[i];
        if ((uint32_t)(entry >> 32) != (uint32_t)hash)
            continue;
        nw_counter *counter = nw_counter_at(thread, (uint32_t)entry - 1);
        if (counter->key == key)
            return counter;
    }
    return NULL;
}

/* ---- First touches. ---- */

#define LEAVES (1ul << (47 - NW_PAGE_SHIFT - NW_LEAF_SHIFT))

nw_leaf **nw_touched;
static nw_leaf *leaves;

bool nw_touched_prepare(void) {
    nw_leaf **none = NULL;
    if (__atomic_load_n(&nw_touched, __ATOMIC_ACQUIRE))
        return true;
    nw_leaf **fresh = map_zeroed(LEAVES * sizeof *fresh);
    if (fresh && !__atomic_compare_exchange_n(&nw_touched, &none, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        unmap(fresh, LEAVES * sizeof *fresh);
    return fresh;
}

/* Requires that the process has one thread. The root's pages are given back to the kernel, which clears them. */
void nw_touched_forget(void) {
    if (!nw_touched)
        return;
    while (leaves) {
        nw_leaf *leaf = leaves;
        leaves = leaf->next;
        unmap(leaf, sizeof *leaf);
    }
    raw_call(SYS_madvise, (long)nw_touched, LEAVES * sizeof *nw_touched, MADV_DONTNEED, 0, 0, 0);
}

static NW_COLD nw_leaf *make_leaf(nw_leaf **place) {
    nw_leaf *fresh = map_zeroed(sizeof *fresh), *other = NULL;
    if (!fresh)
        return NULL;
    if (!__atomic_compare_exchange_n(place, &other, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        unmap(fresh, sizeof *fresh);
        return other;
    }
    fresh->next = __atomic_load_n(&leaves, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&leaves, &fresh->next, fresh, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        ;
    return fresh;
}

/* Sets the page's bit; the thread that sets it first logs the address of the access. False if out of memory. */
static bool first_touch(nw_thread *thread, uint64_t key, const void *code) {
    uint64_t page = key & NW_KEY_PAGE;
    if (!nw_touched || page >> (47 - NW_PAGE_SHIFT))
        return true;
    nw_leaf **place = &nw_touched[page >> NW_LEAF_SHIFT], *leaf = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!leaf && !(leaf = make_leaf(place)))
        return false;
    uint64_t bit = 1ull << (page & 63);
    uint64_t *word = &leaf->bits[page >> 6 & ((1u << (NW_LEAF_SHIFT - 6)) - 1)];
    if (__atomic_load_n(word, __ATOMIC_RELAXED) & bit)
        return true;
    uint64_t used = thread->header->touches;
    if (used >= thread->touches_room && !nw_touches_grow(thread))
        return false;
    if (!(__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit)) {
        nw_touch *touch = (nw_touch *)thread->touches[nw_segment_of(used)] + used;
        *touch = (nw_touch){.key = key, .code = (uint64_t)(uintptr_t)code};
        __atomic_store_n(&thread->header->touches, used + 1, __ATOMIC_RELEASE);
    }
    return true;
}

static nw_counter *append(nw_thread *thread, uint64_t key, const void *code) {
    uint64_t used = thread->header->counters;
    if (used >= thread->counters_room && !nw_counters_grow(thread))
        return NULL;
    if ((used - thread->first) * 2 >= thread->index_slots && !index_grow(thread))
        return NULL;
    if (!first_touch(thread, key, code))
        return NULL;
    nw_counter *counter = nw_counter_at(thread, used);
    *counter = (nw_counter){.key = key};
    index_insert(thread->index, thread->index_slots, key, used);
    __atomic_store_n(&thread->header->counters, used + 1, __ATOMIC_RELEASE);
    return counter;
}

/* For accesses that cannot be counted. `dropped` grows by one per call, whatever the size of the group. */
static nw_slot *drop(nw_thread *thread, uint64_t key) {
    thread->header->dropped++;
    thread->sink.key = key;
    thread->sink.counter = &thread->sink_counter;
    return &thread->sink;
}

/* Before another page takes the slot: adds the slot's lines to its counter, and charges its accesses to the slice. */
static void settle(nw_thread *thread, nw_slot *slot) {
    nw_counter *counter = slot->counter;
    nw_pay(slot);
    if (thread->until_slice != INT64_MAX)
        thread->until_slice -= (int64_t)(counter->reads + counter->writes - *nw_paced(thread, slot));
}

/* Takes the slot's page out of the window for `page`. Returns that page's lines that are in the cache. */
static uint64_t vacate(nw_thread *thread, nw_slot *slot, uint64_t page) {
    if (slot->key != NW_KEY_NONE)
        settle(thread, slot);
    if (!thread->recent)
        thread->recent = map_zeroed(sizeof *thread->recent);
    uint64_t known = thread->recent ? nw_recent_enter(thread, slot, page) : 0;
    slot->key = NW_KEY_NONE; /* the recorder must not see a key together with another page's counter */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return known;
}

static void occupy(nw_thread *thread, nw_slot *slot, uint64_t key, nw_counter *counter, uint64_t known) {
    slot->counter = counter;
    slot->bitmap = slot->known = known;
    *nw_paced(thread, slot) = counter->reads + counter->writes;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    slot->key = key;
    if (thread->recent)
        nw_recent_entered(thread, slot);
}

static const uint32_t always = 1;
const uint32_t *nw_original = &always;
void (*nw_copied)(void);

NW_COLD nw_slot *nw_fill(nw_thread *thread, uint64_t key, const void *code) {
    if (nw_unlikely(*(const volatile uint32_t *)nw_original == 0))
        nw_copied();
    if (thread->busy)
        return drop(thread, key);
    thread->busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    nw_slot *slot = nw_slot_of(thread->window, key & NW_KEY_PAGE);
    /* The index and the counter are cache misses, one after the other: the work that needs neither is done meanwhile. */
    index_prefetch(thread, key);
    uint64_t known = vacate(thread, slot, key & NW_KEY_PAGE);
    counter_prefetch(thread, key);
    if (thread->recent)
        nw_recent_turn_hand(thread);
    nw_counter *counter = index_find(thread, key);
    if (!counter)
        counter = append(thread, key, code);
    if (counter)
        occupy(thread, slot, key, counter, known);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->busy = 0;
    if (!counter) {
        nw_switch_off("no room for more counters");
        return drop(thread, key);
    }
    if (nw_unlikely(thread->until_slice <= 0))
        nw_slice_reached(thread);
    return slot;
}

void nw_window_clear(nw_slot *window) {
    for (uint32_t i = 0; i < NW_WINDOW_SLOTS; i++)
        window[i] = (nw_slot){.key = NW_KEY_NONE};
}

/* The key is cleared first: a recorder that reads in between finds too few lines, and the rest the next time. */
void nw_window_settle(nw_thread *thread) {
    for (uint32_t i = 0; i < NW_WINDOW_SLOTS; i++) {
        nw_slot *slot = &thread->window[i];
        if (slot->key == NW_KEY_NONE)
            continue;
        slot->key = NW_KEY_NONE;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        slot->counter->lines += (uint64_t)__builtin_popcountll(slot->bitmap & ~slot->known);
    }
}

void nw_thread_release(nw_thread *thread) {
    unmap(thread->index, thread->index_slots * sizeof *thread->index);
    unmap(thread->recent, sizeof *thread->recent);
    thread->recent = NULL;
    thread->index = NULL;
    thread->index_slots = 0;
    thread->busy = 0;
}

void nw_thread_renew(nw_thread *thread) {
    if (thread->index_slots != INDEX_SLOTS || !thread->recent) {
        nw_thread_release(thread);
        return;
    }
    __builtin_memset(thread->index, 0, INDEX_SLOTS * sizeof *thread->index);
    __builtin_memset(thread->recent, 0, sizeof *thread->recent);
    thread->busy = 0;
}
