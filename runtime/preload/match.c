/* Finds the rule that applies to an object, by the return addresses of its allocation. Called inside signal
 * handlers and callbacks of the loader, so nothing here waits for another thread. */
#define _GNU_SOURCE
#include "preload.h"

#include <fnmatch.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define CACHE 4096u  /* distinct chains remembered; more are looked up every time */
#define UNMATCHED (NW_ANY - 1)

static struct {
    _Atomic uint64_t key;
    _Atomic uint32_t site; /* plus 1; 0: not yet known */
} cache[CACHE];

static _Atomic uint64_t *claimed; /* by site: the call chain, matched by function names only, that has claimed it */
static _Thread_local uint32_t *sequences NW_INITIAL_EXEC; /* by site: this thread's objects so far */

/* The range that holds an address of an image. */
static const nw_range *range_at(const nw_image *in, uint64_t address) {
    uint64_t offset = address - in->bias;
    uint32_t low = 0, high = nw_placement->ranges.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const nw_range *range = &nw_ranges(nw_placement)[middle];
        if (range->module < in->module || (range->module == in->module && range->end <= offset))
            low = middle + 1;
        else
            high = middle;
    }
    const nw_range *range = &nw_ranges(nw_placement)[low];
    return low < nw_placement->ranges.count && range->module == in->module && range->start <= offset ? range : NULL;
}

/* The frames of a call chain. Frames without line tables that no rule names (the C library, operator new)
 * are left out, as in a recording, since they differ between hosts. */
static uint32_t frames_of(const nw_allocation *object, uint32_t frames[NW_CHAIN]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < object->depth && count < NW_CHAIN; i++) {
        uint64_t call = object->chain[i] - 1;
        nw_image in;
        int known = nw_image_at(call, &in);
        const nw_range *range = known ? range_at(&in, call) : NULL;
        if (!range && known && nw_modules(nw_placement)[in.module].sourced)
            frames[count++] = 0;
        for (uint32_t j = 0; range && j < range->count && count < NW_CHAIN; j++)
            frames[count++] = nw_frames(nw_placement)[range->first + j];
    }
    return count;
}

static int starts_with(const nw_site *site, const uint32_t *frames, uint32_t count) {
    return site->count > 0 && site->count <= count &&
           memcmp(nw_frames(nw_placement) + site->first, frames, site->count * sizeof *frames) == 0;
}

/* Without line tables, frames are functions, and inlined functions are missing. The remaining frames must be
 * a subsequence of the site's functions that ends with the same function. */
static int functions_match(const nw_site *site, const uint32_t *frames, uint32_t count) {
    const uint32_t *wanted = nw_frames(nw_placement) + site->first;
    uint32_t known = 0, at = 0;
    while (known < count && frames[known] != 0)
        known++;
    if (known == 0 || site->count == 0 || frames[known - 1] != wanted[site->count - 1])
        return 0;
    for (uint32_t i = 0; i < site->count && at < known; i++)
        at += wanted[i] == frames[at];
    return at == known;
}

static size_t sequence_bytes(void) { return nw_placement->sites.count * sizeof *sequences; }

/* Whether a call chain may have a site that was found without line tables. The first chain that matches a site
 * claims it. Further chains may share the site as long as rules tell its objects apart by sequence:
 * `a = malloc(n), b = malloc(n)` is two calls on one line. */
static int claim(uint32_t site, uint64_t chain) {
    uint64_t owner = 0;
    return atomic_compare_exchange_strong(&claimed[site], &owner, chain) || owner == chain ||
           (sequences && sequences[site] < nw_sites(nw_placement)[site].objects);
}

/* Sites that look alike without lines are told apart by the order in which they are reached. */
static uint32_t site_of(const uint32_t *frames, uint32_t count, uint64_t chain) {
    for (uint32_t i = 0; i < nw_placement->sites.count; i++) {
        const nw_site *site = &nw_sites(nw_placement)[i];
        if (!site->by_name && starts_with(site, frames, count))
            return i;
    }
    for (uint32_t i = 0; i < nw_placement->sites.count; i++) {
        const nw_site *site = &nw_sites(nw_placement)[i];
        if (site->by_name && functions_match(site, frames, count) && claim(i, chain))
            return i;
    }
    return UNMATCHED;
}

