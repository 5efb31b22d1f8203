#include <cstdio>
#include <stdexcept>
#include <vector>

__attribute__((noinline)) void climb(std::vector<double> &cells, size_t end) {
    for (size_t i = 0;; i++) {
        if (i == end)
            throw std::runtime_error("top");
        cells[i] += 1.0;
    }
}

int main() {
    std::vector<double> cells(50000, 0.0); // line 14
    for (int round = 0; round < 3; round++) {
        try {
            climb(cells, 40000);
        } catch (const std::runtime_error &) {
        }
    }
    std::printf("%.0f\n", cells[39999]);
    return 0;
}
