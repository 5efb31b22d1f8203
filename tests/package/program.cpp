// As program.c, in C++.
#include <nodewise.hpp>

#include <iostream>

int main() {
    nw::array<double, 2> array(64, 512);
    (void)array.place(nw::cyclic(nw::unit::pages));
    double sum = 0;
    for (long i : nw::static_range(0, 64))
        for (long j = 0; j < 512; j++)
            sum += array(i, j) + 1;
    if (sum != 64 * 512 || array.describe(nw::block_exclusive()).cuts(0).end != 64)
        return 1;
    std::cout << nw_version() << '\n';
}
