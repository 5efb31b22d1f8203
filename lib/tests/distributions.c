/* Compares distributions with a second, slow implementation of their definition: items are assigned one
 * after the other, with counters instead of formulas; a page's owner is that of the item in its middle. */
#define _GNU_SOURCE
#include "check.h"
#include "nodewise.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROOM (96ul << 20) /* addresses without memory, since describing an array does not touch it */
#define LISTED 16

typedef struct dealing {
    nw_policy policy;
    int count, list[LISTED];
    unsigned weights[LISTED];
    size_t extents[NW_DIMENSIONS], item, items;
    int dimensions, adopted;
    char *data;
} dealing;

static char *room;
static int nodes[LISTED], node_count;

/* The part of each of n units, in `parts` parts, the first n mod parts of which are one unit longer. */
static int *parts_of(size_t n, size_t parts) {
    int *part = malloc(n * sizeof *part);
    size_t at = 0;
    for (size_t p = 0; p < parts; p++)
        for (size_t left = n / parts + (p < n % parts); left > 0; left--)
            part[at++] = (int)p;
    return part;
}

static int *by_weights(const dealing *of, size_t n) {
    unsigned long all = 0, sum = 0;
    int *part = malloc(n * sizeof *part);
    size_t at = 0;
    for (int i = 0; i < of->count; i++)
        all += of->weights[i];
    for (int i = 0; i < of->count; i++) {
        sum += of->weights[i];
        while (at < n && (unsigned __int128)(at + 1) * all <= (unsigned __int128)n * sum)
            part[at++] = of->list[i];
    }
    return part;
}

static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static int drawn(const dealing *of, uint64_t block) {
    uint64_t all = 0, hash = mixed(of->policy.seed ^ mixed(block));
    for (int i = 0; i < of->count; i++)
        all += of->policy.weights ? of->weights[i] : 1;
    uint64_t at = (uint64_t)((unsigned __int128)hash * all >> 64);
    for (int i = 0;; i++) {
        uint64_t weight = of->policy.weights ? of->weights[i] : 1;
        if (at < weight)
            return of->list[i];
        at -= weight;
    }
}

static int thread_node(const dealing *of, int thread, int threads) {
    if (!of->policy.nodes && threads == nw_get_threads())
        return nw_thread_node(thread);
    return of->list[(long)thread * of->count / threads];
}

/* The node of each of n blocks. */
static int *deal(const dealing *of, size_t n) {
    int *node = malloc((n + 1) * sizeof *node), at = 0, round = 0, spare = 0, threads = of->policy.threads;
    unsigned left = of->weights[0], virtual_node = 0;
    if (of->policy.kind == NW_BLOCKS && of->policy.weights) {
        free(node);
        return by_weights(of, n);
    }
    if (of->policy.kind == NW_BLOCKS || of->policy.kind == NW_BIND_BLOCK) {
        threads = threads ? threads : nw_get_threads();
        int *part = parts_of(n, of->policy.kind == NW_BLOCKS ? (size_t)of->count : (size_t)threads);
        for (size_t b = 0; b < n; b++)
            node[b] = of->policy.kind == NW_BLOCKS ? of->list[part[b]] : thread_node(of, part[b], threads);
        free(part);
        return node;
    }
    for (size_t b = 0; b < n; b++) {
        switch (of->policy.kind) {
        case NW_CYCLIC:
            for (; of->policy.weights && left == 0; left = of->weights[at])
                at = (at + 1) % of->count;
            node[b] = of->list[at];
            left--;
            if (!of->policy.weights)
                at = (at + 1) % of->count;
            break;
        case NW_SKEW:
            node[b] = of->list[(at + round) % of->count];
            if (++at == of->count) {
                at = 0;
                round = (round + 1) % of->count;
            }
            break;
        case NW_PRIME:
            if (virtual_node < (unsigned)of->count)
                node[b] = of->list[virtual_node];
            else {
                node[b] = of->list[spare];
                spare = (spare + 1) % of->count;
            }
            virtual_node = (virtual_node + 1) % of->policy.prime;
            break;
        case NW_RANDOM: node[b] = drawn(of, b); break;
        case NW_BIND_ALL:
            node[b] = of->list[0];
            for (int i = 1; i < of->count; i++)
                node[b] = of->list[i] == of->list[0] ? node[b] : -1;
            break;
        default: node[b] = -1;
        }
    }
    return node;
}

