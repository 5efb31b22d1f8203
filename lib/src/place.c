/* Enforces policies: sets the kernel's policies for pages that are not touched yet, in as few calls as possible.
 * Touched pages are moved (migrate.c). */
#include "kernel.h"
#include "library.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The kernel allows 65,530 mappings; half of them are left to the program. */
#define CUTS_ALL 32000
#define CUTS_ARRAY 8192
#define WINDOW 32768 /* runs populated at once */

static _Atomic int cuts_left = CUTS_ALL;

/* Granules of one node, as a range of whole pages. */
typedef struct run {
    char *start;
    size_t bytes;
    int node;
} run;

typedef struct runs {
    const nw_distr *distr;
    nw_span span;
    size_t granule, granules; /* the next one, and their number */
} runs;

int nw_place_possible(void) {
    const nw_machine *machine = nw_machine_now();
    if (machine->pretended)
        return nw_fail(NW_NOT_DONE, "nothing is placed on a machine that NODEWISE_PRETEND made up");
    if (machine->node_count < 2)
        return nw_fail(NW_NOT_DONE, "nothing to place: this process may use the memory of one node only%s%s",
                       machine->ignored[0] ? "; " : "", machine->ignored);
    return NW_OK;
}

static int refused(int error) {
    if (error == -EPERM || error == -ENOSYS || error == -EACCES)
        return nw_fail(NW_NOT_DONE,
                       "pages were not placed: the system call was refused (%s); in a container, allow mbind, "
                       "set_mempolicy and move_pages",
                       strerror(-error));
    return nw_fail(NW_NOT_DONE, "pages were not placed: %s", strerror(-error));
}

nw_span nw_array_span(const nw_array *array) {
    size_t page = nw_machine_now()->page, skip = (page - (uintptr_t)array->data % page) % page;
    size_t bytes = nw_array_bytes(array);
    if (array->mapped)
        return (nw_span){nw_array_base(array, page), array->mapped};
    if (bytes < skip + page)
        return (nw_span){array->data + skip, 0};
    return (nw_span){array->data + skip, (bytes - skip) / page * page};
}

static runs runs_of(const nw_array *array, const nw_distr *distr) {
    return (runs){distr, nw_array_span(array), 0, nw_distr_granules(distr)};
}

/* Finds the next stretch of one node; 0 at the end. */
static int next_run(runs *all, run *found) {
    const nw_distr *distr = all->distr;
    char *first = distr->data - distr->head, *end = all->span.start + all->span.bytes;
    while (all->granule < all->granules) {
        size_t from = all->granule, next;
        int node = nw_distr_granule_node(distr, from, &next);
        for (size_t after; next < all->granules && nw_distr_granule_node(distr, next, &after) == node;)
            next = after;
        all->granule = next < all->granules ? next : all->granules;
        char *start = first + from * distr->granule, *stop = first + all->granule * distr->granule;
        start = start < all->span.start ? all->span.start : start;
        stop = stop > end || all->granule == all->granules ? end : stop;
        if (start >= stop || node < 0)
            continue;
        *found = (run){start, (size_t)(stop - start), node};
        return 1;
    }
    return 0;
}

/* The number of runs; counting stops at one more than `most`. */
static int count_runs(const nw_array *array, const nw_distr *distr, int most) {
    runs all = runs_of(array, distr);
    run each;
    int count = 0;
    while (count <= most && next_run(&all, &each))
        count++;
    return count;
}

/* Whether the kernel's own interleaving yields this distribution. The kernel goes by page numbers, over ascending
 * nodes. Before Linux 6.7 it uses only the lower 32 bits of a number, which yields the same for powers of two only.
 * Adopted memory is excluded, since it is not known here where its mapping begins. */
static int dealt_by_kernel(const nw_distr *distr) {
    size_t block = distr->block * (distr->unit == NW_PAGES ? distr->granule : distr->unit_items * distr->shape.item);
    if (distr->kind != NW_CYCLIC || distr->until || distr->unit == NW_COLUMNS || block != distr->granule ||
        distr->head != 0 || distr->adopted || (distr->node_count & (distr->node_count - 1)))
        return 0;
    for (int i = 1; i < distr->node_count; i++)
        if (distr->nodes[i] <= distr->nodes[i - 1])
            return 0;
    return (uintptr_t)distr->data / distr->granule % (size_t)distr->node_count == 0;
}

static nw_mask mask_of(const nw_distr *distr) {
    nw_mask mask = {{0}};
    for (int i = 0; i < distr->node_count; i++)
        nw_mask_add(&mask, distr->nodes[i]);
    return mask;
}

