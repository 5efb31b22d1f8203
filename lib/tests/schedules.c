/* The properties of nodewise_schedule.h: each iteration exactly once whatever the bounds, threads and nodes;
 * static is OpenMP's; block-exclusive meets the owner of every item. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "nodewise_schedule.h"

enum { CASES = 4000, LONGEST = 300 };

/* Where the iterations of one case are counted; `from` may be negative. */
static unsigned char counts[LONGEST];

static int once(long from, long to) {
    for (long i = 0; i < to - from; i++)
        if (counts[i] != 1)
            return 0;
    return 1;
}

static long random_bounds(long *to) {
    long from = check_between(-200, 200);
    *to = from + check_between(-3, LONGEST);
    memset(counts, 0, sizeof counts);
    return from;
}

static void static_and_inverse_cover_once_and_mirror(void) {
    for (int c = 0; c < CASES; c++) {
        long to, from = random_bounds(&to);
        int threads = (int)check_between(1, 40), inside = 1;
        for (int t = 0; t < threads; t++) {
            nw_range plain = nw_static(from, to, t, threads);
            nw_range mirror = nw_static_inverse(from, to, threads - 1 - t, threads);
            CHECK(plain.begin == mirror.begin && plain.end == mirror.end, "[%ld, %ld) of %d", from, to, threads);
            for (long i = plain.begin; i < plain.end; i++)
                if (i >= from && i < to)
                    counts[i - from]++;
                else
                    inside = 0;
        }
        CHECK(inside && once(from, to), "static [%ld, %ld) over %d", from, to, threads);
    }
}

static void any_bounds_a_long_holds(void) {
    unsigned long sum = 0;
    for (int t = 0; t < 7; t++) {
        nw_range r = nw_static(LONG_MIN, LONG_MAX, t, 7);
        sum += (unsigned long)r.end - (unsigned long)r.begin;
        CHECK(r.begin == (t ? nw_static(LONG_MIN, LONG_MAX, t - 1, 7).end : LONG_MIN), "part %d", t);
    }
    CHECK(sum == ULONG_MAX, "%lu", sum);
    nw_range before = nw_static_inverse(LONG_MIN, LONG_MAX, INT_MIN, 7);
    CHECK(before.begin == before.end, "no thread INT_MIN");
    nw_range none = nw_static(LONG_MAX, LONG_MIN, 0, 3);
    CHECK(none.begin == none.end, "end before begin is empty");
}

static void what_does_not_exist_is_empty(void) {
    nw_cuts cuts = {0, 100, 4}, nothing = {0, 100, 0};
    CHECK(nw_part(cuts, 4).begin == nw_part(cuts, 4).end && nw_part(cuts, -1).begin == nw_part(cuts, -1).end,
          "parts 4 and -1 of 4");
    CHECK(nw_part(nothing, 0).begin == nw_part(nothing, 0).end, "no parts");
    nw_exclusive e = nw_exclusive_begin(0, 100, nothing, 0, 0, 4);
    CHECK(!nw_exclusive_next(&e), "no nodes");
    e = nw_exclusive_begin(0, 100, cuts, 0, 4, 4);
    CHECK(!nw_exclusive_next(&e), "thread 4 of 4");
}

/* The blocks of a dimension, swept by a loop with other bounds than the dimension has. */
static void exclusive_covers_once(void) {
    for (int c = 0; c < CASES; c++) {
        long to, from = random_bounds(&to);
        nw_cuts cuts = {from - check_between(-20, 5), to + check_between(-20, 5), (int)check_between(1, 17)};
        int threads = (int)check_between(1, 40), id = (int)check_between(-40, 40);
        long least = from > cuts.begin ? from : cuts.begin, most = to < cuts.end ? to : cuts.end;
        for (int t = 0; t < threads; t++) {
            nw_exclusive e = nw_exclusive_begin(from, to, cuts, id, t, threads);
            while (nw_exclusive_next(&e))
                for (long i = e.begin; i < e.end; i++)
                    if (i >= least && i < most)
                        counts[i - least]++;
                    else
                        CHECK(0, "iteration %ld outside", i);
        }
        CHECK(once(least, most), "[%ld, %ld) cut [%ld, %ld) by %d over %d threads, id %d", from, to, cuts.begin,
              cuts.end, cuts.parts, threads, id);
    }
}

