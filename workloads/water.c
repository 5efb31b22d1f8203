/* Molecular dynamics of water, as in SPLASH-2's WATER-NSQUARED: a time step predicts positions from seven
 * derivatives (Gear), adds the forces of springs within molecules, then the forces between molecules nearer
 * than a cut-off, and corrects. Molecules are distributed over threads in blocks. Each thread predicts and
 * corrects its own molecules. For each of them it computes the forces with the half of all others that
 * follows it, and adds them to both. Which of the others are near enough changes as molecules move, but all
 * are read.
 *
 * Shared, as there: the molecules, one array of records with positions, derivatives and forces
 * together, not padded, so that a page has molecules of two threads where blocks meet; and each
 * thread's sums of the forces it has found, before they are added to the molecules.
 *
 * Forces are sums of integers, so that results do not depend on the order of adding.
 *
 * Verified: forces sum to zero, and the energy is conserved. */
#include "workload.h"
#include <math.h>
#include <omp.h>

static const workload water = {
    .name = "water",
    .does = "molecular dynamics of water, all pairs",
    .size_is = "molecules",
    .small = 64,
    .size = 1728,
    .largest = 1000000,
    .iterations = 20,
};

/* Oxygen, hydrogen, hydrogen; x, y, z; derivatives 0 to 6, scaled by step^k / k!. */
enum { ATOMS = 3, AXES = 3, ORDERS = 7, PAGE = 4096 };

typedef struct {
    double order[ORDERS][ATOMS][AXES];
    int64_t force[ATOMS][AXES];
} molecule;

/* A thread's sums, a row for each molecule. */
typedef int64_t forces[ATOMS][AXES];

typedef struct {
    long n;
    int threads;
    double edge, cutoff; /* of the box; of forces between molecules */
    molecule *at;
    forces *found; /* threads × n */
} liquid;

/* Ångström, picoseconds, atomic masses; a flexible SPC water. */
static const double step = 0.00025;
static const double mass[ATOMS] = {15.9994, 1.008, 1.008};
static const double charge[ATOMS] = {-0.82, 0.41, 0.41};
static const double coulomb = 138935.458;
static const double well = 65.02, diameter = 3.166; /* Lennard-Jones, between oxygens */
static const double bond = 1.0, bond_spring = 4.0e5;
static const double across = 1.633, across_spring = 1.0e5; /* between a molecule's hydrogens */
static const double spacing = 3.104; /* of molecules in water */
static const double longest_cutoff = 6.2;
static const double thermal = 249.4; /* 300 K in units of energy */
static const double unit_of_force = 0x1p24;

static long cut(const liquid *l, long t) { return l->n * t / l->threads; }

static inline int64_t whole(double force) { return (int64_t)llrint(force * unit_of_force); }

static inline double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* --- the state at the beginning --- */

static void place(molecule *m, long i, long per_edge, double distance) {
    static const double shape[ATOMS][AXES] = {{0, 0, 0}, {0.8165, 0.5773, 0}, {-0.8165, 0.5773, 0}};
    long corner[AXES] = {i / per_edge / per_edge, i / per_edge % per_edge, i % per_edge};
    int turn = (int)(mix((uint64_t)i) % AXES), flip = mix((uint64_t)i) >> 32 & 1 ? -1 : 1;
    memset(m, 0, sizeof *m);
    for (int a = 0; a < ATOMS; a++)
        for (int x = 0; x < AXES; x++) {
            m->order[0][a][x] = distance * ((double)corner[x] + 0.5) + flip * shape[a][(x + turn) % AXES];
            uint64_t seed = (uint64_t)((i * ATOMS + a) * AXES + x);
            double random = mix_unit(3 * seed) + mix_unit(3 * seed + 1) + mix_unit(3 * seed + 2) - 1.5;
            m->order[1][a][x] = 2.0 * random * sqrt(thermal / mass[a]) * step;
        }
}

static void initialise(const liquid *l, int parallel) {
    long per_edge = 1;
    while (per_edge * per_edge * per_edge < l->n)
        per_edge++;
    memset(l->found, 0, (size_t)(l->threads * l->n) * sizeof *l->found);
#pragma omp parallel for if (parallel)
    for (long i = 0; i < l->n; i++)
        place(&l->at[i], i, per_edge, l->edge / (double)per_edge);
}

/* --- forces --- */

