// Breadth-first search, level by level, on a random graph in compressed sparse rows.
//
// Vertices are visited in the order of discovery, by whoever is free: edges and distances are read
// and written by everybody, without any regularity.
//
// Verified: no edge skips a level, and every vertex but the root has a predecessor one level up.
#include "workload.h"
#include <memory>
#include <vector>

namespace {

const workload bfs = {
    "bfs", "breadth-first search on a random graph", "vertices", 20000, 2000000, 200000000, 4, 0, 0, nullptr, NAS_NONE};

const int unreached = -1;

// An array that nobody has touched yet, unlike std::vector's.
template <class T> using array = std::unique_ptr<T[]>;

template <class T> array<T> untouched(long n) { return array<T>(new T[static_cast<size_t>(n)]); }

struct graph {
    long vertices;
    array<long> first;  // index of a vertex's first edge; vertices + 1 entries
    array<int> target;  // of each edge
};

// Between 4 and 60 edges, few vertices having many.
long degree(long vertex) {
    uint64_t r = mix(static_cast<uint64_t>(vertex));
    return 4 + (r % 8 ? static_cast<long>(r >> 8) % 12 : static_cast<long>(r >> 8) % 57);
}

graph random_graph(long n, bool parallel) {
    graph g = {n, untouched<long>(n + 1), nullptr};
    g.first[0] = 0;
    for (long v = 0; v < n; v++)
        g.first[v + 1] = g.first[v] + degree(v);
    g.target = untouched<int>(g.first[n]);
#pragma omp parallel for if (parallel)
    for (long v = 0; v < n; v++)
        for (long e = g.first[v]; e < g.first[v + 1]; e++)
            g.target[e] = static_cast<int>(mix(~static_cast<uint64_t>(e)) % static_cast<uint64_t>(n));
    return g;
}

// Visits the frontier's neighbours; those seen for the first time are the next frontier.
std::vector<int> expand(const graph &g, const std::vector<int> &frontier, int *distance, int level) {
    std::vector<int> next;
#pragma omp parallel
    {
        std::vector<int> found;
#pragma omp for schedule(dynamic, 64) nowait
        for (size_t i = 0; i < frontier.size(); i++) {
            int v = frontier[i];
            for (long e = g.first[v]; e < g.first[v + 1]; e++) {
                int t = g.target[e], none = unreached;
                if (__atomic_load_n(&distance[t], __ATOMIC_RELAXED) == unreached &&
                    __atomic_compare_exchange_n(&distance[t], &none, level, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                    found.push_back(t);
            }
        }
#pragma omp critical
        next.insert(next.end(), found.begin(), found.end());
    }
    return next;
}

void search(const graph &g, int root, int *distance, bool parallel) {
#pragma omp parallel for if (parallel)
    for (long v = 0; v < g.vertices; v++)
        distance[v] = unreached;
    distance[root] = 0;
    std::vector<int> frontier(1, root);
    for (int level = 1; !frontier.empty(); level++)
        frontier = expand(g, frontier, distance, level);
}

bool right(const graph &g, int root, const int *distance) {
    std::vector<char> has_predecessor(static_cast<size_t>(g.vertices), 0);
    has_predecessor[static_cast<size_t>(root)] = 1;
    for (long v = 0; v < g.vertices; v++)
        for (long e = g.first[v]; distance[v] != unreached && e < g.first[v + 1]; e++) {
            int t = g.target[e];
            if (distance[t] == unreached || distance[t] > distance[v] + 1)
                return false;
            if (distance[t] == distance[v] + 1)
                has_predecessor[static_cast<size_t>(t)] = 1;
        }
    for (long v = 0; v < g.vertices; v++)
        if (distance[v] != unreached && !has_predecessor[static_cast<size_t>(v)])
            return false;
    return distance[root] == 0;
}

} // namespace

int main(int argc, char **argv) {
    options o = parse_options(&bfs, argc, argv);
    try {
        graph g = random_graph(o.size, o.parallel);
        array<int> distance = untouched<int>(o.size);
        double sum = 0.0;
        bool ok = true;
        for (long i = 0; i < o.iterations; i++) {
            int root = static_cast<int>(mix(static_cast<uint64_t>(i)) % static_cast<uint64_t>(o.size));
            search(g, root, distance.get(), o.parallel);
            ok &= right(g, root, distance.get());
            for (long v = 0; v < o.size; v++)
                sum += distance[v];
        }
        return verdict(&bfs, o.size, o.iterations, sum, ok);
    } catch (const std::bad_alloc &) {
        need_memory(&bfs, 0);
    }
}