/* Likewise for more iterations than fit a long, checked by whether the ranges adjoin. */
static void exclusive_covers_any_bounds(void) {
    for (int nodes = 1; nodes < 6; nodes++)
        for (int threads = 1; threads < 12; threads++) {
            nw_cuts cuts = {LONG_MIN, LONG_MAX, nodes};
            unsigned long sum = 0;
            int ranges = 0, meet = 1;
            nw_range all[16]; /* in ascending order */
            for (int t = 0; t < threads; t++) {
                nw_exclusive e = nw_exclusive_begin(LONG_MIN, LONG_MAX, cuts, INT_MIN, t, threads);
                for (; nw_exclusive_next(&e); ranges++) {
                    int at = ranges;
                    for (; at > 0 && all[at - 1].begin > e.begin; at--)
                        all[at] = all[at - 1];
                    all[at] = (nw_range){e.begin, e.end};
                    sum += (unsigned long)e.end - (unsigned long)e.begin;
                }
            }
            for (int r = 0; r < ranges; r++)
                meet &= all[r].begin == (r ? all[r - 1].end : LONG_MIN);
            CHECK(meet && sum == ULONG_MAX && all[ranges - 1].end == LONG_MAX, "%d nodes, %d threads", nodes, threads);
        }
    nw_cuts one = {LONG_MIN, LONG_MAX, 1}, many = {0, LONG_MAX, INT_MAX};
    nw_exclusive e = nw_exclusive_begin(LONG_MAX - 3, LONG_MAX, one, 0, 1, 2);
    CHECK(nw_exclusive_next(&e) && e.begin == LONG_MAX - 3 && e.end == LONG_MAX, "the last iterations");
    e = nw_exclusive_begin(0, LONG_MAX, many, INT_MAX, INT_MAX - 1, INT_MAX);
    CHECK(nw_exclusive_next(&e) && e.end == LONG_MAX && !nw_exclusive_next(&e),
          "as many nodes and threads as there can be");
    e = nw_exclusive_begin(0, LONG_MAX, many, 0, INT_MAX, INT_MAX);
    CHECK(!nw_exclusive_next(&e), "one thread too many");
}

/* A loop of a signal handler that has interrupted another loop while that stores its share. */
static void a_share_half_kept_is_nobodys(void) {
    nw_cuts cuts = {0, 100, 4}, others = {0, 64, 2};
    nw_exclusive_memo memo = {0};
    nw_exclusive mine = nw_exclusive_move(&memo, cuts, 1, 8);
    CHECK(memo.thread == 1 && memo.threads == 8 && memo.share.each == mine.each, "kept");
    memo.threads = -1;
    CHECK(nw_exclusive_move(&memo, others, 3, 4).each == 32 && memo.share.each == 25 && memo.threads < 0, "left alone");
}

/* With N nodes or more threads, an iteration goes to a thread of the node that owns its block. */
static void exclusive_runs_on_the_owner(void) {
    for (int c = 0; c < CASES; c++) {
        long to, from = random_bounds(&to);
        int nodes = (int)check_between(1, 17), threads = (int)check_between(nodes, 40);
        int id = (int)check_between(0, 2 * nodes);
        nw_cuts cuts = {from, to, nodes};
        for (int t = 0; t < threads; t++) {
            int node = (int)((long)t * nodes / threads), block = ((node - id) % nodes + nodes) % nodes;
            nw_range whole = nw_part(cuts, block);
            nw_exclusive e = nw_exclusive_begin(from, to, cuts, id, t, threads);
            while (nw_exclusive_next(&e))
                CHECK(e.begin >= e.end || (e.begin >= whole.begin && e.end <= whole.end), "thread %d of %d", t,
                      threads);
        }
    }
}

static void two_processors_swap_halves(void) {
    /* Figure 11: eight threads, two processors; in phase 2 T0-T3 have what T4-T7 had. */
    nw_cuts cuts = {0, 64, 2};
    for (int t = 0; t < 8; t++) {
        nw_exclusive first = nw_exclusive_begin(0, 64, cuts, 0, t, 8);
        nw_exclusive second = nw_exclusive_begin(0, 64, cuts, 1, t, 8);
        nw_exclusive_next(&first), nw_exclusive_next(&second);
        CHECK(first.begin == 8 * t && first.end == 8 * t + 8, "phase 1, T%d: %ld", t, first.begin);
        CHECK(second.begin == 8 * ((t + 4) % 8), "phase 2, T%d: %ld", t, second.begin);
    }
}

/* ---- Against real distributions: every item, both views ------------------------------------------- */

