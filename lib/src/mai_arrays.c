/* MAI's arrays: allocation, policies, migration. */
#include "mai_state.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

int mai_grow(void **items, size_t count, size_t *room, size_t bytes) {
    if (count < *room)
        return 1;
    size_t more = *room ? 2 * *room : 16;
    void *grown = realloc(*items, more * bytes);
    if (!grown)
        return 0;
    *items = grown;
    *room = more;
    return 1;
}

/* ---- Allocation --------------------------------------------------------------------------------- */

/* Bytes that an item must at least have, and be a multiple of; 0: no such type. */
static size_t type_bytes(int type) {
    static const size_t bytes[] = {[MAI_CHAR] = sizeof(char),
                                   [MAI_INT] = sizeof(int),
                                   [MAI_FLOAT] = sizeof(float),
                                   [MAI_DOUBLE] = sizeof(double),
                                   [MAI_STRUCT] = 1};
    return type < MAI_CHAR || type > MAI_STRUCT ? 0 : bytes[type];
}

static int check(const char *function, int dimensions, const int *sizes, size_t item, int type) {
    static const char *const names[] = {"nx", "ny", "nz", "nk"};
    for (int d = 0; d < dimensions; d++)
        if (sizes[d] <= 0)
            return nw_fail(NW_INVALID, "%s: %s is %d: give at least 1", function, names[d], sizes[d]);
    size_t bytes = type_bytes(type);
    if (!bytes)
        return nw_fail(NW_INVALID, "%s: type %d is none of CHAR, INT, FLOAT, DOUBLE, STRUCT", function, type);
    if (item == 0 || item % bytes != 0)
        return nw_fail(NW_INVALID, "%s: an item of %zu bytes does not hold whole items of its type, of %zu", function,
                       item, bytes);
    return NW_OK;
}

/* Adds an array to the list; frees it if that fails. */
static int keep(mai_state *s, char *data, mai_array **array) {
    const nw_array *made = nw_array_of(data);
    void *index = nw_index(data);
    if (!made || !index || !mai_grow((void **)&s->arrays, s->array_count, &s->array_room, sizeof *s->arrays)) {
        nw_free(data);
        return nw_fail(NW_NO_MEMORY, "no memory for an array's rows");
    }
    *array = &s->arrays[s->array_count++];
    **array = (mai_array){.serial = made->serial, .data = data, .index = index, .shape = made->shape};
    return NW_OK;
}

static void *allocate(const char *function, int dimensions, const int *sizes, size_t item, int type) {
    mai_state *s = mai_enter(function);
    if (!s)
        return NULL;
    size_t extents[NW_DIMENSIONS] = {0};
    for (int d = 0; d < dimensions; d++)
        extents[d] = (size_t)sizes[d];
    int status = check(function, dimensions, sizes, item, type);
    char *data = status == NW_OK ? nw_alloc(item, dimensions, extents) : NULL;
    if (status == NW_OK && !data)
        status = NW_NO_MEMORY;
    mai_array *array = NULL;
    if (status == NW_OK)
        status = keep(s, data, &array);
    void *index = status == NW_OK ? array->index : NULL;
    mai_leave(status);
    return index;
}

void *mai_alloc_1D(int nx, size_t size_item, int type) {
    return allocate("mai_alloc_1D", 1, (int[]){nx}, size_item, type);
}

void *mai_alloc_2D(int nx, int ny, size_t size_item, int type) {
    return allocate("mai_alloc_2D", 2, (int[]){nx, ny}, size_item, type);
}

void *mai_alloc_3D(int nx, int ny, int nz, size_t size_item, int type) {
    return allocate("mai_alloc_3D", 3, (int[]){nx, ny, nz}, size_item, type);
}

void *mai_alloc_4D(int nx, int ny, int nz, int nk, size_t size_item, int type) {
    return allocate("mai_alloc_4D", 4, (int[]){nx, ny, nz, nk}, size_item, type);
}

static void drop(mai_state *s, mai_array *array) {
    free(array->moves);
    *array = s->arrays[--s->array_count];
}

/* Finds an array by its data or its index. An array that was freed by functions of nodewise.h is dropped from the list
 * when it is found. */