static void coordinates_of(const dealing *of, size_t item, size_t at[NW_DIMENSIONS]) {
    for (int d = of->dimensions - 1; d >= 0; d--) {
        at[d] = item % of->extents[d];
        item /= of->extents[d];
    }
}

static int *deal_exclusive(const dealing *of) {
    int *node = malloc(of->items * sizeof *node), *parts[NW_DIMENSIONS];
    unsigned cut = of->policy.dimensions ? of->policy.dimensions : of->dimensions == 1 ? 1 : 3;
    for (int d = 0; d < of->dimensions; d++)
        parts[d] = parts_of(of->extents[d], (size_t)of->count);
    for (size_t item = 0; item < of->items; item++) {
        size_t at[NW_DIMENSIONS];
        int sum = 0;
        coordinates_of(of, item, at);
        for (int d = 0; d < of->dimensions; d++)
            sum += cut >> d & 1 ? parts[d][at[d]] : 0;
        node[item] = of->list[sum % of->count];
    }
    for (int d = 0; d < of->dimensions; d++)
        free(parts[d]);
    return node;
}

/* The node of each item, if the array is not distributed in pages. */
static int *deal_items(const dealing *of) {
    size_t row = of->items / of->extents[0], units = of->items, block = of->policy.block ? of->policy.block : 1;
    if (of->policy.kind == NW_BLOCK_EXCLUSIVE)
        return deal_exclusive(of);
    if (of->policy.unit == NW_ROWS)
        units = of->extents[0];
    else if (of->policy.unit == NW_COLUMNS)
        units = of->dimensions == 1 ? of->items : of->extents[1];
    int *blocks = deal(of, (units + block - 1) / block), *node = malloc(of->items * sizeof *node);
    for (size_t item = 0; item < of->items; item++) {
        size_t at[NW_DIMENSIONS], unit = item;
        coordinates_of(of, item, at);
        if (of->policy.unit == NW_ROWS)
            unit = item / row;
        else if (of->policy.unit == NW_COLUMNS)
            unit = of->dimensions == 1 ? item : at[1];
        node[item] = blocks[unit / block];
    }
    free(blocks);
    return node;
}

static const char *told(const dealing *of) {
    static char text[256];
    snprintf(text, sizeof text,
             "kind %d, unit %d, block %zu, %d nodes, %s, granule %d, %d dimensions %zu %zu %zu %zu of %zu, head %zu",
             of->policy.kind, of->policy.unit, of->policy.block, of->count, of->policy.weights ? "weights" : "equal",
             of->policy.granule, of->dimensions, of->extents[0], of->extents[1], of->extents[2], of->extents[3],
             of->item, (size_t)of->data % nw_page_bytes());
    return text;
}

/* The array's bytes within a granule, as offsets from the first byte of the data. */
static void part_of(const dealing *of, size_t granule, size_t bytes, size_t *low, size_t *high) {
    size_t head = (uintptr_t)of->data % bytes, end = head + of->items * of->item;
    *low = granule * bytes < head ? 0 : granule * bytes - head;
    *high = (granule + 1) * bytes > end ? end - head : (granule + 1) * bytes - head;
}

static int pages_are_dealt(const dealing *of) {
    return of->policy.unit == NW_PAGES && of->policy.kind != NW_BLOCK_EXCLUSIVE;
}

