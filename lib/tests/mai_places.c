/* Each policy and migration of MAI puts each page where a definition written out here says, in a new array
 * and in a touched one; the content stays; statistics count what moved. Runs on any machine, but checks
 * little on one with a single node. The argument is a configuration file. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "mai_check.h"

static int node_count, threads; /* of the configuration */
static int own_cpu[4096], own_node[4096]; /* of each thread */
static unsigned long *nodes;
static size_t page;

/* Whether the node is in MAI's list. */
static int configured(int node) {
    for (int i = 0; i < node_count; i++)
        if ((unsigned long)node == nodes[i])
            return 1;
    return 0;
}

/* ---- Definitions -------------------------------------------------------------------------------- */

typedef struct shape {
    int dimensions, extents[4];
    size_t item, items, pages;
} shape;

typedef enum unit { PAGES, ROWS, COLUMNS } unit;

/* The item that holds the middle byte of a page, or of the part of it that belongs to the array. */
static size_t middle(const shape *s, size_t number) {
    size_t bytes = s->items * s->item, from = number * page, to = from + page < bytes ? from + page : bytes;
    return (from + to) / 2 / s->item;
}

static size_t units(const shape *s, unit of) {
    return of == PAGES ? s->pages : of == ROWS ? (size_t)s->extents[0] : (size_t)s->extents[1];
}

/* Row and column of the item, by counting back from the last dimension. */
static size_t unit_at(const shape *s, unit of, size_t number) {
    size_t item = middle(s, number), at[4] = {0};
    for (int d = s->dimensions - 1; d >= 0; d--) {
        at[d] = item % (size_t)s->extents[d];
        item /= (size_t)s->extents[d];
    }
    return of == PAGES ? number : of == ROWS ? at[0] : at[1];
}

/* The number of the thread that gets iteration `i` of `n` by schedule(static), found by counting. */
static int dealt_to(size_t i, size_t n, int among) {
    size_t end = 0;
    for (int t = 0;; t++) {
        end += n / (size_t)among + ((size_t)t < n % (size_t)among);
        if (i < end)
            return t;
    }
}

typedef enum kind { CYCLIC, SKEW, PRIME, BIND } kind;

static int prime_node(size_t block, size_t prime) {
    size_t beyond = 0;
    for (size_t b = 0; b < block; b++)
        beyond += b % prime >= (size_t)node_count;
    return (int)nodes[block % prime < (size_t)node_count ? block % prime : beyond % (size_t)node_count];
}

static int wanted(const shape *s, kind k, unit of, size_t block, size_t prime, size_t number) {
    size_t n = (size_t)node_count, at = unit_at(s, of, number), b = at / block;
    switch (k) {
    case CYCLIC: return (int)nodes[b % n];
    case SKEW: return (int)nodes[(b % n + b / n) % n];
    case PRIME: return prime_node(b, prime);
    default: return own_node[dealt_to(at, units(s, of), threads)];
    }
}

/* ---- Arrays ------------------------------------------------------------------------------------- */

static const shape shapes[] = {
    {2, {96, 1024, 1, 1}, sizeof(double), 0, 0},
    {2, {300, 77, 1, 1}, sizeof(float), 0, 0},
    {3, {8, 16, 512, 1}, sizeof(double), 0, 0},
    {4, {5, 6, 7, 100}, 3 * sizeof(double), 0, 0},
};

static void *allocate(shape *s) {
    const int *n = s->extents;
    s->items = (size_t)n[0] * (size_t)n[1] * (size_t)n[2] * (size_t)n[3];
    s->pages = (s->items * s->item + page - 1) / page;
    switch (s->dimensions) {
    case 2: return mai_alloc_2D(n[0], n[1], s->item, STRUCT);
    case 3: return mai_alloc_3D(n[0], n[1], n[2], s->item, DOUBLE);
    default: return mai_alloc_4D(n[0], n[1], n[2], n[3], s->item, DOUBLE);
    }
}

static unsigned char *bytes_of(void *a, const shape *s) {
    for (int d = 1; d < s->dimensions; d++)
        a = *(void **)a;
    return a;
}

static void fill(unsigned char *bytes, const shape *s) {
    for (size_t i = 0; i < s->items * s->item; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 4096);
}

static int filled(const unsigned char *bytes, const shape *s) {
    for (size_t i = 0; i < s->items * s->item; i++)
        if (bytes[i] != (unsigned char)(i * 7 + i / 4096))
            return 0;
    return 1;
}

static int *found_nodes(void *a, const shape *s) {
    int *found = malloc(s->pages * sizeof *found);
    CHECK(nw_page_nodes(a, found, s->pages) >= 0, "%s", nw_last_error());
    return found;
}

/* ---- Policies ----------------------------------------------------------------------------------- */

