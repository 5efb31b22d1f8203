/* A matched program on a machine that really has several nodes: threads run where they should, and sweeps down
 * the columns and along the rows of a block-exclusive array access memory of their own node. That is checked by
 * the kernel's map of pages and the CPU that each thread runs on, not by our formulas. */
#include <sched.h>
#include <stdlib.h>

#include "check.h"
#include "nodewise_schedule.h"

static long n = 1024;
static double *u;
static int *map; /* node of each page */
static long page_items;

/* Counts one item's accesses as near or far from the calling thread. */
typedef struct tally {
    long near, far;
} tally;

static void meet(tally *t, int node, long i, long j) {
    u[i * n + j] += 1.0;
    if (map[(i * n + j) / page_items] == node)
        t->near++;
    else
        t->far++;
}

static void places(int expected_nodes) {
    CHECK(nw_processors() == expected_nodes, "%d processors", nw_processors());
    int status = nw_bind_openmp();
    CHECK(status == NW_OK, "%s", nw_last_error());
    int taken[4096] = {0};
#pragma omp parallel
#pragma omp critical
    {
        int thread = omp_get_thread_num(), threads = omp_get_num_threads(), node = nw_cpu_node(sched_getcpu()),
            list[64];
        nw_nodes(list, 64);
        CHECK(node == list[thread * nw_processors() / threads], "thread %d of %d on node %d", thread, threads, node);
        CHECK(node == nw_thread_node(thread), "thread %d: another node was promised", thread);
        taken[sched_getcpu()]++;
        CHECK(threads > nw_cpus(NULL, 0) || taken[sched_getcpu()] == 1, "CPU %d has two threads", sched_getcpu());
    }
}

/* Sweeps over the whole array twice: first with dimension 0 in parts and dimension 1 by thread, then the other way
 * round. */
static tally sweeps(const nw_distr *distr) {
    nw_cuts rows = nw_distr_cuts(distr, 0), columns = nw_distr_cuts(distr, 1);
    long near = 0, far = 0;
#pragma omp parallel reduction(+ : near, far)
    {
        int node = nw_cpu_node(sched_getcpu());
        tally t = {0, 0};
        for (int id = 0; id < rows.parts; id++) {
            nw_range part = nw_part(rows, id);
            nw_for_exclusive (j, 0, n, columns, id)
                for (long i = part.begin; i < part.end; i++)
                    meet(&t, node, i, j);
#pragma omp barrier
        }
        for (int id = 0; id < columns.parts; id++) {
            nw_range part = nw_part(columns, id);
            nw_for_exclusive (i, 0, n, rows, id)
                for (long j = part.begin; j < part.end; j++)
                    meet(&t, node, i, j);
#pragma omp barrier
        }
        near = t.near, far = t.far;
    }
    return (tally){near, far};
}

int main(int argc, char **argv) {
    int nodes = argc > 1 ? atoi(argv[1]) : 1;
    n = argc > 2 ? atol(argv[2]) : n;
    page_items = (long)(nw_page_bytes() / sizeof *u);
    places(nodes);
    u = nw_alloc_2d((size_t)n, (size_t)n, sizeof *u);
    for (long i = 0; i < n * n; i++)
        u[i] = 1.0; /* all on one node, to begin with */
    nw_distr *distr = nw_describe(u, nw_block_exclusive(0));
    int status = nw_distribute(distr);
    CHECK(nodes == 1 || status == NW_OK || status == NW_ROUNDED, "%d: %s", status, nw_last_error());
    nw_shape shape;
    nw_shape_of(u, &shape);
    map = calloc(shape.pages, sizeof *map);
    CHECK(nw_page_nodes(u, map, shape.pages) == NW_OK, "%s", nw_last_error());
    tally t = sweeps(distr);
    int right = 1;
    for (long i = 0; i < n * n; i++)
        right &= u[i] == 3.0;
    CHECK(right, "each item twice");
    CHECK(t.near + t.far == 2 * n * n && t.far * 100 <= 3 * (t.near + t.far), "%ld of %ld accesses are remote", t.far,
          t.near + t.far);
    printf("%ld of %ld accesses remote\n", t.far, t.near + t.far);
    nw_distr_free(distr);
    nw_free(u);
    free(map);
    return check_end();
}