static mai_array *array_of(mai_state *s, const void *p) {
    for (size_t i = s->array_count; p && i-- > 0;) {
        if (s->arrays[i].data != p && s->arrays[i].index != p)
            continue;
        if (mai_array_lives(&s->arrays[i]))
            return &s->arrays[i];
        drop(s, &s->arrays[i]);
    }
    return NULL;
}

static int no_array(const char *function, const void *p) {
    return nw_fail(NW_NO_ARRAY, "%s: %p is no array of mai_alloc_*, or was freed before", function, p);
}

void mai_free_array(void *p) {
    mai_state *s = mai_enter("mai_free_array");
    if (!s)
        return;
    mai_array *array = array_of(s, p);
    int status = array ? nw_free(array->data) : no_array("mai_free_array", p);
    if (array)
        drop(s, array);
    mai_leave(status);
}

void mai_arrays_free(mai_state *s) {
    for (size_t i = 0; i < s->array_count; i++) {
        if (mai_array_lives(&s->arrays[i]))
            nw_free(s->arrays[i].data);
        free(s->arrays[i].moves);
    }
    free(s->arrays);
}

/* ---- Placement ---------------------------------------------------------------------------------- */

/* A call that places or moves pages. All are carried out by `run`, which counts the pages that moved. */
typedef struct deal {
    nw_policy policy;
    int to_threads;    /* the policy's list has a node for each thread */
    enum { PLACE, MIGRATE, SCATTER, GATHER } what;
    unsigned long node; /* SCATTER: the number of nodes */
    int count, first;
} deal;

/* The node of each thread's CPU; if that is not configured, thread t of T gets node t * N / T of those that are. */
static int *thread_nodes(const mai_config *config) {
    int *nodes = malloc(sizeof *nodes * (size_t)config->threads);
    for (int thread = 0; nodes && thread < config->threads; thread++) {
        nodes[thread] = config->nodes[(long)thread * config->node_count / config->threads];
        for (int i = 0; i < config->node_count; i++)
            if (config->nodes[i] == nw_cpu_node(config->thread_cpus[thread]))
                nodes[thread] = config->nodes[i];
    }
    return nodes;
}

static int place(const mai_config *config, mai_array *array, nw_policy policy, int to_threads) {
    policy.nodes = config->nodes;
    policy.node_count = config->node_count;
    policy.seed = array->serial; /* random policies differ between arrays, but not between runs */
    if (!to_threads)
        return nw_place(array->data, policy);
    int *nodes = thread_nodes(config);
    if (!nodes)
        return nw_fail(NW_NO_MEMORY, "no memory for a list of nodes");
    policy.nodes = nodes;
    policy.node_count = policy.threads = config->threads;
    int status = nw_place(array->data, policy);
    free(nodes);
    return status;
}

static int carry_out(const mai_config *config, mai_array *array, deal d) {
    switch (d.what) {
    case MIGRATE:
        return (d.policy.unit == NW_ROWS ? nw_migrate_rows : nw_migrate_columns)(array->data, (int)d.node,
                                                                                 (size_t)d.count, (size_t)d.first);
    case SCATTER: return nw_scatter(array->data, config->nodes, (int)d.node);
    case GATHER: return nw_gather(array->data, (int)d.node);
    default: return place(config, array, d.policy, d.to_threads);
    }
}

static int check_deal(const char *function, const mai_config *config, const deal *d) {
    if (d->what != PLACE && d->what != SCATTER && d->node > INT_MAX)
        return nw_fail(NW_INVALID, "%s: there is no node %lu", function, d->node);
    if (d->what == SCATTER && (d->node < 1 || d->node > (unsigned long)config->node_count))
        return nw_fail(NW_INVALID, "%s: %lu nodes: %d are configured", function, d->node, config->node_count);
    if (d->what == MIGRATE && (d->count < 1 || d->first < 0))
        return nw_fail(NW_INVALID, "%s: %d from %d: give at least 1, from 0 on", function, d->count, d->first);
    return NW_OK;
}

static void run(const char *function, void *p, deal d) {
    mai_state *s = mai_enter(function);
    if (!s)
        return;
    mai_array *array = array_of(s, p);
    int status = array ? check_deal(function, &s->config, &d) : no_array(function, p);
    if (status == NW_OK) {
        int *before = mai_pages_before(array);
        double start = nw_seconds();
        status = carry_out(&s->config, array, d);
        mai_pages_after(s, array, before, nw_seconds() - start);
    }
    mai_leave(status);
}

