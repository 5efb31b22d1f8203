// Threads with queues of their own, which take from others when theirs is empty; pieces cost differently in each step.
// steal THREADS PIECES STEPS
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace {
constexpr int piece = 8192;

class Queue {
public:
    void push(int job) {
        std::lock_guard guard(lock_);
        jobs_.push_back(job);
    }
    // Its owner takes what it queued last, others what has waited longest.
    std::optional<int> take(bool is_owner) {
        std::lock_guard guard(lock_);
        if (jobs_.empty())
            return {};
        int job = is_owner ? jobs_.back() : jobs_.front();
        is_owner ? jobs_.pop_back() : jobs_.pop_front();
        return job;
    }

private:
    std::mutex lock_;
    std::deque<int> jobs_;
};

std::optional<int> find(std::vector<Queue> &queues, int self) {
    auto job = queues[self].take(true);
    for (int other = 1; !job && other < int(queues.size()); other++)
        job = queues[(self + other) % queues.size()].take(false);
    return job;
}
} // namespace

int main(int argc, char **argv) {
    int threads = argc > 1 ? std::atoi(argv[1]) : 8, pieces = argc > 2 ? std::atoi(argv[2]) : 64,
        steps = argc > 3 ? std::atoi(argv[3]) : 10;
    std::vector<double> data(size_t(pieces) * piece);
    unsigned chance = std::random_device{}();
    for (int s = 0; s < steps; s++) {
        std::vector<Queue> queues(threads);
        for (int p = 0; p < pieces; p++)
            queues[(chance = chance * 1103515245u + 12345u) / 65536 % threads].push(p);
        std::vector<std::thread> team;
        for (int t = 0; t < threads; t++)
            team.emplace_back([&, t] {
                while (auto job = find(queues, t))
                    for (int again = 0; again <= *job % 7; again++)
                        for (int i = 0; i < piece; i++)
                            data[size_t(*job) * piece + i] += 1;
            });
        for (auto &thread : team)
            thread.join();
    }
    std::printf("%.6f\n", data[1]);
}