/* Adds the forces between two atoms of a molecule; returns the energy. */
static double spring(molecule *m, int a, int b, double length, double strength) {
    double apart[AXES], distance;
    for (int x = 0; x < AXES; x++)
        apart[x] = m->order[0][a][x] - m->order[0][b][x];
    distance = sqrt(dot(apart, apart));
    double stretch = distance - length, pull = -strength * stretch / distance;
    for (int x = 0; x < AXES; x++) {
        int64_t force = whole(pull * apart[x]);
        m->force[a][x] += force;
        m->force[b][x] -= force;
    }
    return 0.5 * strength * stretch * stretch;
}

static double within(molecule *m) {
    memset(m->force, 0, sizeof m->force);
    return spring(m, 0, 1, bond, bond_spring) + spring(m, 0, 2, bond, bond_spring) +
           spring(m, 1, 2, across, across_spring);
}

/* A factor that falls from one to zero between 0.8 times the cut-off and the cut-off; *slope is its slope. */
static double fade(double distance, double cutoff, double *slope) {
    double from = 0.8 * cutoff, t = (distance - from) / (cutoff - from);
    *slope = t <= 0.0 ? 0.0 : -30.0 * t * t * (1.0 - t) * (1.0 - t) / (cutoff - from);
    return t <= 0.0 ? 1.0 : 1.0 - t * t * t * (10.0 - 15.0 * t + 6.0 * t * t);
}

static void push(forces mine, forces theirs, int a, int b, const double *apart, double strength) {
    for (int x = 0; x < AXES; x++) {
        int64_t force = whole(strength * apart[x]);
        mine[a][x] += force;
        theirs[b][x] -= force;
    }
}

/* Adds the forces between two molecules; `shift` is added to p - q, as the box is periodic. Returns the energy. */
static double between(const molecule *p, const molecule *q, const double *shift, double distance, double cutoff,
                      forces mine, forces theirs) {
    double slope, faded = fade(distance, cutoff, &slope), energy = 0.0, apart[ATOMS][ATOMS][AXES];
    for (int a = 0; a < ATOMS; a++)
        for (int b = 0; b < ATOMS; b++) {
            double *d = apart[a][b];
            for (int x = 0; x < AXES; x++)
                d[x] = p->order[0][a][x] - q->order[0][b][x] + shift[x];
            double square = dot(d, d), attraction = coulomb * charge[a] * charge[b] / sqrt(square);
            energy += attraction;
            push(mine, theirs, a, b, d, faded * attraction / square);
        }
    double sixth = pow(diameter / distance, 6.0);
    energy += 4.0 * well * (sixth * sixth - sixth);
    double pressed = 24.0 * well * (2.0 * sixth * sixth - sixth) / (distance * distance);
    push(mine, theirs, 0, 0, apart[0][0], faded * pressed - slope * energy / distance);
    return faded * energy;
}

/* Finds the `shift` of p - q by which q's periodic image is nearest to p; true if it is within the cut-off. */
static int is_near(const liquid *l, const molecule *p, const molecule *q, double *shift, double *distance) {
    double apart[AXES];
    for (int x = 0; x < AXES; x++) {
        apart[x] = p->order[0][0][x] - q->order[0][0][x];
        shift[x] = apart[x] > 0.5 * l->edge ? -l->edge : apart[x] < -0.5 * l->edge ? l->edge : 0.0;
        apart[x] += shift[x];
    }
    *distance = sqrt(dot(apart, apart));
    return *distance < l->cutoff;
}

/* Adds the forces that a thread has found to the molecules, beginning with its own, and clears them. */
static void hand_over(const liquid *l, forces *found, long begin) {
    for (long k = 0; k < l->n; k++) {
        long i = (begin + k) % l->n;
        for (int a = 0; a < ATOMS; a++)
            for (int x = 0; x < AXES; x++) {
                int64_t force = found[i][a][x];
                if (!force)
                    continue;
#pragma omp atomic
                l->at[i].force[a][x] += force;
                found[i][a][x] = 0;
            }
    }
}

/* Energies are summed as integers too, in millionths. */
static int64_t counted(double energy) { return (int64_t)llrint(energy * 1e6); }

/* All pairs: each molecule with the half of the others that follow it. */
static int64_t forces_between(const liquid *l) {
    int64_t energy = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : energy)
    for (int thread = 0; thread < l->threads; thread++) {
        forces *found = l->found + thread * l->n;
        for (long i = cut(l, thread); i < cut(l, thread + 1); i++)
            for (long k = 1; k <= l->n / 2; k++) {
                long j = (i + k) % l->n;
                if (2 * k == l->n && i > j)
                    continue; /* a pair of opposite molecules counts once */
                double shift[AXES], distance;
                if (is_near(l, &l->at[i], &l->at[j], shift, &distance))
                    energy += counted(between(&l->at[i], &l->at[j], shift, distance, l->cutoff, found[i], found[j]));
            }
        hand_over(l, found, cut(l, thread));
    }
    return energy;
}