static int thread_counts_for(int node, int thread, int threads, int nodes) {
    return threads >= nodes ? (int)((long)thread * nodes / threads) == node
                            : (int)((long)node * threads / nodes) == thread;
}

/* Visits the whole array as sweeps over dimension `view` do: the loop over that dimension is the parallel one,
 * and the blocks of the other dimensions determine the id. */
static void sweep(const nw_distr *distr, const size_t *extents, int dimensions, unsigned cut, int view, int threads,
                  unsigned char *seen, const int *list) {
    nw_cuts cuts[4];
    for (int d = 0; d < dimensions; d++)
        cuts[d] = nw_distr_cuts(distr, d);
    size_t items = 1;
    for (int d = 0; d < dimensions; d++)
        items *= extents[d];
    memset(seen, 0, items);
    for (int t = 0; t < threads; t++)
        for (size_t item = 0; item < items; item++) {
            long at[4];
            size_t rest = item;
            for (int d = dimensions; d-- > 0; rest /= extents[d])
                at[d] = (long)(rest % extents[d]);
            int id = 0;
            for (int d = 0; d < dimensions; d++)
                if (d != view && cut & 1u << d)
                    for (int p = 0; p < cuts[d].parts; p++)
                        id += nw_part(cuts[d], p).begin <= at[d] && at[d] < nw_part(cuts[d], p).end ? p : 0;
            nw_exclusive e = nw_exclusive_begin(0, (long)extents[view], cuts[view], id, t, threads);
            while (nw_exclusive_next(&e))
                if (e.begin <= at[view] && at[view] < e.end) {
                    int node = -1, owner = nw_distr_item_node(distr, item);
                    for (int m = 0; m < cuts[view].parts; m++)
                        if (list[m] == owner)
                            node = m;
                    seen[item]++;
                    CHECK(thread_counts_for(node, t, threads, cuts[view].parts),
                          "item %zu of node %d to thread %d of %d", item, owner, t, threads);
                }
        }
    int all = 1;
    for (size_t item = 0; item < items; item++)
        all &= seen[item] == 1;
    CHECK(all, "view %d of %d dimensions over %d threads: each item once", view, dimensions, threads);
}

static void sweeps_meet_the_owner(void) {
    static unsigned char seen[4096];
    int list[64], nodes = nw_processors();
    for (int c = 0; c < 60; c++) {
        int dimensions = (int)check_between(2, 4);
        size_t extents[4] = {1, 1, 1, 1}, items = 1;
        for (int d = 0; d < dimensions; d++)
            items *= extents[d] = (size_t)check_between(1, dimensions == 2 ? 60 : dimensions == 3 ? 14 : 7);
        unsigned cut = 0;
        while (!(cut & (cut - 1))) /* two dimensions at least */
            cut = (unsigned)check_between(1, (1 << dimensions) - 1);
        void *array = nw_alloc(8, dimensions, extents);
        nw_distr *distr = nw_describe(array, nw_block_exclusive(cut));
        CHECK(distr != NULL, "%s", nw_last_error());
        if (!distr || nw_distr_nodes(distr, list, 64) != nodes || items > sizeof seen)
            CHECK(0, "%zu items over %d nodes", items, nodes);
        else
            for (int view = 0; view < dimensions; view++)
                if (cut & 1u << view)
                    sweep(distr, extents, dimensions, cut, view, (int)check_between(1, 12), seen, list);
        nw_distr_free(distr);
        nw_free(array);
    }
}

static void cuts_are_the_distributions_own(void) {
    size_t extents[3] = {37, 11, 5};
    void *array = nw_alloc(8, 3, extents);
    nw_distr *distr = nw_describe(array, nw_block_exclusive(1u | 4u));
    int nodes = nw_processors();
    for (int d = 0; d < 3; d++) {
        nw_cuts cuts = nw_distr_cuts(distr, d);
        CHECK(cuts.begin == 0 && cuts.end == (long)extents[d] && cuts.parts == (d == 1 ? 1 : nodes), "dimension %d", d);
        for (int p = 0; p < cuts.parts; p++)
            CHECK((size_t)nw_part(cuts, p).begin == nw_distr_cut(distr, d, p) &&
                      (size_t)nw_part(cuts, p).end == nw_distr_cut(distr, d, p + 1),
                  "dimension %d, part %d", d, p);
    }
    nw_cuts none = nw_distr_cuts(NULL, 0), beyond = nw_distr_cuts(distr, 3), negative = nw_distr_cuts(distr, -1);
    CHECK(none.begin == none.end && none.parts == 1, "no distribution");
    CHECK(beyond.begin == beyond.end && negative.begin == negative.end, "no such dimension");
    nw_distr_free(distr);
    nw_free(array);
}

