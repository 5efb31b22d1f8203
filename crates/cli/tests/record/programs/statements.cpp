// Several objects on a line, and what the standard library makes of a statement.
#include <cstdio>
#include <memory>
#include <vector>

// clang-format off
namespace deep { std::vector<int> counts(300000); float *weights = new float[150000]; }
struct Mesh {
    std::vector<double> nodes_; std::unique_ptr<int[]> faces_; double *edges_;
    void grow(int n) { nodes_.resize(n); faces_ = std::make_unique<int[]>(n); }
    void extend(int n) { edges_ = new double[n]; nodes_.reserve(2 * n); }
    void all(int n) { edges_ = new double[n]; nodes_.resize(n); faces_ = std::make_unique<int[]>(n); }
};
// clang-format on

int main() {
    Mesh grown, extended, whole;
    grown.grow(90000);
    extended.extend(90001);
    whole.all(90002);
    for (int i = 0; i < 90000; i++) {
        extended.edges_[i] = whole.edges_[i] = i;
        extended.nodes_.push_back(i);
    }
    auto shared = std::make_shared<std::vector<double>>(80000, 1.0);
    std::vector<std::vector<double>> rows(4, std::vector<double>(20000));
    double sum = grown.nodes_[4] + grown.faces_[3] + extended.edges_[5] + whole.nodes_[7] + whole.faces_[8];
    std::printf("%f\n", sum + (*shared)[3] + deep::counts[4] + deep::weights[4] + rows[2][5]);
}