/* --- time --- */

/* Taylor's series, by Pascal's triangle. */
static void predict_molecule(molecule *m) {
    for (int from = 0; from < ORDERS - 1; from++)
        for (int k = ORDERS - 2; k >= from; k--)
            for (int a = 0; a < ATOMS; a++)
                for (int x = 0; x < AXES; x++)
                    m->order[k][a][x] += m->order[k + 1][a][x];
}

static int64_t predict(const liquid *l) {
    int64_t energy = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : energy)
    for (int thread = 0; thread < l->threads; thread++)
        for (long i = cut(l, thread); i < cut(l, thread + 1); i++) {
            predict_molecule(&l->at[i]);
            energy += counted(within(&l->at[i]));
        }
    return energy;
}

static void correct_molecule(molecule *m) {
    static const double gear[ORDERS] = {863.0 / 6048, 665.0 / 1008, 1, 25.0 / 36, 35.0 / 144, 1.0 / 24, 1.0 / 360};
    for (int a = 0; a < ATOMS; a++)
        for (int x = 0; x < AXES; x++) {
            double wanted = 0.5 * step * step * (double)m->force[a][x] / unit_of_force / mass[a];
            double off = wanted - m->order[2][a][x];
            for (int k = 0; k < ORDERS; k++)
                m->order[k][a][x] += gear[k] * off;
        }
}

/* Moves a molecule that has left the box back into it, all atoms together. */
static void enter_box(const liquid *l, molecule *m) {
    for (int x = 0; x < AXES; x++) {
        double out = floor(m->order[0][0][x] / l->edge) * l->edge;
        for (int a = 0; a < ATOMS; a++)
            m->order[0][a][x] -= out;
    }
}

/* Returns the kinetic energy. */
static int64_t correct(const liquid *l) {
    int64_t energy = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : energy)
    for (int thread = 0; thread < l->threads; thread++)
        for (long i = cut(l, thread); i < cut(l, thread + 1); i++) {
            molecule *m = &l->at[i];
            correct_molecule(m);
            enter_box(l, m);
            for (int a = 0; a < ATOMS; a++)
                energy += counted(0.5 * mass[a] * dot(m->order[1][a], m->order[1][a]) / (step * step));
        }
    return energy;
}

static int forces_cancel(const liquid *l) {
    int64_t sum[AXES] = {0};
    for (long i = 0; i < l->n; i++)
        for (int a = 0; a < ATOMS; a++)
            for (int x = 0; x < AXES; x++)
                sum[x] += l->at[i].force[a][x];
    return !sum[0] && !sum[1] && !sum[2];
}

/* Energies of one step. */
typedef struct {
    double potential, kinetic;
} energies;

static energies advance(const liquid *l) {
    int64_t potential = predict(l);
    potential += forces_between(l);
    int64_t kinetic = correct(l);
    return (energies){(double)potential * 1e-6, (double)kinetic * 1e-6};
}

int main(int argc, char **argv) {
    options o = parse_options(&water, argc, argv);
    if (o.size < 8)
        give_up(&water, "--size is at least 8", "");
    liquid l = {.n = o.size, .threads = omp_get_max_threads()};
    l.edge = spacing * ceil(cbrt((double)l.n) - 1e-9);
    l.cutoff = fmin(longest_cutoff, 0.5 * l.edge);
    size_t molecules = (size_t)l.n * sizeof *l.at;
    l.at = aligned_alloc(PAGE, (molecules + PAGE - 1) / PAGE * PAGE);
    l.found = malloc((size_t)(l.threads * l.n) * sizeof *l.found);
    need_memory(&water, l.at && l.found);

    initialise(&l, o.parallel);
    energies first = {0}, now = {0};
    int ok = 1;
    for (long k = 0; k < o.iterations; k++) {
        now = advance(&l);
        if (k == 0)
            first = now;
        ok &= forces_cancel(&l);
    }
    double drift = now.potential + now.kinetic - first.potential - first.kinetic;
    ok &= fabs(drift) < 0.01 * now.kinetic;
    int status = verdict(&water, o.size, o.iterations, now.potential + now.kinetic, ok);
    free(l.at), free(l.found);
    return status;
}
