/* From return addresses to the rule that an object falls under. */
#define _GNU_SOURCE
#include "preload.h"

#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define IMAGES 64u   /* the table's modules that are loaded: rules name few */
#define CACHE 4096u  /* distinct chains remembered; more are looked up every time */
#define UNMATCHED (NW_ANY - 1)

typedef struct image {
    uint64_t start, end, bias;
    uint32_t module;
} image;

static image images[IMAGES];
static uint32_t image_count;
static unsigned long long loads_seen; /* the loader's own count, to notice dlopen */

static struct {
    _Atomic uint64_t key;
    uint32_t site;
} cache[CACHE];

static _Atomic int lock; /* for the slow path: images and cache */
static unsigned char *claimed; /* by site: a chain known by function names only has it */
static _Thread_local uint32_t *sequences NW_INITIAL_EXEC; /* by site: objects so far */

static uint32_t module_of(const char *path) {
    struct stat status;
    if (stat(*path ? path : "/proc/self/exe", &status) != 0)
        return NW_ANY;
    for (uint32_t i = 0; i < nw_placement->modules.count; i++) {
        const nw_module *module = &nw_modules(nw_placement)[i];
        if (module->device == status.st_dev && module->inode == status.st_ino)
            return i;
    }
    return NW_ANY;
}

static int add_image(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    loads_seen = info->dlpi_adds;
    uint32_t module = module_of(info->dlpi_name);
    if (module == NW_ANY || image_count == IMAGES)
        return 0;
    image found = {.start = UINT64_MAX, .end = 0, .bias = info->dlpi_addr, .module = module};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        if (start < found.start)
            found.start = start;
        if (start + part->p_memsz > found.end)
            found.end = start + part->p_memsz;
    }
    images[image_count++] = found;
    return 0;
}

static void find_images(void) {
    image_count = 0;
    dl_iterate_phdr(add_image, NULL);
}

/* The executable's own writable data, which comes first: variables that no rule names. */
static int rest_of_main(struct dl_phdr_info *info, size_t size, void *place) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_W)
            (*(nw_span_function **)place)(info->dlpi_addr + part->p_vaddr, part->p_memsz);
    }
    return 1;
}

void nw_main_data(nw_span_function *place) { dl_iterate_phdr(rest_of_main, (void *)&place); }

static int count_loads(struct dl_phdr_info *info, size_t size, void *loads) {
    (void)size;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

static const image *image_at(uint64_t address) {
    for (uint32_t i = 0; i < image_count; i++)
        if (address >= images[i].start && address < images[i].end)
            return &images[i];
    return NULL;
}

uint64_t nw_module_bias(uint32_t module) {
    for (uint32_t i = 0; i < image_count; i++)
        if (images[i].module == module)
            return images[i].bias + (images[i].bias == 0); /* a fixed executable: bias 0, page 0 unused */
    return 0;
}

/* The range that holds an address of an image. */
static const nw_range *range_at(const image *in, uint64_t address) {
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

/* The frames behind a chain. Those without source that no rule names (the C library, operator new)
 * are left out, as in a recording: they differ between hosts. */
static uint32_t frames_of(const nw_allocation *object, uint32_t frames[NW_CHAIN]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < object->depth && count < NW_CHAIN; i++) {
        uint64_t call = object->chain[i] - 1;
        const image *in = image_at(call);
        const nw_range *range = in ? range_at(in, call) : NULL;
        if (!range && in && nw_modules(nw_placement)[in->module].sourced)
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

/* Without lines, frames are functions, and those that were inlined are missing: what is left must be
 * a subsequence of the site's functions that ends with the same one. */
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

/* Without lines a site is its function's next call that is new, or several calls if rules tell its
 * objects apart: `a = malloc(n), b = malloc(n)` is two calls on one line. */
static int has_room(uint32_t site) {
    return !claimed[site] || (sequences && sequences[site] < nw_sites(nw_placement)[site].objects);
}

/* Sites that look alike without lines are told apart by the order in which they are reached. */
static uint32_t site_of(const uint32_t *frames, uint32_t count) {
    for (uint32_t i = 0; i < nw_placement->sites.count; i++) {
        const nw_site *site = &nw_sites(nw_placement)[i];
        if (!site->by_name && starts_with(site, frames, count))
            return i;
    }
    for (uint32_t i = 0; i < nw_placement->sites.count; i++) {
        const nw_site *site = &nw_sites(nw_placement)[i];
        if (site->by_name && has_room(i) && functions_match(site, frames, count)) {
            claimed[i] = 1;
            return i;
        }
    }
    return UNMATCHED;
}

static uint64_t key_of(const nw_allocation *object) {
    uint64_t key = 0xcbf29ce484222325ull;
    for (uint32_t i = 0; i < object->depth; i++)
        key = (key ^ object->chain[i]) * 0x9e3779b97f4a7c15ull ^ key >> 29;
    return key | 1;
}

static uint32_t look_up(const nw_allocation *object, uint64_t key, uint32_t kind) {
    uint32_t frames[NW_CHAIN], behind = 0;
    unsigned long long loads = 0;
    while (atomic_exchange_explicit(&lock, 1, memory_order_acquire))
        ;
    dl_iterate_phdr(count_loads, &loads);
    if (loads != loads_seen)
        find_images();
    uint32_t count = frames_of(object, frames);
    /* A mapping is a library's way to allocate; who called the library is its site. */
    while (kind == NW_KIND_MAPPING && behind < count && frames[behind] == 0)
        behind++;
    uint32_t site = site_of(frames + behind, count - behind);
    for (uint32_t i = 0; i < 16; i++) {
        uint64_t expected = 0;
        uint32_t slot = (uint32_t)(key + i) % CACHE;
        if (atomic_load_explicit(&cache[slot].key, memory_order_relaxed) != expected)
            continue;
        cache[slot].site = site;
        atomic_store_explicit(&cache[slot].key, key, memory_order_release);
        break;
    }
    atomic_store_explicit(&lock, 0, memory_order_release);
    return site;
}

static uint32_t site_at(const nw_allocation *object, uint32_t kind) {
    uint64_t key = key_of(object);
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t slot = (uint32_t)(key + i) % CACHE;
        uint64_t there = atomic_load_explicit(&cache[slot].key, memory_order_acquire);
        if (there == key)
            return cache[slot].site;
        if (there == 0)
            break;
    }
    return look_up(object, key, kind);
}

static uint32_t next_sequence(uint32_t site) {
    if (!sequences) {
        sequences = nw_own_memory(sequence_bytes());
        if (!sequences)
            return NW_ANY;
    }
    return sequences[site]++;
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

int nw_match_start(void) {
    find_images();
    claimed = nw_own_memory(nw_placement->sites.count + 1u);
    if (!claimed)
        nw_preload_off("no memory");
    return claimed != NULL;
}

void nw_match_after_fork(void) { atomic_store(&lock, 0); }

void nw_match_thread_ends(void) {
    if (sequences)
        munmap(sequences, sequence_bytes());
    sequences = NULL;
}
