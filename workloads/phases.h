/* The phases of bt and sp, and how their loops are distributed over threads.
 *
 * Lines of points along z are contiguous. compute_rhs, y_solve, z_solve and add distribute rows (x) over threads;
 * x_solve, whose lines run across the rows, distributes columns (y): Majo and Gross, CGO 2012, Figure 6. So by
 * first touch `lhs`, which x_solve touches first, is distributed one way and the other arrays the other way, and
 * the solvers access data of both.
 *
 * All loops go part by part. The plain forms have one part, with which nw_for_exclusive is schedule(static); the
 * matched form has one part for each node, and its loops are those of Figure 13(c). */
#ifndef PHASES_H
#define PHASES_H

#include "grid.h"

/* What a program does with the points (i, j, ·), and their equations along a direction. */
typedef void line_function(const grid *g, int direction, long i, long j);

typedef struct {
    change_function *change;
    line_function *build, *eliminate, *substitute;
    size_t equation; /* bytes */
} solver;

static const double step = 0.05; /* of time */

/* All rows and columns are distributed, although there is nothing to do on the boundary, so that loops are
 * divided where arrays are. */
#define for_rows(i, g, part)                         \
    nw_for_exclusive (i, 0, (g)->n, (g)->rows, part) \
        if (i > 0 && i < (g)->n - 1)
#define for_columns(j, g, part)                         \
    nw_for_exclusive (j, 0, (g)->n, (g)->columns, part) \
        if (j > 0 && j < (g)->n - 1)

/* ---- The phases. ---- */

static inline void rhs_line(const grid *g, change_function *change, long i, long j) {
    const long strides[DIRECTIONS] = {stride(g, X), stride(g, Y), stride(g, Z)};
    for (long k = 1; k < g->nz - 1; k++) {
        const long position[DIRECTIONS] = {i, j, k};
        size_t p = at(g, i, j, k);
        double sum[FIELDS];
        change(g, &g->u[p], strides, position, sum);
        for (int m = 0; m < FIELDS; m++)
            g->rhs[p].v[m] = step * (sum[m] + g->forcing[p].v[m]);
    }
}

static inline void compute_rhs(const grid *g, const solver *s) {
    long end = g->n - 1;
#pragma omp parallel
    for (int part = 0; part < g->rows.parts; part++) {
        nw_range columns = nw_meet(nw_part(g->columns, part), 1, end);
        for_rows (i, g, part)
            for (long j = columns.begin; j < columns.end; j++)
                rhs_line(g, s->change, i, j);
    }
}

/* Iteration redistribution (3.2), for the loop of x_solve in which rows do not depend on each other. */
static inline void build_x(const grid *g, const solver *s) {
    long end = g->n - 1;
#pragma omp parallel
    for_rows (i, g, 0)
        for (long j = 1; j < end; j++)
            s->build(g, X, i, j);
}

/* Down the rows and up again; threads wait for each other only between parts. */
static inline void x_solve(const grid *g, const solver *s) {
    long end = g->n - 1;
    int parts = g->rows.parts, built = g->form == FORM_ITERATE;
    if (built)
        build_x(g, s);
#pragma omp parallel
    {
        for (int part = 0; part < parts; part++) {
            nw_range rows = nw_meet(nw_part(g->rows, part), 1, end);
            for_columns (j, g, part)
                for (long i = rows.begin; i < rows.end; i++) {
                    if (!built)
                        s->build(g, X, i, j);
                    s->eliminate(g, X, i, j);
                }
#pragma omp barrier
        }
        for (int part = parts - 1; part >= 0; part--) {
            nw_range rows = nw_meet(nw_part(g->rows, part), 1, end);
            for_columns (j, g, part)
                for (long i = rows.end - 1; i >= rows.begin; i--)
                    s->substitute(g, X, i, j);
#pragma omp barrier
        }
    }
}

/* Likewise along the columns. */
static inline void y_solve(const grid *g, const solver *s) {
    long end = g->n - 1;
    int parts = g->columns.parts;
#pragma omp parallel
    {
        for (int part = 0; part < parts; part++) {
            nw_range columns = nw_meet(nw_part(g->columns, part), 1, end);
            for_rows (i, g, part)
                for (long j = columns.begin; j < columns.end; j++) {
                    s->build(g, Y, i, j);
                    s->eliminate(g, Y, i, j);
                }
#pragma omp barrier
        }
        for (int part = parts - 1; part >= 0; part--) {
            nw_range columns = nw_meet(nw_part(g->columns, part), 1, end);
            for_rows (i, g, part)
                for (long j = columns.end - 1; j >= columns.begin; j--)
                    s->substitute(g, Y, i, j);
#pragma omp barrier
        }
    }
}

