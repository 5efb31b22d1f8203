/* Makes distributions from policies: checks arguments, fills in defaults, chooses the granule. */
#include "kernel.h"
#include "library.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int wrong(const char *format, ...) {
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    nw_fail(NW_INVALID, "%s", line);
    return 0;
}

static int no_memory(int count, const char *what) {
    nw_fail(NW_NO_MEMORY, "no memory for a list of %d %s", count, what);
    return 0;
}

static int is_prime(unsigned number) {
    for (unsigned long divisor = 2; divisor * divisor <= number; divisor++)
        if (number % divisor == 0)
            return 0;
    return number >= 2;
}

static int none_of_ours(const nw_machine *machine, int node) {
    char names[160];
    nw_mask ours = {{0}};
    for (int i = 0; i < machine->node_count; i++)
        nw_mask_add(&ours, machine->nodes[i]);
    nw_name_nodes(names, sizeof names, &ours);
    return wrong("node %d: this process may use the memory of node%s %s only", node, machine->node_count > 1 ? "s" : "",
                 names);
}

/* The list of the policy, or the nodes of this process. Nodes with weight 0 are left out. */
static int take_nodes(nw_distr *distr, const nw_policy *policy) {
    const nw_machine *machine = nw_machine_now();
    int by_thread = policy->kind == NW_BIND_BLOCK || policy->kind == NW_BLOCK_EXCLUSIVE;
    const int *list = by_thread ? machine->processors : machine->nodes;
    int count = by_thread ? machine->processor_count : machine->node_count;
    if (policy->nodes && policy->node_count < 1)
        return wrong("a list of %d nodes", policy->node_count);
    if (!policy->nodes && policy->node_count != 0 && policy->node_count != count)
        return wrong("%d nodes without a list, where this process may use %d", policy->node_count, count);
    if (policy->nodes) {
        list = policy->nodes;
        count = policy->node_count;
    }
    distr->nodes = calloc((size_t)count, sizeof(int));
    distr->until = policy->weights ? calloc((size_t)count, sizeof(uint64_t)) : NULL;
    if (!distr->nodes || (policy->weights && !distr->until))
        return no_memory(count, "nodes");
    for (int i = 0; i < count; i++) {
        if (!nw_machine_has_node(machine, list[i]))
            return none_of_ours(machine, list[i]);
        if (policy->weights && policy->weights[i] == 0)
            continue;
        int at = distr->node_count++;
        distr->nodes[at] = list[i];
        if (policy->weights)
            distr->until[at] = policy->weights[i] + (at ? distr->until[at - 1] : 0);
    }
    if (distr->node_count == 0)
        return wrong("all weights are zero");
    distr->single = 1;
    for (int i = 1; i < distr->node_count; i++)
        distr->single &= distr->nodes[i] == distr->nodes[0];
    return 1;
}

/* A thread belongs to the node that it was or would be bound to. If the policy has a list of nodes or a number of
 * threads of its own, thread t of T belongs to node t * N / T of the list. */
static int take_threads(nw_distr *distr, const nw_policy *policy) {
    int usual = nw_get_threads();
    if (policy->threads < 0 || policy->threads > NW_MOST_THREADS)
        return wrong("%d threads: must be 1 to %d, or 0 for those of nw_set_threads", policy->threads, NW_MOST_THREADS);
    distr->threads = policy->threads ? policy->threads : usual;
    distr->thread_nodes = calloc((size_t)distr->threads, sizeof(int));
    if (!distr->thread_nodes)
        return no_memory(distr->threads, "threads");
    for (int t = 0; t < distr->threads; t++) {
        int node = policy->nodes || distr->threads != usual ? -1 : nw_thread_node(t);
        if (!nw_machine_has_node(nw_machine_now(), node))
            node = distr->nodes[(long)t * distr->node_count / distr->threads];
        distr->thread_nodes[t] = node;
        distr->single &= node == distr->thread_nodes[0];
    }
    if (distr->single)
        distr->nodes[0] = distr->thread_nodes[0];
    return 1;
}

/* The unit in which the array is distributed. In one dimension, rows and columns are items. */
static void take_unit(nw_distr *distr, nw_unit unit) {
    const nw_shape *shape = &distr->shape;
    size_t row = shape->items / shape->extents[0];
    distr->unit = shape->dimensions == 1 && unit != NW_PAGES ? NW_ITEMS : unit;
    distr->unit_items = 1;
    distr->units = shape->items;
    if (distr->unit == NW_ROWS) {
        distr->unit_items = row;
        distr->units = shape->extents[0];
    } else if (distr->unit == NW_COLUMNS) {
        distr->unit_items = row / shape->extents[1];
        distr->units = shape->extents[1];
    }
}