static int take_cuts(nw_array *array, int count) {
    if (count > CUTS_ARRAY)
        return 0;
    if (atomic_fetch_sub(&cuts_left, count) < count) {
        atomic_fetch_add(&cuts_left, count);
        return 0;
    }
    array->cuts = count;
    return 1;
}

void nw_place_forgotten(nw_array *array) {
    atomic_fetch_add(&cuts_left, array->cuts);
    array->cuts = 0;
}

void nw_place_undone(nw_array *array) {
    nw_span span = nw_array_span(array);
    if (array->placed && span.bytes)
        nw_kernel_default(span.start, span.bytes);
    nw_place_forgotten(array);
    array->placed = 0;
}

static int prefer_runs(nw_array *array, const nw_distr *distr) {
    runs all = runs_of(array, distr);
    run each;
    int error = 0;
    while (!error && next_run(&all, &each))
        error = nw_kernel_prefer(each.start, each.bytes, each.node);
    return error;
}

/* Touches each page by an atomic access, which changes nothing even if another thread writes there. */
static void touch(const run *of, size_t page, const char *base, const unsigned char *resident) {
    for (char *at = of->start; at < of->start + of->bytes; at += page)
        if (!(resident[(size_t)(at - base) / page] & 1))
            __atomic_fetch_or(at, 0, __ATOMIC_RELAXED);
}

/* Touches the pages of runs, node by node, while the thread's policy prefers that node. So system calls are needed
 * for each node, not for each run. */
static int populate_window(const run *list, int count, const nw_distr *distr, const nw_span *span,
                           const unsigned char *resident) {
    nw_kernel_policy before = {0};
    nw_mask done = {{0}};
    int error = 0;
    for (int i = 0; i < count && !error; i++) {
        if (nw_mask_has(&done, list[i].node))
            continue;
        nw_mask_add(&done, list[i].node);
        error = nw_kernel_thread_prefers(&before, list[i].node);
        for (int j = i; j < count && !error; j++)
            if (list[j].node == list[i].node)
                touch(&list[j], distr->page, span->start, resident);
    }
    nw_kernel_thread_as_before(&before);
    return error;
}

static int populate_runs(nw_array *array, const nw_distr *distr, const unsigned char *resident) {
    runs all = runs_of(array, distr);
    run *list = malloc(WINDOW * sizeof *list);
    int error = list ? nw_kernel_default(all.span.start, all.span.bytes) : -ENOMEM;
    for (int count = WINDOW; !error && count == WINDOW;) {
        for (count = 0; count < WINDOW && next_run(&all, &list[count]);)
            count++;
        error = populate_window(list, count, distr, &all.span, resident);
    }
    free(list);
    return error;
}

/* Touches all pages, unless that takes more than half of the free memory: the program itself might never touch them.
 * Adopted memory may be read-only, so the kernel touches it, interleaved over the nodes, and pages are moved
 * afterwards. What the guard protects is not touched: that would be a write. */
static int populate(nw_array *array, const nw_distr *distr, const unsigned char *resident) {
    nw_span span = nw_array_span(array);
    nw_mask nodes = mask_of(distr);
    size_t more = 0;
    for (size_t i = 0; i < span.bytes / distr->page; i++)
        more += !(resident[i] & 1);
    if (more * distr->page > nw_kernel_free_bytes() / 2 || nw_copies_guarded(array))
        return -ENOMEM;
    int error = distr->adopted ? 0 : populate_runs(array, distr, resident);
    if (!error)
        error = nw_kernel_interleave(span.start, span.bytes, &nodes);
    return !error && distr->adopted ? nw_kernel_populate(span.start, span.bytes) : error;
}

/* Places longer parts than wanted, if there can be neither enough mappings nor enough touched pages. */
static int place_coarser(nw_array *array, const nw_distr *distr) {
    size_t granule = distr->granule;
    nw_distr coarse = *distr;
    for (int most = CUTS_ARRAY; granule < nw_array_bytes(array);) {
        granule *= 2;
        coarse = nw_distr_coarser(distr, granule);
        int count = count_runs(array, &coarse, most);
        if (count <= most && take_cuts(array, count))
            break;
    }
    int error = prefer_runs(array, &coarse), moved = error ? refused(error) : nw_move_touched(array, &coarse);
    if (moved != NW_OK)
        return moved;
    return nw_fail(NW_PARTLY,
                   "dealt in parts of %zu bytes: smaller ones would take more mappings than the kernel allows",
                   granule);
}

