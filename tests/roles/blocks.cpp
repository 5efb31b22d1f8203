// oneTBB's scheduler deals blocks of work to its workers, which steal from each other; blocks cost differently.
// blocks THREADS PIECES STEPS [keep]: with `keep` an affinity_partitioner gives a worker the blocks that it had.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>
#include <vector>

int main(int argc, char **argv) {
    constexpr int piece = 8192;
    int threads = argc > 1 ? std::atoi(argv[1]) : 8, pieces = argc > 2 ? std::atoi(argv[2]) : 64,
        steps = argc > 3 ? std::atoi(argv[3]) : 10;
    bool keep = argc > 4 && std::strcmp(argv[4], "keep") == 0;
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    tbb::task_arena arena(threads);
    std::vector<double> data(std::size_t(pieces) * piece);
    auto work = [&](const tbb::blocked_range<int> &range) {
        for (int p = range.begin(); p < range.end(); p++)
            for (int again = 0; again <= p % 7; again++)
                for (int i = 0; i < piece; i++)
                    data[std::size_t(p) * piece + i] += 1;
    };
    arena.execute([&] {
        tbb::affinity_partitioner affinity;
        tbb::blocked_range<int> all(0, pieces);
        for (int s = 0; s < steps; s++) {
            if (keep)
                tbb::parallel_for(all, work, affinity);
            else
                tbb::parallel_for(all, work);
        }
    });
    std::printf("%.6f\n", data[1]);
}