static int check_kind(const nw_distr *distr, const nw_policy *policy) {
    int kind = (int)policy->kind;
    if (kind < NW_FIRST_TOUCH || kind > NW_BLOCKS)
        return wrong("%d is no kind of policy", kind);
    if ((int)policy->unit < NW_PAGES || (int)policy->unit > NW_ITEMS)
        return wrong("%d is no unit", (int)policy->unit);
    if ((int)policy->granule < NW_GRANULE_AUTO || (int)policy->granule > NW_GRANULE_HUGE)
        return wrong("%d is no granule", (int)policy->granule);
    if (policy->weights && kind != NW_CYCLIC && kind != NW_RANDOM && kind != NW_BLOCKS)
        return wrong("only cyclic, random and contiguous parts have weights");
    if (kind == NW_PRIME && (!is_prime(policy->prime) || policy->prime < (unsigned)distr->node_count))
        return wrong("%u is no prime number of at least %d, the number of nodes", policy->prime, distr->node_count);
    if (kind == NW_BLOCK_EXCLUSIVE && policy->dimensions >> distr->shape.dimensions)
        return wrong("dimensions %#x of an array of %d", policy->dimensions, distr->shape.dimensions);
    return 1;
}

/* Bytes of the shortest contiguous part that belongs to one node. */
static size_t shortest_part(const nw_distr *distr) {
    size_t unit = distr->unit_items * distr->shape.item, units = distr->block, parts = (size_t)distr->node_count;
    if (distr->single || distr->kind == NW_FIRST_TOUCH || distr->kind == NW_BIND_ALL)
        return SIZE_MAX;
    if (distr->kind == NW_BLOCK_EXCLUSIVE) {
        size_t inner = distr->shape.items, shortest = 0;
        for (int d = 0; d < distr->shape.dimensions; d++) {
            inner /= distr->shape.extents[d];
            if (distr->dimensions >> d & 1)
                shortest = distr->shape.extents[d] / parts * inner;
        }
        return shortest * distr->shape.item;
    }
    if (distr->kind == NW_BIND_BLOCK && distr->threads < distr->node_count)
        parts = (size_t)distr->threads;
    if (distr->kind == NW_BIND_BLOCK || distr->kind == NW_BLOCKS)
        units = distr->blocks / parts * distr->block;
    else if (distr->unit == NW_COLUMNS && distr->units % distr->block)
        units = distr->units % distr->block;
    size_t bytes;
    return __builtin_mul_overflow(units, unit, &bytes) ? SIZE_MAX : bytes;
}

/* Whether a distribution of pages can use huge pages, because each node then still gets a fair share of them. If so,
 * the length of blocks is converted to huge pages. */
static int deals_huge_pages(nw_distr *distr, size_t huge) {
    size_t pages = distr->shape.items * distr->shape.item / huge, share = (size_t)distr->node_count;
    if (distr->kind == NW_BIND_BLOCK || distr->kind == NW_BLOCKS)
        return pages >= share;
    if (distr->single || distr->block == 1)
        return pages >= 8 * share;
    size_t small = huge / distr->page;
    if (distr->block % small || (uintptr_t)distr->data % huge)
        return 0;
    distr->block /= small;
    return 1;
}

static void take_granule(nw_distr *distr, nw_granule wanted) {
    const nw_machine *machine = nw_machine_now();
    size_t huge = machine->huge;
    int pages = distr->unit == NW_PAGES && distr->kind != NW_BLOCK_EXCLUSIVE;
    distr->granule = distr->page;
    distr->no_huge = wanted == NW_GRANULE_HUGE && (huge == 0 || distr->shape.items * distr->shape.item < huge);
    if (wanted == NW_GRANULE_BASE || huge == 0 || distr->shape.items * distr->shape.item < huge)
        return;
    if (wanted == NW_GRANULE_HUGE)
        distr->granule = huge;
    else if (machine->huge_always && (pages ? deals_huge_pages(distr, huge) : shortest_part(distr) >= huge))
        distr->granule = huge;
}