static int place_runs(nw_array *array, const nw_distr *distr, const unsigned char *resident) {
    int count = count_runs(array, distr, CUTS_ARRAY), error = -ENOMEM;
    if (take_cuts(array, count)) {
        error = prefer_runs(array, distr);
        if (error != -ENOMEM)
            return error ? refused(error) : nw_move_touched(array, distr);
        nw_place_undone(array); /* the process has too many mappings, including those of others */
        array->placed = 1;
    }
    error = populate(array, distr, resident);
    if (error == -EPERM || error == -ENOSYS)
        return refused(error);
    return error ? place_coarser(array, distr) : nw_move_touched(array, distr);
}

/* Permits huge pages if they are the distribution's granule, otherwise forbids them. Existing ones are split by
 * migrate.c. */
static void choose_pages(nw_array *array, const nw_distr *distr) {
    const nw_machine *machine = nw_machine_now();
    nw_span span = nw_array_span(array);
    if (machine->huge == 0)
        return;
    if (distr->granule == distr->page)
        nw_kernel_huge(span.start, span.bytes, 0);
    else if (array->split || !machine->huge_always)
        nw_kernel_huge(span.start, span.bytes, 1);
    array->split = distr->granule == distr->page;
}

static int place_span(nw_array *array, const nw_distr *distr, const unsigned char *resident) {
    nw_span span = nw_array_span(array);
    nw_mask nodes = mask_of(distr);
    int error;
    if (array->cuts)
        nw_place_undone(array);
    choose_pages(array, distr);
    array->placed = 1;
    if (distr->kind == NW_FIRST_TOUCH)
        error = nw_kernel_default(span.start, span.bytes);
    else if (distr->single)
        error = nw_kernel_prefer(span.start, span.bytes, distr->nodes[0]);
    else if (distr->kind == NW_BIND_ALL)
        error = nw_kernel_prefer_many(span.start, span.bytes, &nodes);
    else if (dealt_by_kernel(distr))
        error = nw_kernel_interleave(span.start, span.bytes, &nodes);
    else
        return place_runs(array, distr, resident);
    return error ? refused(error) : nw_move_touched(array, distr);
}

static int place_array(nw_array *array, const nw_distr *distr) {
    nw_span span = nw_array_span(array);
    if (span.bytes == 0)
        return nw_fail(NW_NOT_DONE, "the array has no page of its own");
    unsigned char *resident = malloc(span.bytes / distr->page);
    if (!resident)
        return nw_fail(NW_NO_MEMORY, "no memory for a map of %zu bytes", span.bytes / distr->page);
    int error = nw_kernel_resident(span.start, span.bytes, resident);
    if (error == -EPERM || error == -ENOSYS) {
        memset(resident, 0, span.bytes / distr->page);
        error = 0;
    }
    int status = error ? nw_fail(NW_INVALID, "the array's memory is not there any more: %s", strerror(-error))
                       : place_span(array, distr, resident);
    free(resident);
    return status;
}

int nw_place_array(nw_array *array, const nw_distr *distr) {
    if (distr->kind == NW_FIRST_TOUCH && !array->placed)
        return nw_distr_status(distr);
    if (array->file)
        return nw_fail(NW_NOT_DONE, "the pages of a mapped file are the page cache's: `nodewise files` places them");
    int status = nw_place_possible();
    if (status == NW_OK)
        status = place_array(array, distr);
    return status == NW_OK ? nw_distr_status(distr) : status;
}

int nw_place_by(void *pointer, const nw_policy *policy) {
    nw_array *array = nw_array_of(pointer);
    if (!array)
        return NW_NO_ARRAY;
    if (!policy)
        return nw_fail(NW_INVALID, "no policy");
    nw_distr *distr = nw_describe_array(array, policy);
    if (!distr)
        return nw_last_status();
    int status = nw_place_array(array, distr);
    nw_distr_free(distr);
    return status;
}

int nw_place(void *array, nw_policy policy) { return nw_place_by(array, &policy); }

int nw_distribute(const nw_distr *distr) {
    if (!distr)
        return nw_fail(NW_INVALID, "no distribution");
    nw_array *array = nw_array_of(distr->data);
    if (!array)
        return NW_NO_ARRAY;
    if (array->serial != distr->serial)
        return nw_fail(NW_NO_ARRAY, "%p is another array by now: describe it anew", (void *)distr->data);
    return nw_place_array(array, distr);
}
