/* Moves touched pages to the nodes of a distribution, many in each call. */
#include "kernel.h"
#include "library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 16384 /* pages asked about or moved at once */
#define TRIES 3     /* pages that are in use at the moment of a call are not moved by it */

typedef struct batch {
    void *pages[BATCH];
    int nodes[BATCH], status[BATCH];
    size_t count;
    uint64_t moved, touched;
    size_t elsewhere[NW_MASK_NODES]; /* by the node they are on */
    nw_mask any; /* with `many`: the nodes among which the kernel may choose */
    int many;
} batch;

static int wanted_there(const batch *of, int wanted, int node) {
    return of->many ? nw_mask_has(&of->any, node) : node == wanted;
}

/* Keeps those of the batch that are touched and on a wrong node. */
static int keep_wrong(batch *of) {
    int error = of->count ? nw_kernel_move(of->count, of->pages, NULL, of->status) : 0;
    size_t kept = 0;
    for (size_t i = 0; i < of->count && !error; i++) {
        if (of->status[i] < 0 || wanted_there(of, of->nodes[i], of->status[i]))
            continue;
        of->pages[kept] = of->pages[i];
        of->status[kept] = of->status[i];
        of->nodes[kept++] = of->nodes[i];
    }
    of->count = kept;
    return error;
}

static int move_batch(batch *of) {
    of->touched += of->count;
    int error = keep_wrong(of);
    for (int try = 0; try < TRIES && !error && of->count; try++) {
        size_t before = of->count;
        error = nw_kernel_move(of->count, of->pages, of->nodes, of->status);
        /* The call does not fail because of pages that could not be moved; it is asked again which these are. */
        if (error != -EPERM && error != -ENOSYS)
            error = keep_wrong(of);
        of->moved += before - of->count;
        if (before == of->count)
            break;
    }
    for (size_t i = 0; i < of->count && !error; i++)
        if (of->status[i] < NW_MASK_NODES)
            of->elsewhere[of->status[i]]++;
    of->count = 0;
    return error;
}

/* Splits huge pages that should lie on several nodes. They can exist if pages were touched before they were
 * placed. */
static void split_huge(const nw_distr *distr, const nw_span *span, const unsigned char *resident) {
    const nw_machine *machine = nw_machine_now();
    size_t page = distr->page, huge = machine->huge, next;
    if (huge == 0 || distr->granule != page || !(machine->huge_always || distr->adopted))
        return;
    char *first = distr->data - distr->head;
    for (size_t at = (huge - (uintptr_t)span->start % huge) % huge; at + huge <= span->bytes; at += huge) {
        size_t granule = (size_t)(span->start + at - first) / page;
        if (!(resident[at / page] & 1))
            continue;
        nw_distr_granule_node(distr, granule, &next);
        if (next < granule + huge / page)
            nw_kernel_split(span->start + at, page);
    }
}

/* The node that a page is moved to. If the kernel may choose among several, pages on other nodes are moved to these in
 * turn. */
static int node_for(const nw_distr *distr, size_t granule, size_t *next) {
    int node = nw_distr_granule_node(distr, granule, next);
    if (distr->kind != NW_BIND_ALL || distr->single)
        return node;
    *next = granule + 1;
    return distr->nodes[granule % (size_t)distr->node_count];
}

static int move_span(batch *of, const nw_distr *distr, const nw_span *span, const unsigned char *resident) {
    char *first = distr->data - distr->head, *at = span->start, *end = at + span->bytes;
    int error = 0;
    while (at < end && !error) {
        size_t next, granule = (size_t)(at - first) / distr->granule;
        int node = node_for(distr, granule, &next);
        char *stop = next >= nw_distr_granules(distr) ? end : first + next * distr->granule;
        for (; node >= 0 && at < stop && at < end && !error; at += distr->page) {
            if (!(resident[(size_t)(at - span->start) / distr->page] & 1))
                continue;
            of->pages[of->count] = at;
            of->nodes[of->count++] = node;
            if (of->count == BATCH)
                error = move_batch(of);
        }
        at = at < stop ? stop : at;
    }
    return error ? error : move_batch(of);
}

