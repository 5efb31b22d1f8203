// The C++ interface: ownership, views, exceptions and statuses, containers, ranges.
#include "nodewise.hpp"

#include "check.h"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <list>
#include <map>
#include <numeric>
#include <string>
#if __cplusplus >= 202002L
#include <ranges>
#include <span>
#endif

namespace {

template <class Exception, class Act> bool throws(Act act) {
    try {
        act();
    } catch (const Exception &) {
        return true;
    } catch (...) {
    }
    return false;
}

bool known(const void *memory) {
    nw_shape shape;
    return nw_shape_of(memory, &shape) == NW_OK;
}

void arrays_are_zeroed_and_freed_with_their_scope() {
    const void *was = nullptr;
    {
        nw::array<double, 3> a(3, 4, 5);
        was = a.data();
        CHECK(a.size() == 60 && a.extent(1) == 4 && known(was), "%zu items", a.size());
        CHECK(std::all_of(a.begin(), a.end(), [](double x) { return x == 0.0; }), "not zero");
        std::iota(a.begin(), a.end(), 0.0);
        CHECK(a(1, 2, 3) == 33.0 && a[1][2][3] == 33.0 && &a[2][0][0] == a.data() + 40, "row-major");
#ifdef __cpp_multidimensional_subscript
        CHECK((a[1, 2, 3] == 33.0), "a[i, j, k]");
#endif
    }
    CHECK(!known(was), "still known after its scope");
}

void moves_leave_nothing_behind() {
    nw::array<int> a(1000), empty;
    a[7] = 9;
    int *memory = a.data();
    nw::array<int> b(std::move(a));
    CHECK(b.data() == memory && b[7] == 9 && !a.data() && a.empty(), "moved");
    nw::array<int> c(10);
    int *old = c.data();
    c = std::move(b);
    CHECK(c.data() == memory && !known(old) && known(memory), "move assignment frees what was there");
    nw::array<int> &self = c;
    c = std::move(self);
    CHECK(c.data() == memory && known(memory), "to itself");
    static_assert(!std::is_copy_constructible<nw::array<int>>::value && !std::is_copy_assignable<nw::array<int>>::value,
                  "arrays are not copied");
    static_assert(std::is_nothrow_move_constructible<nw::array<int>>::value, "so that vectors of them grow");
    std::vector<nw::array<int>> many;
    for (int i = 1; i <= 10; i++)
        many.emplace_back(i);
    CHECK(many[3].size() == 4, "in a vector");
}

void wrong_arguments_throw_and_change_nothing() {
    CHECK(throws<std::invalid_argument>([] { nw::array<double>(0); }), "no items");
    CHECK(throws<std::invalid_argument>([] { nw::array<double, 2>(4, -1); }), "a negative extent");
    CHECK(throws<std::bad_alloc>([] { nw::array<double, 2>(std::size_t(1) << 40, std::size_t(1) << 40); }), "overflow");
    nw::array<double, 2> a(64, 64);
    CHECK(throws<std::invalid_argument>([&] { (void)a.place(nw::cyclic(nw::unit::rows).on({4095})); }), "no such node");
    CHECK(throws<std::invalid_argument>([&] { (void)a.place(nw::cyclic(nw::unit::rows).on({0}).weights({1, 2})); }),
          "weights without nodes");
    CHECK(throws<std::invalid_argument>([&] { (void)a.migrate_columns(0, 1, 64); }), "columns beyond the array");
    CHECK(throws<std::invalid_argument>([] { (void)nw::block_exclusive({4}); }), "no dimension 4");
    double foreign = 0;
    CHECK(throws<std::invalid_argument>([&] { nw::distribution(&foreign, nw::bind_all()); }), "a foreign pointer");
}

void the_machine_never_throws() {
    nw::array<double, 2> a(256, 512);
    for (const nw::policy &p :
         {nw::first_touch(), nw::cyclic(nw::unit::pages), nw::block_cyclic(512), nw::skew(nw::unit::rows, 2),
          nw::prime(nw::unit::pages, 1, 5), nw::random(nw::unit::rows, 8, 42), nw::bind_all(), nw::bind(nw::unit::rows),
          nw::blocks(nw::unit::columns), nw::block_exclusive(), nw::block_exclusive({0}),
          nw::cyclic(nw::unit::rows).on(nw::nodes()).in(nw::granule::base)}) {
        nw::status placed = a.place(p);
        CHECK(placed.done() == placed.message().empty(), "status %d: %s", placed.code(), placed.message().c_str());
    }
    std::fill(a.begin(), a.end(), 1.0);
    std::vector<int> nodes = a.page_nodes();
    std::vector<std::size_t> pages = a.histogram();
    CHECK(nodes.size() == 256 && std::find(nodes.begin(), nodes.end(), -1) == nodes.end(), "%zu pages", nodes.size());
    CHECK(std::accumulate(pages.begin(), pages.end(), std::size_t(0)) == 256, "the histogram has all");
    (void)a.scatter(), (void)a.gather(nw::nodes().front());
    (void)a.migrate_rows(nw::nodes().front(), 2, 10);
    CHECK(a(255, 511) == 1.0, "contents stay");
    (void)a.replicate();
    nw::view<const double, 2> near = a.nearest();
    CHECK(near(17, 3) == 1.0, "the nearest copy is a copy");
    nw::copies_report copies = a.copies();
    std::size_t lying = std::accumulate(copies.pages.begin(), copies.pages.end(), std::size_t(0));
    CHECK(lying == 256 * static_cast<std::size_t>(copies.count) && copies.bytes == lying * nw_page_bytes(), "%zu",
          lying);
    CHECK(a.check_copies().code() == (copies.count ? NW_OK : NW_NOT_DONE), "%s", nw_last_error());
    a.drop_copies();
    CHECK(a.nearest().data() == a.data(), "no copies");
    CHECK(throws<std::invalid_argument>([&] { (void)a.replicate({99999}); }), "on no such node");
    (void)a.replicate({nw::nodes().front()});
    CHECK(a.nearest()(17, 3) == 1.0 && a.copies().count <= 1, "on a chosen node");
}

void files_are_mapped_and_copied() {
    std::FILE *file = std::tmpfile();
    std::vector<int> numbers(100000);
    std::iota(numbers.begin(), numbers.end(), 0);
    CHECK(file && std::fwrite(numbers.data(), sizeof(int), numbers.size(), file) == numbers.size(), "no file");
    std::fflush(file);
    nw::mapped_file<int> whole(fileno(file)), moved(std::move(whole)), part(fileno(file), 4 * sizeof(int), 3);
    CHECK(whole.empty() && moved.size() == numbers.size() && moved[99999] == 99999, "%zu items", moved.size());
    CHECK(part.size() == 3 && part[0] == 4 && part[2] == 6, "part");
    (void)moved.replicate();
    CHECK(moved.nearest()[77777] == 77777 && moved.check_copies().code() >= 0, "the copy");
    moved.drop_copies();
    CHECK(moved.copies().count == 0, "no copies");
    CHECK(throws<std::invalid_argument>([&] { nw::mapped_file<int> odd(fileno(file), 2); }), "not aligned");
    CHECK(throws<std::invalid_argument>([&] { nw::mapped_file<int> more(fileno(file), 0, 100001); }), "beyond the end");
    CHECK(throws<std::invalid_argument>([&] { nw::mapped_file<> none(-1); }), "no file");
    std::fclose(file);
}

void distributions_are_asked_before_they_are_enforced() {
    nw::array<double, 2> a(40, 30);
    nw::distribution latin = a.describe(nw::block_exclusive());
    std::vector<int> nodes = latin.nodes();
    int processors = nw_processors();
    CHECK(static_cast<int>(nodes.size()) == processors && latin.cuts(1).parts == processors, "%zu", nodes.size());
    CHECK(latin.item_node(0) == nodes[0], "the first block");
    (void)latin.distribute();
    nw::distribution moved(std::move(latin));
    CHECK(moved.item_node(a.size() - 1) == nodes[static_cast<std::size_t>((2 * processors - 2) % processors)],
          "the last");
}

void memory_from_elsewhere() {
    std::vector<double> v(100000, 3.0);
    {
        nw::adopted<double, 2> guest(nw::view<double, 2>(v.data(), {100, 1000}));
        (void)guest.place(nw::cyclic(nw::unit::rows, 10));
        CHECK(known(v.data()) && guest(99, 999) == 3.0, "adopted");
        nw::array<double> own(10);
        CHECK(throws<std::invalid_argument>([&] { nw::adopted<double> mine(own); }), "the library's own array");
    }
    CHECK(!known(v.data()) && v[5] == 3.0, "forgotten, not freed");
    static std::array<int, 40000> array;
    {
        nw::adopted guest(v);
        nw::adopted other(array);
        static_assert(std::is_same<decltype(guest), nw::adopted<double, 1>>::value, "what the vector holds");
        (void)other.place(nw::blocks(nw::unit::pages));
        CHECK(guest.data() == v.data() && guest.size() == v.size() && known(array.data()), "containers");
        nw::view<double, 2> two(v.data() + 50000, {5, 10000});
        nw::adopted rows(two);
        CHECK(rows.extent(0) == 5, "a view keeps its extents");
        nw::adopted taken(std::move(other));
        CHECK(taken.data() == array.data() && !other.data(), "moved");
    }
    CHECK(!known(v.data()) && !known(array.data()), "all forgotten");
}

template <class Container> bool holds_squares(Container &c, long n) {
    for (long i = 0; i < n; i++)
        c.push_back(i * i);
    long i = 0;
    return std::all_of(c.begin(), c.end(), [&](long x) { return x == i * i && ++i; });
}

void containers_with_the_allocator() {
    nw::allocator<long> rows(nw::cyclic(nw::unit::rows, 512));
    std::vector<long, nw::allocator<long>> v(rows), small(10, rows);
    CHECK(holds_squares(v, 100000) && known(v.data()), "a large vector is an array");
    CHECK(!known(small.data()), "a small one is the heap's");
    std::list<long, nw::allocator<long>> l(rows);
    std::map<int, double, std::less<int>, nw::allocator<std::pair<const int, double>>> m(rows);
    for (int i = 0; i < 1000; i++)
        m[i] = i;
    CHECK(holds_squares(l, 1000) && m[999] == 999.0, "nodes");
    auto copy = v;
    auto taken = std::move(v);
    CHECK(copy == taken && known(copy.data()), "copies and moves");
    v.assign(100000, 1), taken.swap(v);
    CHECK(known(v.data()) && v == copy && known(taken.data()) && taken[99999] == 1, "what was moved from goes on");
    v = std::move(taken);
    taken.assign(50000, 2);
    CHECK(known(taken.data()) && v[0] == 1 && taken[49999] == 2, "after an assignment too");
    std::basic_string<char, std::char_traits<char>, nw::allocator<char>> s(100000, 'x'), t(std::move(s)), u;
    s.assign(70000, 'y'), u = std::move(t), t.assign(80000, 'z');
    CHECK(s[69999] == 'y' && t[79999] == 'z' && u.size() == 100000 && known(t.data()), "strings");
    nw::allocator<long> wrong(nw::cyclic(nw::unit::rows).on({4095}));
    CHECK(throws<std::invalid_argument>([&] { (std::vector<long, nw::allocator<long>>(100000, wrong)); }),
          "a wrong policy");
    CHECK(throws<std::bad_array_new_length>([&] { (void)rows.allocate(~std::size_t(0) / 4); }), "overflow");
    struct alignas(256) wide {
        char bytes[256];
    };
    std::vector<wide, nw::allocator<wide>> few(3), many(1000);
    CHECK(reinterpret_cast<std::uintptr_t>(few.data()) % 256 == 0, "alignment");
}

#ifdef __cpp_lib_memory_resource
void containers_with_the_memory_resource() {
    nw::memory_resource placed(nw::cyclic(nw::unit::pages));
    std::pmr::vector<long> v(&placed);
    CHECK(holds_squares(v, 100000) && known(v.data()), "a large block is an array");
    std::pmr::monotonic_buffer_resource pool(std::size_t(1) << 20, &placed);
    std::pmr::list<long> l(&pool);
    CHECK(holds_squares(l, 1000), "many small ones from a pool over it");
    CHECK(placed.is_equal(placed) && !(placed == nw::memory_resource(nw::bind_all())), "equality");
}
#endif

// ---- Ranges ------------------------------------------------------------------------------------------

void ranges_cover_once() {
    for (int c = 0; c < 2000; c++) {
        long begin = check_between(-50, 50), end = begin + check_between(-3, 120);
        int threads = static_cast<int>(check_between(1, 11)), id = static_cast<int>(check_between(0, 9));
        nw_cuts cuts = {begin, end, static_cast<int>(check_between(1, 9))};
        std::vector<int> plain(200), inverse(200), exclusive(200);
        for (int t = 0; t < threads; t++) {
            for (long i : nw::static_range(begin, end, t, threads))
                plain[static_cast<std::size_t>(i - begin)]++;
            for (long i : nw::static_inverse(begin, end, t, threads))
                inverse[static_cast<std::size_t>(i - begin)]++;
            for (long i : nw::exclusive(begin, end, cuts, id, t, threads))
                exclusive[static_cast<std::size_t>(i - begin)]++;
        }
        std::vector<int> once(200);
        std::fill_n(once.begin(), std::max(end - begin, 0l), 1);
        CHECK(plain == once && inverse == once && exclusive == once, "[%ld, %ld) over %d", begin, end, threads);
    }
}

void ranges_are_ranges() {
    nw::indices some(nw_range{3, 7});
    CHECK(some.size() == 4 && some.begin()[2] == 5 && *std::prev(some.end()) == 6, "random access");
    CHECK(std::accumulate(some.begin(), some.end(), 0l) == 18, "algorithms");
    CHECK(nw::indices(nw_range{5, 2}).empty(), "nothing");
#ifdef __cpp_lib_ranges
    static_assert(std::ranges::random_access_range<nw::indices> && std::ranges::sized_range<nw::indices> &&
                  std::ranges::view<nw::indices> && std::ranges::borrowed_range<nw::indices>);
    static_assert(std::ranges::forward_range<nw::exclusive_indices> && std::ranges::view<nw::exclusive_indices>);
    static_assert(std::ranges::contiguous_range<nw::array<double>>);
    long even = 0;
    for (long i : some | std::views::filter([](long i) { return i % 2 == 0; }))
        even += i;
    CHECK(even == 10, "views");
    nw::array<double> a(16);
    std::span<double> span(a);
    CHECK(span.data() == a.data() && span.size() == 16, "a span");
#endif
}

#ifdef __cpp_lib_mdspan
void mdspans_are_views() {
    nw::array<double, 2> a(3, 5);
    std::mdspan span = a.mdspan();
    span[2, 1] = 8.0;
    nw::view<double, 2> back(span);
    CHECK(a(2, 1) == 8.0 && back.extent(1) == 5 && back.data() == a.data(), "mdspan");
}
#endif

#ifdef _OPENMP
void a_matched_sweep_is_the_serial_one() {
    const long rows = 61, columns = 47;
    nw::array<double, 2> u(rows, columns), serial(rows, columns);
    for (double &x : u)
        x = static_cast<double>(check_between(0, 1000));
    std::copy(u.begin(), u.end(), serial.begin());
    for (long i = 1; i < rows; i++)
        for (long j = 1; j < columns - 1; j++)
            serial(i, j) += 0.5 * serial(i - 1, j);
    nw::distribution latin = u.describe(nw::block_exclusive());
    nw_cuts down = latin.cuts(0), across = latin.cuts(1);
#pragma omp parallel num_threads(7)
    for (int id = 0; id < down.parts; id++) {
        for (long j : nw::exclusive(1, columns - 1, across, id))
            for (long i : nw::part(down, id, 1, rows))
                u(i, j) += 0.5 * u[i - 1][j];
#pragma omp barrier
    }
    CHECK(std::equal(u.begin(), u.end(), serial.begin()), "results differ");
    std::vector<int> seen(static_cast<std::size_t>(rows));
#pragma omp parallel num_threads(5)
    for (long i : nw::static_inverse(0, rows))
        seen[static_cast<std::size_t>(i)]++;
    CHECK(std::count(seen.begin(), seen.end(), 1) == rows, "static-inverse in a team");
    nw::status bound = nw::bind_openmp();
    CHECK(bound.done() == bound.message().empty(), "%s", bound.message().c_str());
}
#endif

} // namespace

int main() {
    arrays_are_zeroed_and_freed_with_their_scope();
    moves_leave_nothing_behind();
    wrong_arguments_throw_and_change_nothing();
    the_machine_never_throws();
    files_are_mapped_and_copied();
    distributions_are_asked_before_they_are_enforced();
    memory_from_elsewhere();
    containers_with_the_allocator();
#ifdef __cpp_lib_memory_resource
    containers_with_the_memory_resource();
#endif
    ranges_cover_once();
    ranges_are_ranges();
#ifdef __cpp_lib_mdspan
    mdspans_are_views();
#endif
#ifdef _OPENMP
    a_matched_sweep_is_the_serial_one();
#endif
    nw::array<std::complex<double>> complex(8);
    CHECK(complex[3] == std::complex<double>(), "complex numbers");
    return check_end();
}