typedef struct call {
    const char *name;
    void (*place)(void *);
    kind k;
    unit of;
    size_t block, prime;
} call;

static void skew_rows(void *p) { mai_skew_mapp_rows(p, 3); }
static void skew_columns(void *p) { mai_skew_mapp_columns(p, 4); }
static void cyclic_rows(void *p) { mai_cyclic_rows(p, 2); }
static void cyclic_columns(void *p) { mai_cyclic_columns(p, 3); }
static void prime(void *p) { mai_prime_mapp(p, 11); }
static void prime_rows(void *p) { mai_prime_mapp_rows(p, 7, 2); }
static void prime_columns(void *p) { mai_prime_mapp_columns(p, 5, 6); }

static const call calls[] = {
    {"mai_cyclic", mai_cyclic, CYCLIC, PAGES, 1, 0},
    {"mai_skew_mapp", mai_skew_mapp, SKEW, PAGES, 1, 0},
    {"mai_prime_mapp", prime, PRIME, PAGES, 1, 11},
    {"mai_cyclic_rows", cyclic_rows, CYCLIC, ROWS, 2, 0},
    {"mai_skew_mapp_rows", skew_rows, SKEW, ROWS, 3, 0},
    {"mai_prime_mapp_rows", prime_rows, PRIME, ROWS, 2, 7},
    {"mai_cyclic_columns", cyclic_columns, CYCLIC, COLUMNS, 3, 0},
    {"mai_skew_mapp_columns", skew_columns, SKEW, COLUMNS, 4, 0},
    {"mai_prime_mapp_columns", prime_columns, PRIME, COLUMNS, 6, 5},
    {"mai_bind_rows", mai_bind_rows, BIND, ROWS, 1, 0},
    {"mai_bind_columns", mai_bind_columns, BIND, COLUMNS, 1, 0},
};

static void compare(const char *when, const call *c, void *a, const shape *s) {
    int *found = found_nodes(a, s);
    size_t wrong = 0, first = 0;
    for (size_t p = s->pages; p-- > 0;)
        if (found[p] != wanted(s, c->k, c->of, c->block, c->prime, p)) {
            wrong++;
            first = p;
        }
    CHECK(wrong == 0, "%s, %s, %d dimensions: %zu of %zu pages elsewhere, page %zu on %d, not on %d", c->name, when,
          s->dimensions, wrong, s->pages, first, found[first], wanted(s, c->k, c->of, c->block, c->prime, first));
    free(found);
}

static void policies(shape s) {
    void *touched = allocate(&s);
    unsigned char *bytes = bytes_of(touched, &s);
    fill(bytes, &s);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        void *fresh = allocate(&s);
        calls[i].place(fresh);
        ACCEPTED();
        fill(bytes_of(fresh, &s), &s);
        compare("fresh", &calls[i], fresh, &s);
        mai_free_array(fresh);
        calls[i].place(bytes); /* the array is named by the address of its first item */
        ACCEPTED();
        compare("touched", &calls[i], touched, &s);
        CHECK(filled(bytes, &s), "%s changed the content", calls[i].name);
    }
    mai_free_array(touched);
}

/* Random is uniform, the same each time, and keeps blocks together; bind_all stays on the nodes. */
static void random_and_bind_all(void) {
    shape s = {2, {256, 1024, 1, 1}, sizeof(double), 0, 0};
    void *a = allocate(&s);
    mai_bind_all(a);
    ACCEPTED();
    fill(bytes_of(a, &s), &s);
    int *found = found_nodes(a, &s), outside = 0;
    for (size_t p = 0; p < s.pages; p++)
        outside += !configured(found[p]);
    CHECK(!outside, "mai_bind_all: %d pages outside of the nodes", outside);
    free(found);
    mai_random(a);
    ACCEPTED();
    found = found_nodes(a, &s);
    for (int i = 0; i < node_count; i++) {
        size_t here = 0;
        for (size_t p = 0; p < s.pages; p++)
            here += (unsigned long)found[p] == nodes[i];
        CHECK(here > s.pages / (size_t)node_count / 2 && here < s.pages / (size_t)node_count * 2,
              "mai_random: %zu of %zu pages on one of %d nodes", here, s.pages, node_count);
    }
    mai_cyclic(a);
    mai_random(a);
    int *again = found_nodes(a, &s);
    CHECK(!memcmp(found, again, s.pages * sizeof *found), "mai_random: not the same again");
    free(again);
    void *other = allocate(&s);
    mai_random(other);
    fill(bytes_of(other, &s), &s);
    int *elsewhere = found_nodes(other, &s);
    CHECK(node_count == 1 || memcmp(found, elsewhere, s.pages * sizeof *found),
          "mai_random: two arrays are placed alike");
    free(elsewhere);
    mai_free_array(other);
    free(found);
    mai_random_rows(a, 2); /* four pages */
    ACCEPTED();
    found = found_nodes(a, &s);
    size_t torn = 0;
    for (size_t p = 0; p < s.pages; p++)
        torn += found[p] != found[p / 4 * 4];
    CHECK(!torn, "mai_random_rows: %zu pages apart from their block", torn);
    free(found);
    mai_random_columns(a, 512); /* every other page */
    ACCEPTED();
    found = found_nodes(a, &s);
    for (size_t p = torn = 0; p < s.pages; p++)
        torn += found[p] != found[p % 2];
    CHECK(!torn, "mai_random_columns: %zu pages apart from their block", torn);
    free(found);
    mai_free_array(a);
}

