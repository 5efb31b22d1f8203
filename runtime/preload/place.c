/* Computes the node of each page of an object, and requests it from the kernel in as few calls as possible. */
#define _GNU_SOURCE
#include "preload.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* The kernel allows 65,530 mappings; half of them are left to the program. */
#define CUTS_ALL 32000
#define CUTS_OBJECT 1024u
#define DECISIONS (1u << 16)     /* about one object that has a name */
#define OWN_DECISIONS (1u << 20) /* about one of the program's own: 4 GiB page by page */

static _Atomic int cuts_left = CUTS_ALL;

static const nw_distribution *distribution_of(const nw_object *object) {
    return object->rule < nw_placement->rules.count ? &nw_rules(nw_placement)[object->rule].how
                                                    : &nw_placement->fallback;
}

/* Only objects that are large enough for a huge page can have one. */
static uint64_t granule_of(const nw_object *object) {
    if (object->whole.pages > 0)
        return object->whole.granule;
    return object->pages >= nw_placement->granule ? nw_placement->granule : 1;
}

/* A rule's exceptions, which apply only to objects of the recorded size. */
static const nw_run *exceptions(const nw_object *object, uint32_t *count) {
    *count = 0;
    if (object->rule >= nw_placement->rules.count)
        return NULL;
    const nw_rule *rule = &nw_rules(nw_placement)[object->rule];
    if (rule->pages == (object->whole.pages > 0 ? object->whole.pages : object->pages))
        *count = rule->runs;
    return nw_runs(nw_placement) + rule->run;
}