static inline void z_solve(const grid *g, const solver *s) {
    long end = g->n - 1;
#pragma omp parallel
    for (int part = 0; part < g->rows.parts; part++) {
        nw_range columns = nw_meet(nw_part(g->columns, part), 1, end);
        for_rows (i, g, part)
            for (long j = columns.begin; j < columns.end; j++) {
                s->build(g, Z, i, j);
                s->eliminate(g, Z, i, j);
                s->substitute(g, Z, i, j);
            }
    }
}

static inline void add(const grid *g) {
    long end = g->n - 1;
#pragma omp parallel
    for (int part = 0; part < g->rows.parts; part++) {
        nw_range columns = nw_meet(nw_part(g->columns, part), 1, end);
        for_rows (i, g, part)
            for (size_t p = at(g, i, columns.begin, 0); p < at(g, i, columns.end, 0); p++)
                for (int m = 0; m < FIELDS; m++)
                    g->u[p].v[m] += g->rhs[p].v[m];
    }
}

/* ---- Where the arrays are placed. ---- */

/* A Latin square of blocks, and loops that are divided in the same way (Figure 11). */
static inline void match(grid *g) {
    void *const arrays[] = {g->u, g->rhs, g->lhs, g->forcing};
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++) {
        data_distr_t *square = create_block_exclusive_distr(arrays[a], (size_t)(g->n * g->n * g->nz), 0);
        if (!square)
            continue; /* the array stays under first touch */
        distribute_to(square);
        g->rows = nw_distr_cuts(square, 0);
        g->columns = nw_distr_cuts(square, 1);
        nw_distr_free(square);
    }
}

/* In-program redistribution (Figure 7): arrays by rows for most phases, by columns for one. */
enum { MOVED = 3 };

typedef struct {
    data_distr_t *rows[MOVED], *columns[MOVED]; /* null: nothing moves */
} layouts;

static inline layouts make_layouts(const grid *g) {
    void *const arrays[MOVED] = {g->u, g->rhs, g->lhs};
    layouts l = {{NULL}, {NULL}};
    for (int a = 0; a < MOVED && g->form == FORM_REDISTRIBUTE; a++) {
        l.rows[a] = nw_describe(arrays[a], nw_blocks(NW_ROWS));
        l.columns[a] = nw_describe(arrays[a], nw_blocks(NW_COLUMNS));
    }
    return l;
}

static inline void redistribute(data_distr_t *const layout[MOVED]) {
    for (int a = 0; a < MOVED; a++)
        if (layout[a])
            distribute_to(layout[a]);
}

/* Prints how much was migrated, and frees the layouts. */
static inline void free_layouts(const workload *w, layouts l) {
    nw_statistics s;
    nw_get_statistics(&s);
    if (l.rows[0])
        fprintf(stderr, "%s: %llu bytes migrated\n", w->name, (unsigned long long)(s.pages_moved * nw_page_bytes()));
    for (int a = 0; a < MOVED; a++) {
        nw_distr_free(l.rows[a]);
        nw_distr_free(l.columns[a]);
    }
}

static inline int run(const workload *w, int argc, char **argv, const solver *s) {
    options o = parse_options(w, argc, argv);
    grid g = make_grid(w, &o);
    g.lhs = nw_alloc_3d((size_t)g.n, (size_t)g.n, (size_t)g.nz, s->equation);
    need_memory(w, g.lhs != NULL);
    if (g.form == FORM_MATCHED)
        match(&g);
    layouts by = make_layouts(&g);

    initialise(&g, s->change);
    redistribute(by.rows);
    fall error = {measured(&g).error, 1};
    for (long k = 0; k < o.iterations; k++) {
        compute_rhs(&g, s);
        redistribute(by.columns);
        x_solve(&g, s);
        redistribute(by.rows);
        y_solve(&g, s);
        z_solve(&g, s);
        add(&g);
        look(&error, &g, k);
    }
    int status = finish(w, &o, &g, error);
    free_layouts(w, by);
    nw_free(g.lhs);
    free_grid(&g);
    return status;
}

#endif