static void compare(const dealing *of, const nw_distr *distr, size_t granule) {
    size_t page = nw_page_bytes(), all, low, high;
    int *items = pages_are_dealt(of) ? NULL : deal_items(of);
    all = ((uintptr_t)of->data % granule + of->items * of->item + granule - 1) / granule;
    int *granules = items ? NULL : deal(of, (all + of->policy.block - 1) / of->policy.block);
    int mixed_up = 0;
    for (size_t g = 0; g < all; g++) {
        part_of(of, g, granule, &low, &high);
        int wanted = items ? items[(low + (high - low) / 2) / of->item] : granules[g / of->policy.block];
        for (size_t i = low / of->item; items && i * of->item < high; i++)
            mixed_up |= items[i] != items[low / of->item];
        uintptr_t from = (uintptr_t)of->data / page * page, at = (uintptr_t)of->data + low;
        for (uintptr_t end = (uintptr_t)of->data + high; at < end; at = at / page * page + page) {
            uintptr_t begins = at / page * page;
            int shared = of->adopted &&
                         (begins < (uintptr_t)of->data || begins + page > (uintptr_t)of->data + of->items * of->item);
            int got = nw_distr_page_node(distr, (begins - from) / page);
            CHECK(got == (shared ? -1 : wanted), "page %zu on %d, not %d: %s", (begins - from) / page, got, wanted,
                  told(of));
        }
    }
    for (size_t i = 0; i < of->items; i += 1 + of->items / 4096) {
        int wanted = items ? items[i]
                           : granules[((uintptr_t)of->data % granule + i * of->item) / granule / of->policy.block];
        CHECK(nw_distr_item_node(distr, i) == wanted, "item %zu on %d, not %d: %s", i, nw_distr_item_node(distr, i),
              wanted, told(of));
    }
    mixed_up |= of->policy.granule == NW_GRANULE_HUGE && granule != nw_huge_page_bytes();
    CHECK(nw_distr_status(distr) == (mixed_up ? NW_ROUNDED : NW_OK), "status %d: %s", nw_distr_status(distr), told(of));
    CHECK(nw_distr_page_node(distr, SIZE_MAX) == -1 && nw_distr_item_node(distr, of->items) == -1, "beyond the array");
    free(items);
    free(granules);
}

static void draw_list(dealing *of) {
    int kind = of->policy.kind, weighty = kind == NW_CYCLIC || kind == NW_RANDOM || kind == NW_BLOCKS;
    unsigned sum = 0;
    of->count = node_count;
    memcpy(of->list, nodes, sizeof nodes);
    if (check_between(0, 2) > 0) {
        of->count = (int)check_between(1, node_count + 2);
        for (int i = 0; i < of->count; i++)
            of->list[i] = nodes[check_between(0, node_count - 1)];
        of->policy.nodes = of->list;
        of->policy.node_count = of->count;
    }
    for (int i = 0; i < of->count; i++)
        sum += of->weights[i] = (unsigned)check_between(0, 4);
    of->weights[of->count - 1] += sum == 0;
    if (weighty && check_between(0, 2) == 0)
        of->policy.weights = of->weights;
}

static void draw_shape(dealing *of, size_t most) {
    of->dimensions = (int)check_between(1, NW_DIMENSIONS);
    of->items = 1;
    for (int d = 0; d < NW_DIMENSIONS; d++) {
        of->extents[d] = d < of->dimensions
                             ? (size_t)check_between(1, of->dimensions == 1 ? 3000 : 140 >> of->dimensions)
                             : 1;
        of->items *= of->extents[d];
    }
    of->item = (size_t)(check_between(0, 1) ? check_between(1, 5000) : 1l << check_between(0, 12));
    while (of->items * of->item > most)
        of->item = of->item / 2 + 1;
}

static void draw(dealing *of) {
    static const unsigned primes[] = {17, 19, 23, 101};
    *of = (dealing){.policy = nw_make_policy((nw_kind)check_between(NW_FIRST_TOUCH, NW_BLOCKS),
                                             (nw_unit)check_between(NW_PAGES, NW_ITEMS), (size_t)check_between(1, 9))};
    draw_list(of);
    draw_shape(of, ROOM / 2);
    of->policy.granule = check_between(0, 9) || !nw_huge_page_bytes() ? NW_GRANULE_BASE : NW_GRANULE_HUGE;
    of->policy.prime = primes[check_between(0, 3)];
    of->policy.seed = check_random();
    of->policy.threads = (int)check_between(0, 2) ? (int)check_between(1, 40) : 0;
    of->policy.dimensions = (unsigned)check_between(0, (1 << of->dimensions) - 1);
    if (of->policy.unit == NW_ITEMS && check_between(0, 1))
        of->policy.block = (size_t)check_between(1, 3000);
}