static void count_blocks(nw_distr *distr) {
    distr->head = (uintptr_t)distr->data % distr->granule;
    if (distr->unit == NW_PAGES)
        distr->units = nw_distr_granules(distr);
    distr->blocks = distr->units / distr->block + (distr->units % distr->block != 0);
}

nw_distr nw_distr_coarser(const nw_distr *distr, size_t granule) {
    nw_distr coarse = *distr;
    coarse.granule = granule;
    count_blocks(&coarse);
    return coarse;
}

static nw_distr *begun(const nw_array *array) {
    nw_distr *distr = calloc(1, sizeof *distr);
    if (!distr) {
        nw_fail(NW_NO_MEMORY, "no memory for a distribution");
        return NULL;
    }
    distr->serial = array->serial;
    distr->data = array->data;
    distr->shape = array->shape;
    distr->adopted = !array->mapped;
    distr->page = distr->granule = nw_machine_now()->page;
    return distr;
}

nw_distr *nw_describe_array(const nw_array *array, const nw_policy *policy) {
    nw_distr *distr = begun(array);
    if (!distr)
        return NULL;
    distr->kind = (int)policy->kind;
    distr->block = policy->block ? policy->block : 1;
    distr->prime = policy->prime;
    distr->seed = policy->seed;
    if (!take_nodes(distr, policy) || !check_kind(distr, policy) ||
        (distr->kind == NW_BIND_BLOCK && !take_threads(distr, policy))) {
        nw_distr_free(distr);
        return NULL;
    }
    take_unit(distr, policy->unit);
    if (distr->kind == NW_BLOCK_EXCLUSIVE)
        distr->dimensions = policy->dimensions ? policy->dimensions : distr->shape.dimensions == 1 ? 1 : 3;
    count_blocks(distr);
    take_granule(distr, policy->granule);
    count_blocks(distr);
    nw_distr_judge(distr);
    return distr;
}

nw_distr *nw_describe_some(const nw_array *array, nw_unit unit, int node, size_t count, size_t first) {
    nw_policy policy = {.kind = NW_CYCLIC, .nodes = &node, .node_count = 1};
    nw_distr *distr = begun(array);
    if (!distr)
        return NULL;
    take_unit(distr, unit);
    if (!take_nodes(distr, &policy)) {
        nw_distr_free(distr);
        return NULL;
    }
    if (first > distr->units || count > distr->units - first) {
        wrong("%zu %s from %zu on, of an array that has %zu", count, unit == NW_ROWS ? "rows" : "columns", first,
              distr->units);
        nw_distr_free(distr);
        return NULL;
    }
    distr->kind = NW_SOME_UNITS;
    distr->first = first;
    distr->count = count;
    distr->block = 1;
    count_blocks(distr);
    nw_distr_judge(distr);
    return distr;
}

nw_distr *nw_describe_by(const void *pointer, const nw_policy *policy) {
    nw_array *array = nw_array_of(pointer);
    if (array && !policy)
        wrong("no policy");
    return array && policy ? nw_describe_array(array, policy) : NULL;
}

nw_distr *nw_describe(const void *array, nw_policy policy) { return nw_describe_by(array, &policy); }

void nw_distr_free(nw_distr *distr) {
    if (!distr)
        return;
    free(distr->nodes);
    free(distr->until);
    free(distr->thread_nodes);
    free(distr);
}

int nw_distr_status(const nw_distr *distr) {
    if (!distr)
        return nw_fail(NW_INVALID, "no distribution");
    return distr->status == NW_OK ? NW_OK : nw_fail(distr->status, "%s", distr->message);
}

int nw_distr_nodes(const nw_distr *distr, int *nodes, int size) {
    for (int i = 0; distr && nodes && i < distr->node_count && i < size; i++)
        nodes[i] = distr->nodes[i];
    return distr ? distr->node_count : nw_fail(NW_INVALID, "no distribution");
}

size_t nw_distr_cut(const nw_distr *distr, int dimension, int block) {
    if (!distr || dimension < 0 || dimension >= NW_DIMENSIONS || block < 0)
        return (size_t)nw_fail(0, "no such dimension or block");
    size_t extent = distr->shape.extents[dimension];
    size_t parts = distr->dimensions >> dimension & 1 ? (size_t)distr->node_count : 1;
    return nw_static_cut(extent, parts, (size_t)block < parts ? (size_t)block : parts);
}