/* ---- Migration ---------------------------------------------------------------------------------- */

/* After a migration, pages of the units lie on the node, the others where they were, and those that
 * moved are counted. */
static void migrated(const char *name, void *a, const shape *s, unit of, size_t first, size_t count, int node,
                     const int *before, int moves_before) {
    int *now = found_nodes(a, s);
    size_t wrong = 0;
    int moved = 0;
    for (size_t p = 0; p < s->pages; p++) {
        size_t at = unit_at(s, of, p);
        wrong += now[p] != (at >= first && at < first + count ? node : before[p]);
        moved += now[p] != before[p];
    }
    CHECK(wrong == 0, "%s: %zu pages elsewhere", name, wrong);
    CHECK(mai_number_page_migration(NULL, 0) - moves_before == moved, "%s: %d moved, counted %d", name, moved,
          mai_number_page_migration(NULL, 0) - moves_before);
    free(now);
}

static void migrations(void) {
    shape s = shapes[0];
    void *a = allocate(&s);
    unsigned char *bytes = bytes_of(a, &s);
    mai_bind_rows(a);
    fill(bytes, &s);
    for (int i = 0; i < node_count; i++) {
        int node = (int)nodes[i], moves = mai_number_page_migration(NULL, 0), *before = found_nodes(a, &s);
        mai_migrate_rows(a, nodes[i], 10, 5);
        ACCEPTED();
        migrated("mai_migrate_rows", a, &s, ROWS, 5, 10, node, before, moves);
        free(before);
        before = found_nodes(a, &s);
        moves = mai_number_page_migration(NULL, 0);
        mai_migrate_columns(a, nodes[i], 512, 512);
        ACCEPTED();
        migrated("mai_migrate_columns", a, &s, COLUMNS, 512, 512, node, before, moves);
        free(before);
        before = found_nodes(a, &s);
        moves = mai_number_page_migration(NULL, 0);
        mai_migrate_gather(a, nodes[i]);
        ACCEPTED();
        migrated("mai_migrate_gather", a, &s, PAGES, 0, s.pages, node, before, moves);
        free(before);
        mai_migrate_scatter(a, (unsigned long)i + 1);
        ACCEPTED();
        before = found_nodes(a, &s);
        size_t wrong = 0;
        for (size_t p = 0; p < s.pages; p++)
            wrong += before[p] != (int)nodes[dealt_to(p, s.pages, i + 1)];
        CHECK(wrong == 0, "mai_migrate_scatter over %d: %zu pages elsewhere", i + 1, wrong);
        free(before);
    }
    CHECK(filled(bytes, &s), "migration changed the content");
    mai_free_array(a);
}

/* What a function prints. */
static char *printed(void (*print)(void)) {
    FILE *terminal = stdout;
    char *text;
    size_t size;
    stdout = open_memstream(&text, &size);
    print();
    fclose(stdout);
    stdout = terminal;
    return text;
}

static unsigned long addresses[3];
static void print_addresses(void) { mai_print_pagenodes(addresses, 3); }

/* The count for an address is that of its page. */
static void page_statistics(void) {
    shape s = shapes[0];
    void *a = allocate(&s);
    unsigned char *bytes = bytes_of(a, &s);
    fill(bytes, &s);
    mai_migrate_gather(a, nodes[0]);
    unsigned long last = (unsigned long)bytes + s.items * s.item - 1, list[] = {(unsigned long)bytes, last};
    int first = mai_number_page_migration(list, 1), before = mai_number_page_migration(list, 2), more = node_count > 1;
    double seconds = mai_get_time_pmigration();
    mai_migrate_rows(a, nodes[node_count - 1], 1, 0); /* the first and not the last */
    CHECK(mai_number_page_migration(list, 1) - first == (more ? 1 : 0), "the first page's");
    CHECK(mai_number_page_migration(list, 2) - before == (more ? 1 : 0), "the last page's");
    CHECK(more ? mai_get_time_pmigration() > seconds : mai_get_time_pmigration() == 0, "time is counted");
    mai_migrate_gather(a, nodes[0]);
    CHECK(mai_number_page_migration(list, 2) - before == (more ? 2 : 0), "there and back");
    char *fresh = mai_alloc_1D(4 * 4096, 1, CHAR), expected[200];
    addresses[0] = (unsigned long)bytes + 5;
    addresses[1] = last;
    addresses[2] = (unsigned long)fresh;
    snprintf(expected, sizeof expected, "page %#lx: node %lu\npage %#lx: node %lu\npage %#lx: not touched\n",
             (unsigned long)bytes, nodes[0], last / page * page, nodes[0], addresses[2]);
    char *text = printed(print_addresses);
    CHECK(!strncmp(text, expected, strlen(expected) - strlen("not touched\n")), "printed\n%snot\n%s", text, expected);
    free(text);
    mai_free_array(fresh);
    mai_free_array(a);
}