static void one_case(void) {
    dealing of;
    draw(&of);
    of.adopted = check_between(0, 1);
    if (of.adopted) {
        of.data = room + check_between(0, 3 << 20);
        CHECK(nw_adopt(of.data, of.item, of.dimensions, of.extents) == NW_OK, "%s", nw_last_error());
    } else
        of.data = nw_alloc(of.item, of.dimensions, of.extents);
    nw_distr *distr = nw_describe(of.data, of.policy);
    size_t granule = of.policy.granule == NW_GRANULE_HUGE && of.items * of.item >= nw_huge_page_bytes()
                         ? nw_huge_page_bytes()
                         : nw_page_bytes();
    CHECK(distr != NULL, "%s: %s", nw_last_error(), told(&of));
    if (distr)
        compare(&of, distr, granule);
    nw_distr_free(distr);
    CHECK((of.adopted ? nw_forget(of.data) : nw_free(of.data)) == NW_OK, "%s", nw_last_error());
}

/* The examples of the papers. */
static void papers(void) {
    char *array = nw_alloc_1d(16 * nw_page_bytes(), 1);
    int skew[] = {0, 1, 2, 3, 1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2}, prime[] = {0, 1, 2, 3, 0, 0, 1, 2, 3, 1};
    if (node_count != 4) {
        nw_free(array);
        return;
    }
    nw_policy of = nw_skew(NW_PAGES, 1);
    of.granule = NW_GRANULE_BASE;
    nw_distr *distr = nw_describe(array, of);
    for (size_t i = 0; i < 16; i++)
        CHECK(nw_distr_page_node(distr, i) == skew[i], "skew %zu", i);
    nw_distr_free(distr);
    of = nw_prime(NW_PAGES, 1, 5);
    of.granule = NW_GRANULE_BASE;
    distr = nw_describe(array, of);
    for (size_t i = 0; i < 10; i++)
        CHECK(nw_distr_page_node(distr, i) == prime[i], "prime %zu", i);
    nw_distr_free(distr);
    nw_free(array);
}

/* Every row and every column of blocks has each node once; cuts are those of schedule(static). */
static void latin_square(void) {
    size_t n = 64 * (size_t)node_count + 3;
    float *array = nw_alloc_2d(n, n, sizeof *array);
    nw_distr *distr = nw_describe(array, nw_block_exclusive(0));
    CHECK(nw_distr_cut(distr, 0, 0) == 0 && nw_distr_cut(distr, 0, node_count) == n, "ends");
    CHECK(nw_distr_cut(distr, 2, 1) == 1 && nw_distr_cut(distr, 0, INT_MAX) == n, "one part");
    for (int row = 0; row < node_count; row++) {
        unsigned long across = 0, down = 0;
        for (int column = 0; column < node_count; column++) {
            size_t i = nw_distr_cut(distr, 0, row), j = nw_distr_cut(distr, 1, column);
            across |= 1ul << nw_distr_item_node(distr, i * n + j);
            down |= 1ul << nw_distr_item_node(distr, j * n + i);
        }
        CHECK(across == (1ul << node_count) - 1 && down == across, "row %d: %lx, %lx", row, across, down);
    }
    nw_distr_free(distr);
    nw_free(array);
}

/* Describing terabytes takes no time, since nothing is done page by page. */
static void vast(void) {
    size_t extents[] = {1ul << 20, 1ul << 22};
    room = mmap(NULL, 1ul << 42, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return;
    CHECK(nw_adopt(room, 1, 2, extents) == NW_OK, "%s", nw_last_error());
    nw_distr *distr = nw_describe(room, nw_blocks(NW_ROWS));
    size_t pages = (1ul << 42) / nw_page_bytes();
    CHECK(nw_distr_page_node(distr, 0) == nodes[0], "first");
    CHECK(nw_distr_page_node(distr, pages - 1) == nodes[node_count - 1], "last");
    nw_distr_free(distr);
    CHECK(nw_forget(room) == NW_OK, "%s", nw_last_error());
    munmap(room, 1ul << 42);
}

int main(int count, char **arguments) {
    int cases = count > 1 ? atoi(arguments[1]) : 2000;
    node_count = nw_nodes(nodes, LISTED);
    if (node_count > LISTED - 2)
        return 1;
    vast();
    room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int i = 0; i < cases; i++)
        one_case();
    papers();
    latin_square();
    munmap(room, ROOM);
    return check_end();
}