/* ---- Real teams ------------------------------------------------------------------------------------ */

#ifdef _OPENMP
static short who[LONGEST];

static void static_is_openmps_own(void) {
    for (int c = 0; c < 60; c++) {
        long to, from = random_bounds(&to);
        int threads = (int)check_between(1, 13);
        memset(who, -1, sizeof who);
#pragma omp parallel num_threads(threads)
        {
#pragma omp for schedule(static)
            for (long i = from; i < to; i++)
                who[i - from] = (short)omp_get_thread_num();
        }
        for (int t = 0; t < threads; t++) {
            nw_range r = nw_static(from, to, t, threads);
            for (long i = r.begin; i < r.end; i++)
                CHECK(who[i - from] == t, "[%ld, %ld) over %d: %ld", from, to, threads, i);
        }
    }
}

static void macros_cover_once_in_real_teams(void) {
    for (int c = 0; c < 60; c++) {
        long to, from = random_bounds(&to), n = to > from ? to - from : 0;
        int threads = (int)check_between(1, 13), id = (int)check_between(0, 7);
        nw_cuts cuts = {from, to, (int)check_between(1, 9)};
        static unsigned char plain[LONGEST], inverse[LONGEST], exclusive[LONGEST], paper[LONGEST];
        memset(plain, 0, sizeof plain), memset(inverse, 0, sizeof inverse);
        memset(exclusive, 0, sizeof exclusive), memset(paper, 0, sizeof paper);
#pragma omp parallel num_threads(threads)
        {
            nw_for_static (i, from, to)
                plain[i - from]++;
            nw_for_static_inverse (i, from, to)
                inverse[i - from]++;
            nw_for_exclusive (i, from, to, cuts, id)
                exclusive[i - from]++;
            nw_for_block_exclusive (i, from, to, NW_X_WISE, id)
                paper[i - from]++;
        }
        unsigned char *all[] = {plain, inverse, exclusive, paper};
        for (int m = 0; m < 4; m++) {
            memcpy(counts, all[m], sizeof counts);
            CHECK(once(from, from + n), "macro %d, [%ld, %ld) over %d", m, from, to, threads);
        }
    }
}

/* A sweep down and up the rows, in one team, yields the same as the serial one. */
static void a_matched_sweep_is_the_serial_one(void) {
    enum { ROWS = 53, COLUMNS = 41 };
    static double serial[ROWS][COLUMNS];
    double(*u)[COLUMNS] = nw_alloc_2d(ROWS, COLUMNS, sizeof(double));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            serial[i][j] = u[i][j] = (double)(check_random() % 1000);
    for (int i = 1; i < ROWS; i++)
        for (int j = 1; j < COLUMNS - 1; j++)
            serial[i][j] += 0.5 * serial[i - 1][j];
    nw_distr *distr = nw_describe(u, nw_block_exclusive(0));
    nw_cuts rows = nw_distr_cuts(distr, 0), columns = nw_distr_cuts(distr, 1);
#pragma omp parallel num_threads(5)
    for (int id = 0; id < rows.parts; id++) {
        nw_range part = nw_meet(nw_part(rows, id), 1, ROWS);
        nw_for_exclusive (j, 1, COLUMNS - 1, columns, id)
            for (long i = part.begin; i < part.end; i++)
                u[i][j] += 0.5 * u[i - 1][j];
#pragma omp barrier
    }
    CHECK(!memcmp(serial, u, sizeof serial), "results differ");
    nw_distr_free(distr);
    nw_free(u);
}
#endif

int main(void) {
    static_and_inverse_cover_once_and_mirror();
    any_bounds_a_long_holds();
    what_does_not_exist_is_empty();
    exclusive_covers_once();
    exclusive_covers_any_bounds();
    a_share_half_kept_is_nobodys();
    exclusive_runs_on_the_owner();
    two_processors_swap_halves();
    sweeps_meet_the_owner();
    cuts_are_the_distributions_own();
#ifdef _OPENMP
    static_is_openmps_own();
    macros_cover_once_in_real_teams();
    a_matched_sweep_is_the_serial_one();
#endif
    return check_end();
}
