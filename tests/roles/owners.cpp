// Threads whose part is their argument. Each shares what all of them read by a pointer that counts its owners, and takes a
// number from a counter of its own: none of that chooses anything.
// owners THREADS ROWS STEPS
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {
constexpr int columns = 1024;

struct Box {
    alignas(64) std::atomic<int> next{0};
    int last = 0;
};
} // namespace

int main(int argc, char **argv) {
    int threads = argc > 1 ? std::atoi(argv[1]) : 8, rows = argc > 2 ? std::atoi(argv[2]) : 512,
        steps = argc > 3 ? std::atoi(argv[3]) : 10;
    auto grid = std::make_shared<std::vector<double>>(size_t(rows) * columns);
    std::vector<Box> boxes(threads);
    std::vector<std::thread> team;
    for (int t = 0; t < threads; t++)
        team.emplace_back([grid, &boxes, t, threads, rows, steps] {
            boxes[t].last = boxes[t].next.fetch_add(1);
            for (int s = 0; s < steps; s++)
                for (size_t i = size_t(t) * rows / threads * columns; i < size_t(t + 1) * rows / threads * columns; i++)
                    (*grid)[i] = (*grid)[i] * 0.5 + 1;
        });
    double first = (*grid)[0];
    grid.reset();
    for (std::thread &each : team)
        each.join();
    std::printf("%d %d\n", first >= 0, boxes[0].last);
}
