/* The node that owns a page or an item: computed in O(1) by the shared formulas, whatever the policy; with weights, in
 * the logarithm of their number. */
#include "formulas.h"
#include "kernel.h"
#include "library.h"

#include <stdio.h>
#include <string.h>

/* The node that owns a unit or an item, and the first unit or item after it that may have another owner. */
typedef struct owner {
    int node;
    size_t end;
} owner;

static size_t bytes_of(const nw_distr *distr) { return distr->shape.items * distr->shape.item; }

/* The index of the first cumulative weight above `at`. */
static int weighed(const nw_distr *distr, uint64_t at) {
    int low = 0, high = distr->node_count - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (distr->until[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint64_t weight_of_all(const nw_distr *distr) { return distr->until[distr->node_count - 1]; }

/* The end, in blocks, of the contiguous part of the node with index `part`, by weights. */
static size_t weighed_end(const nw_distr *distr, int part) {
    return (size_t)((unsigned __int128)distr->blocks * distr->until[part] / weight_of_all(distr));
}

static int weighed_part(const nw_distr *distr, size_t block) {
    int low = 0, high = distr->node_count - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (weighed_end(distr, middle) > block)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int in_turn(const nw_distr *distr, uint64_t block) {
    uint32_t nodes = (uint32_t)distr->node_count;
    switch (distr->kind) {
    case NW_CYCLIC:
        if (distr->until)
            return weighed(distr, block % weight_of_all(distr));
        return (int)nw_formula_cyclic(block, nodes);
    case NW_SKEW: return (int)nw_formula_skew(block, nodes);
    case NW_PRIME: return (int)nw_formula_prime(block, distr->prime, nodes);
    default: break;
    }
    if (!distr->until)
        return (int)nw_formula_random(block, distr->seed, nodes);
    unsigned __int128 hash = nw_formula_mix(distr->seed ^ nw_formula_mix(block));
    return weighed(distr, (uint64_t)(hash * weight_of_all(distr) >> 64));
}

static owner owner_of_part(const nw_distr *distr, size_t block) {
    if (distr->kind == NW_BIND_BLOCK) {
        uint32_t thread = nw_formula_static(block, distr->blocks, (uint32_t)distr->threads);
        return (owner){distr->thread_nodes[thread], nw_static_cut(distr->blocks, (size_t)distr->threads, thread + 1ul)};
    }
    int part = distr->until ? weighed_part(distr, block)
                            : (int)nw_formula_static(block, distr->blocks, (uint32_t)distr->node_count);
    return (owner){distr->nodes[part], distr->until
                                           ? weighed_end(distr, part)
                                           : nw_static_cut(distr->blocks, (size_t)distr->node_count, (size_t)part + 1)};
}

/* For NW_SOME_UNITS; `end` is a unit. */
static owner owner_of_some(const nw_distr *distr, size_t unit) {
    if (unit < distr->first)
        return (owner){-1, distr->first};
    if (unit < distr->first + distr->count)
        return (owner){distr->nodes[0], distr->first + distr->count};
    return (owner){-1, distr->units};
}

/* The owner of a unit; `end` is a unit. */
static owner owner_of_unit(const nw_distr *distr, size_t unit) {
    size_t block = unit / distr->block;
    owner found;
    if (distr->kind == NW_SOME_UNITS)
        return owner_of_some(distr, unit);
    if (distr->single)
        return (owner){distr->nodes[0], distr->units};
    if (distr->kind == NW_BIND_BLOCK || distr->kind == NW_BLOCKS)
        found = owner_of_part(distr, block);
    else
        found = (owner){distr->nodes[in_turn(distr, block)], block + 1};
    if (__builtin_mul_overflow(found.end, distr->block, &found.end) || found.end > distr->units)
        found.end = distr->units;
    return found;
}

/* Block-exclusive; `end` is an item. */
static owner owner_of_coordinates(const nw_distr *distr, size_t item) {
    uint32_t coordinates[NW_DIMENSIONS] = {0}, cut = 0;
    size_t inner = distr->shape.items, end = distr->shape.items;
    for (int d = 0; d < distr->shape.dimensions; d++) {
        size_t extent = distr->shape.extents[d], outer = inner;
        inner /= extent;
        if (!(distr->dimensions >> d & 1))
            continue;
        uint32_t part = nw_formula_static(item % outer / inner, extent, (uint32_t)distr->node_count);
        coordinates[cut++] = part;
        end = item - item % outer + nw_static_cut(extent, (size_t)distr->node_count, part + 1ul) * inner;
    }
    return (owner){distr->nodes[nw_formula_latin(coordinates, cut, (uint32_t)distr->node_count)], end};
}

/* Whether the kernel chooses the node, among all or among several. */
static int left_to_kernel(const nw_distr *distr) {
    return distr->kind == NW_FIRST_TOUCH || (distr->kind == NW_BIND_ALL && !distr->single);
}

/* The owner of an item, if the array is not distributed in pages; `end` is an item. */
static owner owner_of_item(const nw_distr *distr, size_t item) {
    if (left_to_kernel(distr))
        return (owner){-1, distr->shape.items};
    if (distr->single && distr->kind != NW_SOME_UNITS)
        return (owner){distr->nodes[0], distr->shape.items};
    if (distr->kind == NW_BLOCK_EXCLUSIVE)
        return owner_of_coordinates(distr, item);
    size_t row = distr->unit == NW_COLUMNS ? item - item % (distr->units * distr->unit_items) : 0;
    owner found = owner_of_unit(distr, (item - row) / distr->unit_items);
    found.end = row + found.end * distr->unit_items;
    if (found.end > distr->shape.items)
        found.end = distr->shape.items;
    return found;
}

size_t nw_distr_granules(const nw_distr *distr) {
    return (distr->head + bytes_of(distr) + distr->granule - 1) / distr->granule;
}

/* The byte that determines a granule's node, as an offset from the first byte of the data. */
static size_t middle_byte(const nw_distr *distr, size_t granule) {
    size_t low = granule * distr->granule, high = low + distr->granule, end = distr->head + bytes_of(distr);
    if (low < distr->head)
        low = distr->head;
    if (high > end)
        high = end;
    return low + (high - low) / 2 - distr->head;
}

int nw_distr_granule_node(const nw_distr *distr, size_t granule, size_t *next) {
    if (distr->unit == NW_PAGES && !left_to_kernel(distr) && distr->kind != NW_BLOCK_EXCLUSIVE) {
        owner found = owner_of_unit(distr, granule);
        *next = found.end;
        return found.node;
    }
    owner found = owner_of_item(distr, middle_byte(distr, granule) / distr->shape.item);
    size_t end = found.end == distr->shape.items ? nw_distr_granules(distr)
                                                 : (distr->head + found.end * distr->shape.item) / distr->granule;
    *next = end > granule ? end : granule + 1;
    return found.node;
}

/* Whether a page of adopted memory also holds other memory, and so stays where it is. */
static int stays(const nw_distr *distr, size_t page) {
    size_t end = distr->head % distr->page + bytes_of(distr);
    return distr->adopted &&
           ((page == 0 && distr->head % distr->page) || (page == distr->shape.pages - 1 && end % distr->page));
}

int nw_distr_page_node(const nw_distr *distr, size_t page) {
    size_t next;
    if (!distr)
        return nw_fail(-1, "no distribution");
    if (page >= distr->shape.pages)
        return nw_fail(-1, "page %zu of %zu", page, distr->shape.pages);
    if (stays(distr, page))
        return -1;
    size_t at = distr->head - distr->head % distr->page + page * distr->page;
    return nw_distr_granule_node(distr, at / distr->granule, &next);
}

int nw_distr_item_node(const nw_distr *distr, size_t item) {
    size_t next;
    if (!distr)
        return nw_fail(-1, "no distribution");
    if (item >= distr->shape.items)
        return nw_fail(-1, "item %zu of %zu", item, distr->shape.items);
    if (distr->unit == NW_PAGES && distr->kind != NW_BLOCK_EXCLUSIVE)
        return nw_distr_granule_node(distr, (distr->head + item * distr->shape.item) / distr->granule, &next);
    return owner_of_item(distr, item).node;
}

/* The nodes of the distribution that get no page. None if the array has too many parts to look at all of them. */
static nw_mask without_page(const nw_distr *distr) {
    enum { MOST = 1 << 18 };
    nw_mask left = {{0}};
    int by_thread = distr->kind == NW_BIND_BLOCK, count = by_thread ? distr->threads : distr->node_count, missing = 0;
    for (int i = 0; i < count; i++) {
        int node = by_thread ? distr->thread_nodes[i] : distr->nodes[i];
        missing += !nw_mask_has(&left, node);
        nw_mask_add(&left, node);
    }
    size_t granule = 0, granules = nw_distr_granules(distr), looks = 0;
    for (size_t next; granule < granules && missing > 0 && looks < MOST; granule = next, looks++) {
        int node = nw_distr_granule_node(distr, granule, &next);
        missing -= nw_mask_has(&left, node);
        nw_mask_drop(&left, node);
    }
    return granule < granules ? (nw_mask){{0}} : left;
}

static void say_rounded(nw_distr *distr, size_t item) {
    char names[160];
    nw_mask left = without_page(distr);
    nw_name_nodes(names, sizeof names, &left);
    int several = strpbrk(names, ",-") != NULL;
    distr->status = NW_ROUNDED;
    if (distr->kind == NW_SOME_UNITS && names[0])
        snprintf(distr->message, sizeof distr->message, "no page has its middle in these %s: nothing was moved",
                 distr->unit == NW_COLUMNS ? "columns"
                 : distr->unit == NW_ROWS  ? "rows"
                                           : "items");
    else
        snprintf(distr->message, sizeof distr->message,
                 "rounded to pages of %zu bytes: the array's parts are finer (first at item %zu), so each page goes to "
                 "the owner of its middle byte%s%s%s; use rows of whole pages or larger blocks",
                 distr->granule, item,
                 !names[0] ? ""
                 : several ? ", and nodes "
                           : ", and node ",
                 names,
                 !names[0] ? ""
                 : several ? " get no page"
                           : " gets no page");
}

void nw_distr_judge(nw_distr *distr) {
    distr->status = NW_OK;
    if (distr->no_huge) {
        distr->status = NW_ROUNDED;
        snprintf(distr->message, sizeof distr->message, "no huge pages %s: placed by pages of %zu bytes",
                 nw_machine_now()->huge ? "in an array that is shorter than one"
                                        : "on this machine (see "
                                          "/sys/kernel/mm/transparent_hugepage/enabled)",
                 distr->page);
    }
    if (distr->unit == NW_PAGES && distr->kind != NW_BLOCK_EXCLUSIVE)
        return;
    owner before = owner_of_item(distr, 0);
    for (size_t item = before.end; item < distr->shape.items; item = before.end) {
        owner here = owner_of_item(distr, item);
        size_t at = distr->head + item * distr->shape.item;
        if (here.node != before.node && at % distr->granule != 0) {
            say_rounded(distr, item);
            return;
        }
        before = here;
    }
}