static uint32_t exception_at(const nw_object *object, uint64_t index) {
    uint32_t low = 0, high, count;
    const nw_run *runs = exceptions(object, &count);
    for (high = count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (runs[middle].first + runs[middle].pages <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && runs[low].first <= index ? runs[low].node : NW_NODE_NONE;
}

/* Where an object begins and how long it is, in the pages by which its own are numbered: those of the address
 * space, or of the object that has a name, of which every process maps the same pages. */
typedef struct numbered {
    uint64_t first, pages, mapping;
} numbered;

static numbered numbering(const nw_object *object) {
    if (object->whole.pages > 0)
        return (numbered){.first = 0, .pages = object->whole.pages, .mapping = object->whole.before};
    return (numbered){.first = object->page, .pages = object->pages, .mapping = object->page};
}

/* The node of the granule that holds a page. The granule's middle page decides, so that a huge page with a
 * boundary inside goes to the node that should have the larger part of it. */
static uint32_t wanted_by(const nw_object *object, uint64_t page, uint64_t granule) {
    numbered in = numbering(object);
    uint64_t own = page - object->page + in.mapping;
    uint64_t first = own / granule * granule, end = first + granule, last = in.first + in.pages;
    if (first < in.first)
        first = in.first;
    if (end > last)
        end = last;
    uint64_t index = first + (end - first - 1) / 2 - in.first;
    uint32_t node = exception_at(object, index);
    if (node != NW_NODE_NONE)
        return node;
    nw_page at = {.index = index, .pages = in.pages, .thread = object->thread};
    at.number = own / granule + object->whole.phase;
    at.turn = own / granule - in.first / granule;
    return nw_node_of(distribution_of(object), nw_parts(nw_placement), nw_thread_nodes(nw_placement),
                      nw_placement->thread_nodes.count, at);
}

uint32_t nw_wanted(const nw_object *object, uint64_t page) { return wanted_by(object, page, granule_of(object)); }

/* Counts the stretches of pages with the same node, and stores them in `out` if it is not null. Pages that are left to
 * the kernel are in none. */
static uint32_t stretches_of(const nw_object *object, uint64_t granule, nw_stretch *out) {
    uint64_t end = object->page + object->pages, own = numbering(object).mapping - object->page;
    uint32_t count = 0, before = NW_NODE_NONE;
    for (uint64_t page = object->page, next; page < end; page = next) {
        next = ((page + own) / granule + 1) * granule - own;
        if (next > end)
            next = end;
        uint32_t node = wanted_by(object, page, granule);
        if (node != NW_NODE_NONE && node != before) {
            if (out)
                out[count] = (nw_stretch){.page = page, .pages = 0, .node = node};
            count++;
        }
        if (node != NW_NODE_NONE && out)
            out[count - 1].pages += next - page;
        before = node;
    }
    return count;
}

/* Whether the kernel can interleave the object itself: it does so by page number, over ascending nodes. */
static int interleaved_by_kernel(const nw_object *object, const nw_distribution *how, uint32_t nodes[NW_NODES]) {
    uint32_t count;
    exceptions(object, &count);
    if (count > 0 || how->kind != NW_INTERLEAVE || how->count < 2 || how->count > NW_NODES)
        return 0;
    for (uint32_t i = 0; i < how->count; i++) {
        nodes[i] = nw_parts(nw_placement)[how->first + i].node;
        if (i > 0 && nw_nodes(nw_placement)[nodes[i]] <= nw_nodes(nw_placement)[nodes[i - 1]])
            return 0;
    }
    return 1;
}

static void want_interleaved(const nw_object *object, const uint32_t *nodes, uint32_t count) {
    uint64_t unit = object->whole.pages > 0 ? object->whole.granule : 1;
    uint64_t rounds = object->pages / (count * unit);
    for (uint32_t i = 0; i < count; i++)
        nw_objects_want(object, nodes[i], rounds * unit);
    uint64_t own = numbering(object).mapping - object->page;
    for (uint64_t page = object->page + rounds * count * unit; page < object->page + object->pages; page++)
        nw_objects_want(object, nodes[((page + own) / unit + object->whole.phase) % count], 1);
}

static void note(int status) {
    if (status == 0)
        return;
    __atomic_fetch_add(&nw_report->refused, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&nw_report->last_error, (uint32_t)-status, __ATOMIC_RELAXED);
}

static void prefer_all(const nw_object *object, const nw_stretch *stretches, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        note(nw_kernel_prefer(stretches[i].page, stretches[i].pages, stretches[i].node, !object->fresh));
}

static void populate_all(const nw_stretch *stretches, uint32_t count) {
    uint64_t pages = 0;
    for (uint32_t i = 0; i < count; i++)
        pages += stretches[i].pages;
    note(nw_kernel_populate(stretches, count));
    __atomic_fetch_add(&nw_report->populated, pages, __ATOMIC_RELAXED);
}

/* Whether each stretch may become a mapping of its own; if so, takes them from the allowance. */
static int take_cuts(nw_object *object, uint32_t count) {
    if (count > CUTS_OBJECT || atomic_fetch_sub(&cuts_left, (int)count) < (int)count) {
        if (count <= CUTS_OBJECT)
            atomic_fetch_add(&cuts_left, (int)count);
        return 0;
    }
    object->cuts = count;
    return 1;
}

void nw_place_undone(uint32_t cuts) { atomic_fetch_add(&cuts_left, (int)cuts); }

/* Touching pages for the program must not use up memory that the program itself might never touch. */
static int may_populate(const nw_object *object) {
    return (object->pages << nw_page_shift) <= nw_kernel_free_bytes() / 2;
}

static void place_stretches(nw_object *object) {
    /* Deciding page by page about terabytes would take seconds; borders are as exact as one page in DECISIONS. */
    while (object->whole.granule < object->whole.pages / DECISIONS)
        object->whole.granule *= 2;
    uint64_t granule = granule_of(object);
    /* Reservations of terabytes are common, and hardly used. */
    while (granule < object->pages / OWN_DECISIONS)
        granule *= 2;
    uint32_t count = stretches_of(object, granule, NULL);
    /* What has a name may be larger than what is used of it, and other processes allocate it too. */
    int populate = count > CUTS_OBJECT && object->whole.pages == 0 && may_populate(object);
    for (; !populate && count > CUTS_OBJECT; count = stretches_of(object, granule, NULL))
        granule *= 2;
    if (granule != granule_of(object))
        __atomic_fetch_add(&nw_report->coarsened, 1, __ATOMIC_RELAXED);
    if (object->whole.pages > 0)
        object->whole.granule = (uint32_t)granule;
    size_t bytes = count * sizeof(nw_stretch);
    if (count == 0)
        return;
    nw_stretch *stretches = nw_own_memory(bytes);
    if (!stretches)
        return;
    stretches_of(object, granule, stretches);
    for (uint32_t i = 0; i < count; i++)
        nw_objects_want(object, stretches[i].node, stretches[i].pages);
    if (!populate && take_cuts(object, count))
        prefer_all(object, stretches, count);
    else if (object->whole.pages == 0 && may_populate(object))
        populate_all(stretches, count);
    else if (object->whole.pages > 0)
        note(-ENOMEM); /* the allowance is used up */
    munmap(stretches, bytes);
}

void nw_place(nw_object *object) {
    uint32_t nodes[NW_NODES];
    const nw_distribution *how = distribution_of(object);
    if ((nw_placement->flags & NW_SPLIT_HUGE) && object->whole.pages == 0)
        nw_kernel_split_huge(object->page, object->pages);
    if (object->whole.pages > 0 && how->kind == NW_FIRST_TOUCH) {
        note(nw_kernel_local(object->page, object->pages));
        return;
    }
    if (!interleaved_by_kernel(object, how, nodes)) {
        place_stretches(object);
        return;
    }
    want_interleaved(object, nodes, how->count);
    note(nw_kernel_interleave(object->page, object->pages, nodes, how->count, !object->fresh));
}

static uint32_t rule_of_data;

/* Places all pages of a span. Recordings number the pages of a span in the same way. */
static void place_span(uint32_t rule, uint64_t start, uint64_t bytes) {
    nw_object object = {.page = start >> nw_page_shift, .rule = rule};
    object.pages = ((start + bytes - 1) >> nw_page_shift) + 1 - object.page;
    nw_place(&object);
    nw_objects_add(&object);
    if (rule < nw_placement->rules.count)
        nw_seen(&object);
}

static void place_data(uint64_t start, uint64_t bytes) { place_span(rule_of_data, start, bytes); }

static void place_main_data(uint32_t rule) {
    rule_of_data = rule;
    nw_main_data(place_data);
}

/* From general to specific, since a later policy for the same memory replaces an earlier one. */
void nw_place_variables(void) {
    const nw_variable *all = nw_variables(nw_placement);
    uint32_t count = nw_placement->variables.count;
    if (nw_placement->flags & NW_PLACE_REST)
        place_main_data(nw_placement->rules.count);
    for (uint32_t i = 0; i < count; i++)
        if (all[i].bytes == 0)
            place_main_data(all[i].rule);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bias = nw_module_bias(all[i].module);
        if (all[i].bytes > 0 && bias != 0)
            place_span(all[i].rule, (bias & ~1ull) + all[i].address, all[i].bytes);
    }
}