/* Places an array in blocks of `block` units; refuses a `block` that is not positive, and a negative `prime`. */
static void deal_blocks(const char *function, void *p, nw_policy policy, int block, int prime) {
    mai_state *s = block < 1 || prime < 0 ? mai_enter(function) : NULL;
    if (s) {
        mai_leave(block < 1 ? nw_fail(NW_INVALID, "%s: blocks of %d: give at least 1", function, block)
                            : nw_fail(NW_INVALID, "%s: %d is no prime", function, prime));
        return;
    }
    policy.block = (size_t)block;
    policy.prime = (unsigned)prime;
    run(function, p, (deal){.policy = policy});
}

/* ---- Policies ----------------------------------------------------------------------------------- */

void mai_cyclic(void *p) { deal_blocks("mai_cyclic", p, nw_cyclic(NW_PAGES, 1), 1, 0); }
void mai_skew_mapp(void *p) { deal_blocks("mai_skew_mapp", p, nw_skew(NW_PAGES, 1), 1, 0); }
void mai_prime_mapp(void *p, int prime) { deal_blocks("mai_prime_mapp", p, nw_prime(NW_PAGES, 1, 0), 1, prime); }

void mai_cyclic_rows(void *p, int nr) { deal_blocks("mai_cyclic_rows", p, nw_cyclic(NW_ROWS, 1), nr, 0); }
void mai_skew_mapp_rows(void *p, int nr) { deal_blocks("mai_skew_mapp_rows", p, nw_skew(NW_ROWS, 1), nr, 0); }
void mai_prime_mapp_rows(void *p, int prime, int nr) {
    deal_blocks("mai_prime_mapp_rows", p, nw_prime(NW_ROWS, 1, 0), nr, prime);
}

void mai_cyclic_columns(void *p, int nc) { deal_blocks("mai_cyclic_columns", p, nw_cyclic(NW_COLUMNS, 1), nc, 0); }
void mai_skew_mapp_columns(void *p, int nc) { deal_blocks("mai_skew_mapp_columns", p, nw_skew(NW_COLUMNS, 1), nc, 0); }
void mai_prime_mapp_columns(void *p, int prime, int nc) {
    deal_blocks("mai_prime_mapp_columns", p, nw_prime(NW_COLUMNS, 1, 0), nc, prime);
}

void mai_bind_all(void *p) { run("mai_bind_all", p, (deal){.policy = nw_bind_all()}); }
void mai_bind_rows(void *p) { run("mai_bind_rows", p, (deal){.policy = nw_bind(NW_ROWS), .to_threads = 1}); }
void mai_bind_columns(void *p) { run("mai_bind_columns", p, (deal){.policy = nw_bind(NW_COLUMNS), .to_threads = 1}); }

void mai_random(void *p) { deal_blocks("mai_random", p, nw_random(NW_PAGES, 1), 1, 0); }
void mai_random_rows(void *p, int nr) { deal_blocks("mai_random_rows", p, nw_random(NW_ROWS, 1), nr, 0); }
void mai_random_columns(void *p, int nc) { deal_blocks("mai_random_columns", p, nw_random(NW_COLUMNS, 1), nc, 0); }

/* ---- Migration ---------------------------------------------------------------------------------- */

void mai_migrate_rows(void *p, unsigned long node, int nr, int start) {
    run("mai_migrate_rows", p,
        (deal){.policy.unit = NW_ROWS, .what = MIGRATE, .node = node, .count = nr, .first = start});
}

void mai_migrate_columns(void *p, unsigned long node, int nc, int start) {
    run("mai_migrate_columns", p,
        (deal){.policy.unit = NW_COLUMNS, .what = MIGRATE, .node = node, .count = nc, .first = start});
}

void mai_migrate_scatter(void *p, unsigned long nodes) {
    run("mai_migrate_scatter", p, (deal){.what = SCATTER, .node = nodes});
}

void mai_migrate_gather(void *p, unsigned long node) {
    run("mai_migrate_gather", p, (deal){.what = GATHER, .node = node});
}
