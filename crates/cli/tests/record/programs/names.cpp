// Heap arrays as C++ programs and macros hold them: each is to have the programmer's name.
#include <cstdlib>
#include <vector>

#define SHARED_ALLOC(pointer, n) pointer = (double *)calloc(n, sizeof(double))
#define G_MALLOC(n) malloc(n)

constexpr long ITEMS = 1 << 16;

static std::vector<double> at_start(ITEMS, 1.0);

class Grid {
public:
    explicit Grid(long n) : listed(n, 1.0) {
        owned_ = new double[n];
        this->pointed = static_cast<double *>(malloc(n * sizeof(double)));
        for (long i = 0; i < n; i++)
            owned_[i] = pointed[i] = i;
    }

    std::vector<double> listed;
    double *owned_, *pointed;
};

static double *last_malloc[1];

int main() {
    double *by_macro;
    Grid grid(ITEMS);
    std::vector<double> resized;
    resized.resize(ITEMS);
    SHARED_ALLOC(by_macro, ITEMS);
    last_malloc[0] = (double *)G_MALLOC(ITEMS * sizeof(double));
    double sum = 0;
    for (long i = 0; i < ITEMS; i++) {
        by_macro[i] = last_malloc[0][i] = i;
        sum += at_start[i] + grid.listed[i] + grid.owned_[i] + grid.pointed[ITEMS - 1 - i] + resized[i];
        sum += by_macro[i / 2] + last_malloc[0][i / 3];
    }
    return sum == 0.5;
}