static uint64_t key_of(const nw_allocation *object) {
    uint64_t key = 0xcbf29ce484222325ull;
    for (uint32_t i = 0; i < object->depth; i++)
        key = (key ^ object->chain[i]) * 0x9e3779b97f4a7c15ull ^ key >> 29;
    return key | 1;
}

/* Stores the site of a chain for all threads. If a thread is interrupted between the two stores, others do not wait for
 * it but look the chain up themselves. */
static void remember(uint64_t key, uint32_t site) {
    for (uint32_t i = 0; i < 16; i++) {
        uint64_t there = 0;
        uint32_t slot = (uint32_t)(key + i) % CACHE;
        if (atomic_compare_exchange_strong(&cache[slot].key, &there, key))
            atomic_store_explicit(&cache[slot].site, site + 1, memory_order_release);
        if (there == 0 || there == key)
            return;
    }
}

static uint32_t look_up(const nw_allocation *object, uint64_t key, uint32_t kind) {
    uint32_t frames[NW_CHAIN], behind = 0, count = frames_of(object, frames);
    /* Libraries allocate memory by mapping it; the site is then the code that called the library. */
    while (kind == NW_KIND_MAPPING && behind < count && frames[behind] == 0)
        behind++;
    uint32_t site = site_of(frames + behind, count - behind, key);
    remember(key, site);
    return site;
}

static uint32_t site_at(const nw_allocation *object, uint32_t kind) {
    uint64_t key = key_of(object);
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t slot = (uint32_t)(key + i) % CACHE;
        uint64_t there = atomic_load_explicit(&cache[slot].key, memory_order_acquire);
        uint32_t site = there == key ? atomic_load_explicit(&cache[slot].site, memory_order_acquire) : 0;
        if (site != 0)
            return site - 1;
        if (there == 0 || there == key)
            break;
    }
    return look_up(object, key, kind);
}

static uint32_t next_sequence(uint32_t site) {
    if (!sequences) {
        uint32_t *none = NULL, *fresh = nw_own_memory(sequence_bytes());
        if (!fresh)
            return NW_ANY;
        if (!__atomic_compare_exchange_n(&sequences, &none, fresh, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            munmap(fresh, sequence_bytes()); /* a signal handler was faster */
    }
    return __atomic_fetch_add(&sequences[site], 1, __ATOMIC_RELAXED);
}

uint32_t nw_match(const nw_allocation *object, uint32_t kind) {
    uint32_t count = nw_placement->rules.count, thread = nw_thread_ordinal();
    uint32_t site = nw_placement->sites.count ? site_at(object, kind) : UNMATCHED;
    uint32_t sequence = site == UNMATCHED ? NW_ANY : next_sequence(site);
    if (site != UNMATCHED && nw_sites(nw_placement)[site].by_name)
        __atomic_fetch_add(&nw_report->by_name, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count; i++) {
        const nw_rule *rule = &nw_rules(nw_placement)[i];
        if (rule->kind == kind && (rule->site == NW_ANY || rule->site == site) &&
            (rule->thread == NW_ANY || rule->thread == thread) &&
            (rule->sequence == NW_ANY || rule->sequence == sequence))
            return i;
    }
    return count;
}

int nw_has_rules(uint32_t kind) {
    for (uint32_t i = 0; i < nw_placement->rules.count; i++)
        if (nw_rules(nw_placement)[i].kind == kind)
            return 1;
    return 0;
}

uint32_t nw_match_name(const char *name) {
    uint32_t rule = 0;
    for (; rule < nw_placement->rules.count; rule++) {
        const nw_rule *one = &nw_rules(nw_placement)[rule];
        if (one->kind == NW_KIND_FILE && one->name != NW_ANY &&
            fnmatch(nw_texts(nw_placement) + one->name, name, FNM_NOESCAPE) == 0)
            break;
    }
    return rule;
}

int nw_match_start(void) {
    nw_images_start();
    claimed = nw_own_memory((nw_placement->sites.count + 1u) * sizeof *claimed);
    if (!claimed)
        nw_preload_off("no memory");
    return claimed != NULL;
}

void nw_match_thread_ends(void) {
    uint32_t *last = __atomic_exchange_n(&sequences, NULL, __ATOMIC_RELAXED);
    if (last)
        munmap(last, sequence_bytes());
}