static int verdict(const batch *of, int error) {
    size_t wrong = 0, most = 0;
    if (error)
        return nw_fail(NW_NOT_DONE, "touched pages were not moved: %s; in a container, allow move_pages",
                       strerror(-error));
    for (size_t node = 0; node < NW_MASK_NODES; node++) {
        wrong += of->elsewhere[node];
        if (of->elsewhere[node] > of->elsewhere[most])
            most = node;
    }
    if (wrong == 0)
        return NW_OK;
    return nw_fail(NW_PARTLY,
                   "%zu of %zu touched pages lie elsewhere, %zu of them on node %zu: full nodes, or pages in use",
                   wrong, (size_t)of->touched, of->elsewhere[most], most);
}

static int nothing_touched(const unsigned char *resident, size_t pages) {
    for (size_t i = 0; i < pages; i++)
        if (resident[i] & 1)
            return 0;
    return 1;
}

static int move_resident(const nw_distr *distr, const nw_span *span, const unsigned char *resident) {
    batch *of = calloc(1, sizeof *of);
    if (!of)
        return nw_fail(NW_NO_MEMORY, "no memory to move pages");
    of->many = distr->kind == NW_BIND_ALL && !distr->single;
    for (int i = 0; i < distr->node_count; i++)
        nw_mask_add(&of->any, distr->nodes[i]);
    double before = nw_seconds();
    split_huge(distr, span, resident);
    int status = verdict(of, move_span(of, distr, span, resident));
    if (of->moved)
        nw_count_pages(of->moved, nw_seconds() - before);
    free(of);
    return status;
}

int nw_move_touched(nw_array *array, const nw_distr *distr) {
    nw_span span = nw_array_span(array);
    size_t pages = span.bytes / distr->page;
    if (distr->kind == NW_FIRST_TOUCH || pages == 0)
        return NW_OK;
    unsigned char *resident = malloc(pages);
    if (!resident)
        return nw_fail(NW_NO_MEMORY, "no memory for a map of %zu pages", pages);
    int status = NW_OK, error = nw_kernel_resident(span.start, span.bytes, resident);
    if (error == -EPERM || error == -ENOSYS)
        memset(resident, 1, pages);
    if (error == -ENOMEM || error == -EFAULT)
        status = nw_fail(NW_INVALID, "the array's memory is not there any more");
    else if (!nothing_touched(resident, pages))
        status = move_resident(distr, &span, resident);
    free(resident);
    return status;
}

static int moved_by(nw_array *array, nw_distr *distr) {
    if (!distr)
        return nw_last_status();
    int status = nw_place_possible();
    if (status == NW_OK)
        status = nw_move_touched(array, distr);
    if (status == NW_OK)
        status = nw_distr_status(distr);
    nw_distr_free(distr);
    return status;
}

static int migrate_some(void *pointer, nw_unit unit, int node, size_t count, size_t first) {
    nw_array *array = nw_array_of(pointer);
    return array ? moved_by(array, nw_describe_some(array, unit, node, count, first)) : NW_NO_ARRAY;
}

int nw_migrate_rows(void *array, int node, size_t count, size_t first) {
    return migrate_some(array, NW_ROWS, node, count, first);
}

int nw_migrate_columns(void *array, int node, size_t count, size_t first) {
    return migrate_some(array, NW_COLUMNS, node, count, first);
}

static int migrate_all(void *pointer, const int *nodes, int node_count) {
    nw_array *array = nw_array_of(pointer);
    nw_policy policy = nw_blocks(NW_PAGES);
    policy.nodes = nodes;
    policy.node_count = node_count;
    return array ? moved_by(array, nw_describe_array(array, &policy)) : NW_NO_ARRAY;
}

int nw_scatter(void *array, const int *nodes, int node_count) { return migrate_all(array, nodes, node_count); }

int nw_gather(void *array, int node) { return migrate_all(array, &node, 1); }