/* ---- Threads ------------------------------------------------------------------------------------ */

/* Finds the CPU of each thread number, and so its node, by binding the calling thread by that number. Where the node
 * is not configured, the thread belongs to its share of those that are. */
static void find_seats(void) {
    cpu_set_t all, mask;
    sched_getaffinity(0, sizeof all, &all);
    for (int t = 0; t < threads && t < 4096; t++) {
        bind_thread_posix(t);
        ACCEPTED();
        sched_getaffinity(0, sizeof mask, &mask);
        CHECK(CPU_COUNT(&mask) == 1 && CPU_ISSET(sched_getcpu(), &mask), "thread %d is bound to one CPU", t);
        own_cpu[t] = sched_getcpu();
        own_node[t] = nw_cpu_node(own_cpu[t]);
        if (!configured(own_node[t]))
            own_node[t] = (int)nodes[t * node_count / threads];
    }
    sched_setaffinity(0, sizeof all, &all);
}

static void thread_moves(void) {
    unsigned long *cpus = mai_get_cpus_id();
    int count = mai_get_num_cpu();
    unsigned self = 0;
    bind_thread_omp(0);
    int before = mai_number_thread_migration(&self, 1), moves = 0, cpu = sched_getcpu();
    for (int i = 0; i < count; i++) {
        mai_migrate_thread(i % 2 ? gettid() : 0, cpus[i]);
        ACCEPTED();
        CHECK(sched_getcpu() == (int)cpus[i], "moved to CPU %lu", cpus[i]);
        moves += cpu != (int)cpus[i];
        cpu = (int)cpus[i];
    }
    CHECK(mai_number_thread_migration(&self, 1) - before == moves, "%d moves", moves);
    CHECK(mai_number_thread_migration(NULL, 0) >= moves, "all moves");
    CHECK((mai_get_time_tmigration() > 0) == (mai_number_thread_migration(NULL, 0) > 0), "moves take time");
    char expected[100], *text = printed(mai_print_threadcpus);
    snprintf(expected, sizeof expected, "thread 0: tid %d, cpu %d, node %d\n", gettid(), cpu, nw_cpu_node(cpu));
    CHECK(!strcmp(text, expected), "printed `%s`, not `%s`", text, expected);
    free(text);
}

static pthread_barrier_t gate;
static void *wait_twice(void *unused) {
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    return unused;
}

/* bind_threads: the main thread is number 0, the others follow in the order they were started. */
static void all_threads(void) {
    enum { MORE = 3 };
    pthread_t others[MORE + 1] = {pthread_self()};
    pthread_barrier_init(&gate, NULL, MORE + 1);
    for (int i = 1; i <= MORE; i++)
        pthread_create(&others[i], NULL, wait_twice, NULL);
    pthread_barrier_wait(&gate);
    bind_threads();
    ACCEPTED();
    for (int i = 0; i <= MORE; i++) {
        cpu_set_t mask;
        pthread_getaffinity_np(others[i], sizeof mask, &mask);
        int cpu = 0;
        while (!CPU_ISSET(cpu, &mask))
            cpu++;
        CHECK(CPU_COUNT(&mask) == 1 && cpu == own_cpu[i % threads], "thread %d is on CPU %d, not %d", i, cpu,
              own_cpu[i % threads]);
    }
    pthread_barrier_wait(&gate);
    for (int i = 1; i <= MORE; i++)
        pthread_join(others[i], NULL);
    pthread_barrier_destroy(&gate);
}

int main(int argc, char **argv) {
    mai_init(argc > 1 ? argv[1] : NULL);
    CHECK(mai_last_status() == NW_OK, "mai_init: %s", nw_last_error());
    page = nw_page_bytes();
    nodes = mai_get_nodes_id();
    node_count = mai_get_num_nodes();
    threads = mai_get_num_threads();
    find_seats();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        policies(shapes[i]);
    random_and_bind_all();
    migrations();
    page_statistics();
    thread_moves();
    all_threads();
    mai_final();
    return check_end();
}
