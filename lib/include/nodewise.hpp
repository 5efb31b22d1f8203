// libnodewise for C++17 and later, in headers alone; link with libnodewise.
//
//     nw::array<double, 2> u(n, n);                          // zeroed, freed at the end of its scope
//     (void)u.place(nw::bind(nw::unit::rows));
//     #pragma omp parallel
//     for (long i : nw::static_range(1, n - 1))
//         for (std::size_t j = 0; j < u.extent(1); j++)
//             u(i, j) = u[i - 1][j];
//
// What the machine cannot do never throws: calls that place return an nw::status that says what was not
// done. Wrong arguments throw std::invalid_argument, too little memory std::bad_alloc, both before
// anything has changed.
#ifndef NODEWISE_HPP
#define NODEWISE_HPP

#if __cplusplus < 201703L
#error "nodewise.hpp needs C++17: compile with -std=c++17 or later; nodewise.h does with less"
#endif

#include "nodewise_schedule.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __has_include(<memory_resource>)
#include <memory_resource>
#endif
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif

namespace nw {

// ---- Results ----------------------------------------------------------------------------------------

// What a call that places or binds did: all (`done`), or what not, in one line.
class [[nodiscard]] status {
public:
    // Throws where the library says that an argument is wrong or memory has ended.
    explicit status(int code) : code_(code), message_(code == NW_OK ? "" : nw_last_error()) {
        if (code == NW_NO_MEMORY)
            throw std::bad_alloc();
        if (code < 0)
            throw std::invalid_argument(message_);
    }
    nw_status code() const noexcept { return static_cast<nw_status>(code_); }
    bool done() const noexcept { return code_ == NW_OK; }
    explicit operator bool() const noexcept { return done(); }
    const std::string &message() const noexcept { return message_; }

private:
    int code_;
    std::string message_;
};

// ---- Policies: values --------------------------------------------------------------------------------

enum class unit { pages = NW_PAGES, rows = NW_ROWS, columns = NW_COLUMNS, items = NW_ITEMS };
enum class granule { automatic = NW_GRANULE_AUTO, base = NW_GRANULE_BASE, huge = NW_GRANULE_HUGE };

// nw::cyclic(nw::unit::rows, 4).on({0, 2}).weights({3, 1})
class policy {
public:
    explicit policy(nw_policy plain = nw_first_touch()) : plain_(plain) {
        if (plain.nodes)
            nodes_.assign(plain.nodes, plain.nodes + plain.node_count);
        if (plain.weights)
            weights_.assign(plain.weights, plain.weights + plain.node_count);
    }
    policy on(std::vector<int> nodes) const {
        policy other(*this);
        other.nodes_ = std::move(nodes);
        return other;
    }
    // One a node of the list of `on`, which must be given too.
    policy weights(std::vector<unsigned> weights) const {
        policy other(*this);
        other.weights_ = std::move(weights);
        return other;
    }
    policy in(granule size) const {
        policy other(*this);
        other.plain_.granule = static_cast<nw_granule>(size);
        return other;
    }
    policy threads(int count) const {
        policy other(*this);
        other.plain_.threads = count;
        return other;
    }
    // Good as long as this policy lives.
    nw_policy plain() const {
        if (!weights_.empty() && weights_.size() != nodes_.size())
            throw std::invalid_argument("a policy's weights are not as many as its nodes: name both");
        nw_policy plain = plain_;
        plain.nodes = nodes_.empty() ? nullptr : nodes_.data();
        plain.node_count = static_cast<int>(nodes_.size());
        plain.weights = weights_.empty() ? nullptr : weights_.data();
        return plain;
    }

private:
    nw_policy plain_;
    std::vector<int> nodes_;
    std::vector<unsigned> weights_;
};

inline policy first_touch() { return policy(nw_first_touch()); }
inline policy cyclic(unit u, std::size_t block = 1) { return policy(nw_cyclic(static_cast<nw_unit>(u), block)); }
inline policy block_cyclic(std::size_t items) { return policy(nw_block_cyclic(items)); }
inline policy skew(unit u, std::size_t block = 1) { return policy(nw_skew(static_cast<nw_unit>(u), block)); }
inline policy prime(unit u, std::size_t block, unsigned prime) {
    return policy(nw_prime(static_cast<nw_unit>(u), block, prime));
}
inline policy random(unit u, std::size_t block = 1, std::uint64_t seed = 0) {
    nw_policy plain = nw_random(static_cast<nw_unit>(u), block);
    plain.seed = seed;
    return policy(plain);
}
inline policy bind_all() { return policy(nw_bind_all()); }
inline policy bind(unit u) { return policy(nw_bind(static_cast<nw_unit>(u))); }
inline policy blocks(unit u) { return policy(nw_blocks(static_cast<nw_unit>(u))); }
// The dimensions to cut, as {0, 2}; none: the first two.
inline policy block_exclusive(std::initializer_list<int> dimensions = {}) {
    unsigned mask = 0;
    for (int d : dimensions) {
        if (d < 0 || d >= NW_DIMENSIONS)
            throw std::invalid_argument("block_exclusive: no dimension " + std::to_string(d));
        mask |= 1u << d;
    }
    return policy(nw_block_exclusive(mask));
}

// ---- Distributions ------------------------------------------------------------------------------------

class distribution {
public:
    distribution(const void *array, const policy &by) {
        nw_policy plain = by.plain();
        distr_.reset(nw_describe_by(array, &plain));
        if (!distr_)
            throw std::invalid_argument(nw_last_error());
    }
    status distribute() const { return status(nw_distribute(get())); }
    // Whether pages hold items of several nodes.
    bool rounded() const noexcept { return nw_distr_status(get()) == NW_ROUNDED; }
    int page_node(std::size_t page) const noexcept { return nw_distr_page_node(get(), page); }
    int item_node(std::size_t item) const noexcept { return nw_distr_item_node(get(), item); }
    nw_cuts cuts(int dimension) const noexcept { return nw_distr_cuts(get(), dimension); }
    std::vector<int> nodes() const {
        std::vector<int> list(static_cast<std::size_t>(nw_distr_nodes(get(), nullptr, 0)));
        nw_distr_nodes(get(), list.data(), static_cast<int>(list.size()));
        return list;
    }
    const nw_distr *get() const noexcept { return distr_.get(); }

private:
    struct release {
        void operator()(nw_distr *distr) const noexcept { nw_distr_free(distr); }
    };
    std::unique_ptr<nw_distr, release> distr_;
};

// ---- Views and arrays ----------------------------------------------------------------------------------

// Somebody's items in row-major order: a pointer and extents, copied freely.
template <class T, std::size_t Rank = 1> class view {
    static_assert(Rank >= 1 && Rank <= NW_DIMENSIONS, "arrays have 1 to 4 dimensions");

public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using extents_type = std::array<std::size_t, Rank>;

    constexpr view() noexcept : data_(nullptr), extents_() {}
    constexpr view(T *data, const extents_type &extents) noexcept : data_(data), extents_(extents) {}
    template <class U, class = std::enable_if_t<std::is_convertible<U (*)[], T (*)[]>::value>>
    constexpr view(const view<U, Rank> &other) noexcept : data_(other.data()), extents_(other.extents()) {}

    static constexpr std::size_t rank() noexcept { return Rank; }
    constexpr T *data() const noexcept { return data_; }
    constexpr const extents_type &extents() const noexcept { return extents_; }
    constexpr std::size_t extent(std::size_t dimension) const noexcept { return extents_[dimension]; }
    constexpr std::size_t size() const noexcept {
        std::size_t items = 1;
        for (std::size_t extent : extents_)
            items *= extent;
        return items;
    }
    constexpr bool empty() const noexcept { return size() == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size(); }

    // a(i, j): not checked.
    template <class... Index> constexpr T &operator()(Index... index) const noexcept {
        static_assert(sizeof...(Index) == Rank, "as many indices as dimensions");
        std::size_t at = 0, dimension = 0;
        ((at = at * extents_[dimension++] + static_cast<std::size_t>(index)), ...);
        return data_[at];
    }
#if defined(__cpp_multidimensional_subscript)
    template <class First, class Second, class... Index>
    constexpr T &operator[](First first, Second second, Index... index) const noexcept {
        return (*this)(first, second, index...);
    }
#endif
    // a[i][j]
    template <class Index> constexpr decltype(auto) operator[](Index index) const noexcept {
        if constexpr (Rank == 1) {
            return (data_[static_cast<std::size_t>(index)]); // a reference
        } else {
            std::array<std::size_t, Rank - 1> rest{};
            std::size_t items = 1;
            for (std::size_t d = 1; d < Rank; d++)
                items *= rest[d - 1] = extents_[d];
            return view<T, Rank - 1>(data_ + static_cast<std::size_t>(index) * items, rest);
        }
    }
#ifdef __cpp_lib_mdspan
    using mdspan_type = std::mdspan<T, std::dextents<std::size_t, Rank>>;
    constexpr view(const mdspan_type &span) noexcept : data_(span.data_handle()) {
        for (std::size_t d = 0; d < Rank; d++)
            extents_[d] = span.extent(d);
    }
    constexpr operator mdspan_type() const noexcept { return mdspan_type(data_, extents_); }
    constexpr mdspan_type mdspan() const noexcept { return *this; }
#endif

private:
    T *data_;
    extents_type extents_;
};

// What the copies of an array take, and the pages of all of them by node number, as the kernel says.
struct copies_report : nw_copies {
    std::vector<std::size_t> pages;
};

namespace detail {
inline int last_node() {
    std::vector<int> nodes(static_cast<std::size_t>(nw_nodes(nullptr, 0)));
    nw_nodes(nodes.data(), static_cast<int>(nodes.size()));
    return nodes.back();
}
inline status replicate(void *array, const std::vector<int> &nodes) {
    return status(nodes.empty() ? nw_replicate(array)
                                : nw_replicate_on(array, nodes.data(), static_cast<int>(nodes.size())));
}
inline copies_report copies(const void *array) {
    copies_report report{};
    report.pages.resize(static_cast<std::size_t>(last_node()) + 1);
    int code = nw_copies_of(array, &report, report.pages.data(), static_cast<int>(report.pages.size()));
    if (code < 0)
        (void)status(code);
    return report;
}
} // namespace detail

// What can be done with memory that the library knows; made by `array` and `adopted`.
template <class T, std::size_t Rank> class placeable : public view<T, Rank> {
public:
    placeable(const placeable &) = delete;
    placeable &operator=(const placeable &) = delete;

    status place(const policy &by) {
        nw_policy plain = by.plain();
        return status(nw_place_by(this->data(), &plain));
    }
    distribution describe(const policy &by) const { return distribution(this->data(), by); }
    status migrate_rows(int node, std::size_t count, std::size_t first) {
        return status(nw_migrate_rows(this->data(), node, count, first));
    }
    status migrate_columns(int node, std::size_t count, std::size_t first) {
        return status(nw_migrate_columns(this->data(), node, count, first));
    }
    // Equal parts over the nodes of the list; an empty one: all.
    status scatter(const std::vector<int> &nodes = {}) {
        return status(nw_scatter(this->data(), nodes.empty() ? nullptr : nodes.data(), static_cast<int>(nodes.size())));
    }
    status gather(int node) { return status(nw_gather(this->data(), node)); }

    // From now on only read, and each node of the list with a copy of its own; an empty one: all that have CPUs.
    status replicate(const std::vector<int> &nodes = {}) { return detail::replicate(this->data(), nodes); }
    view<const T, Rank> nearest() const noexcept {
        return {static_cast<const T *>(nw_nearest(this->data())), this->extents()};
    }
    copies_report copies() const { return detail::copies(this->data()); }
    // NW_STALE: the array was written to since.
    status check_copies() const { return status(nw_check_copies(this->data())); }
    // When no thread reads them any more.
    void drop_copies() { nw_drop_copies(this->data()); }

    // Node of each page; -1: not touched.
    std::vector<int> page_nodes() const {
        nw_shape shape{};
        check(nw_shape_of(this->data(), &shape));
        std::vector<int> nodes(shape.pages, -1);
        check(nw_page_nodes(this->data(), nodes.data(), nodes.size()));
        return nodes;
    }
    // Pages by node number.
    std::vector<std::size_t> histogram() const {
        std::vector<std::size_t> pages(static_cast<std::size_t>(detail::last_node()) + 1);
        check(nw_histogram(this->data(), pages.data(), static_cast<int>(pages.size()), nullptr));
        return pages;
    }

protected:
    static_assert(std::is_trivially_copyable<T>::value && std::is_trivially_destructible<T>::value &&
                      !std::is_const<T>::value,
                  "items begin as zero bytes and end without a destructor");
    using view_type = view<T, Rank>;
    placeable() noexcept = default;
    placeable(T *data, const typename view_type::extents_type &extents) noexcept : view_type(data, extents) {}
    ~placeable() = default;
    // Leaves the other one empty.
    placeable(placeable &&other) noexcept : view_type(static_cast<view_type &>(other)) { other.become({}); }
    placeable &operator=(placeable &&other) noexcept = delete;
    void become(const view_type &other) noexcept { static_cast<view_type &>(*this) = other; }
    void swap(placeable &other) noexcept {
        std::swap(static_cast<view_type &>(*this), static_cast<view_type &>(other));
    }

private:
    // Queries fail for wrong arguments only.
    static void check(int code) {
        if (code < 0)
            (void)status(code);
    }
};

// An array of the library: zeroed, in pages of its own, freed with this object. Moved, never copied.
template <class T, std::size_t Rank = 1> class array : public placeable<T, Rank> {
    using base = placeable<T, Rank>;

public:
    using extents_type = typename view<T, Rank>::extents_type;

    array() noexcept = default;
    explicit array(const extents_type &extents) : base(allocate(extents), extents) {}
    template <class... Extent,
              class = std::enable_if_t<sizeof...(Extent) == Rank && (std::is_integral<Extent>::value && ...)>>
    explicit array(Extent... extent) : array(extents_type{checked(extent)...}) {}
    array(array &&) noexcept = default;
    array &operator=(array &&other) noexcept {
        array taken(std::move(other));
        this->swap(taken);
        return *this;
    }
    ~array() {
        if (this->data())
            nw_free(this->data());
    }

private:
    template <class Extent> static std::size_t checked(Extent extent) {
        if constexpr (std::is_signed<Extent>::value)
            if (extent < 0)
                throw std::invalid_argument("an array's extent is " + std::to_string(extent));
        return static_cast<std::size_t>(extent);
    }
    static T *allocate(const extents_type &extents) {
        for (std::size_t extent : extents)
            if (extent == 0)
                throw std::invalid_argument("an array's extent is 0");
        void *data = nw_alloc(sizeof(T), static_cast<int>(Rank), extents.data());
        if (!data)
            throw std::bad_alloc();
        return static_cast<T *>(data);
    }
};

namespace detail {
template <class T, std::size_t Rank> std::true_type is_view(const view<T, Rank> *);
std::false_type is_view(const void *);
// What a container of contiguous items holds: a std::vector, a std::array, a static array.
template <class Container>
using item_of = std::enable_if_t<!decltype(is_view(static_cast<std::remove_cv_t<Container> *>(nullptr)))::value,
                                 std::remove_pointer_t<decltype(std::data(std::declval<Container &>()))>>;
} // namespace detail

// Memory from elsewhere that the library may place while this object lives: `nw::adopted v(vector)`, or
// by any extents `nw::adopted u(nw::view<double, 2>(pointer, {n, m}))`. The memory must outlive it, and a
// container must not grow meanwhile. Pages that it shares with other memory stay where they are.
template <class T, std::size_t Rank = 1> class adopted : public placeable<T, Rank> {
    using base = placeable<T, Rank>;

public:
    template <class Container,
              class = std::enable_if_t<Rank == 1 && std::is_same<detail::item_of<Container>, T>::value>>
    explicit adopted(Container &items) : adopted(view<T, Rank>(std::data(items), {std::size(items)})) {}
    explicit adopted(view<T, Rank> memory) : base(memory.data(), memory.extents()) {
        (void)status(nw_adopt(memory.data(), sizeof(T), static_cast<int>(Rank), memory.extents().data()));
    }
    adopted(adopted &&) noexcept = default;
    adopted &operator=(adopted &&) = delete;
    ~adopted() {
        if (this->data())
            nw_forget(this->data());
    }
};
template <class T, std::size_t Rank> adopted(view<T, Rank>) -> adopted<T, Rank>;
template <class Container> adopted(Container &) -> adopted<detail::item_of<Container>>;

// A file that is only read, such as a model's weights: mapped while this object lives. Its copies are read from the file.
// The descriptor may be closed. `items` 0: as many as there are from byte `offset` on, which T must be aligned to.
template <class T = unsigned char> class mapped_file : public view<const T> {
    static_assert(std::is_trivially_copyable<T>::value && !std::is_const<T>::value, "items begin as bytes of a file");

public:
    explicit mapped_file(int descriptor, std::uint64_t offset = 0, std::size_t items = 0)
        : view<const T>(mapped(descriptor, offset, items)) {}
    mapped_file(mapped_file &&other) noexcept : view<const T>(other) { static_cast<view<const T> &>(other) = {}; }
    mapped_file &operator=(mapped_file &&) = delete;
    ~mapped_file() {
        if (this->data())
            nw_free(memory());
    }
    status replicate(const std::vector<int> &nodes = {}) { return detail::replicate(memory(), nodes); }
    view<const T> nearest() const noexcept {
        return {static_cast<const T *>(nw_nearest(this->data())), this->extents()};
    }
    copies_report copies() const { return detail::copies(this->data()); }
    // NW_STALE: the file was changed since.
    status check_copies() const { return status(nw_check_copies(this->data())); }
    // When no thread reads them any more.
    void drop_copies() { nw_drop_copies(memory()); }

private:
    void *memory() const noexcept { return const_cast<T *>(this->data()); }
    static view<const T> mapped(int descriptor, std::uint64_t offset, std::size_t items) {
        if (offset % alignof(T) || items > std::numeric_limits<std::size_t>::max() / sizeof(T))
            throw std::invalid_argument("no such items in a file: " + std::to_string(items) + " from byte " +
                                        std::to_string(offset) + " on");
        void *data = nw_map_file(descriptor, offset, items * sizeof(T));
        nw_shape shape{};
        if (!data)
            throw std::invalid_argument(nw_last_error());
        nw_shape_of(data, &shape);
        return {static_cast<const T *>(data), {shape.items / sizeof(T)}};
    }
};

// ---- Memory for containers ------------------------------------------------------------------------------

// Allocations of this many bytes and more get pages of their own and are placed. A smaller one would waste
// a mapping and most of a page, and shares its page with strangers anyway: it is the usual heap's.
constexpr std::size_t placed_bytes = 65536;

namespace detail {
// One array of bytes, placed; wrong policies throw, and then nothing stays allocated.
inline void *allocate_placed(std::size_t bytes, std::size_t item, const policy &by) {
    std::size_t items = bytes / item;
    void *data = nw_alloc(item, 1, &items);
    if (!data)
        throw std::bad_alloc();
    try {
        nw_policy plain = by.plain();
        (void)status(nw_place_by(data, &plain));
    } catch (...) {
        nw_free(data);
        throw;
    }
    return data;
}
constexpr std::size_t most_alignment = 4096; // of any page
} // namespace detail

// For std::vector and its like: std::vector<double, nw::allocator<double>> v(n, nw::bind(nw::unit::rows)).
// A unit is an item of the container. Any of them frees what another one allocated.
template <class T> class allocator {
    static_assert(alignof(T) <= detail::most_alignment, "no alignment beyond a page's");

public:
    using value_type = T;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    allocator() : allocator(first_touch()) {}
    allocator(const policy &by) : by_(std::make_shared<const policy>(by)) {}
    // Copied, never moved: a container that was moved from allocates again.
    allocator(const allocator &) noexcept = default;
    allocator &operator=(const allocator &) noexcept = default;
    template <class U> allocator(const allocator<U> &other) noexcept : by_(other.shared()) {}

    [[nodiscard]] T *allocate(std::size_t n) {
        if (n > std::numeric_limits<std::size_t>::max() / sizeof(T))
            throw std::bad_array_new_length();
        if (n * sizeof(T) >= placed_bytes)
            return static_cast<T *>(detail::allocate_placed(n * sizeof(T), sizeof(T), *by_));
        if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
            return static_cast<T *>(::operator new(n * sizeof(T), std::align_val_t(alignof(T))));
        else
            return static_cast<T *>(::operator new(n * sizeof(T)));
    }
    void deallocate(T *memory, std::size_t n) noexcept {
        if (n * sizeof(T) >= placed_bytes)
            nw_free(memory);
        else if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
            ::operator delete(memory, std::align_val_t(alignof(T)));
        else
            ::operator delete(memory);
    }
    const std::shared_ptr<const policy> &shared() const noexcept { return by_; }

private:
    std::shared_ptr<const policy> by_;
};
template <class T, class U> bool operator==(const allocator<T> &, const allocator<U> &) noexcept { return true; }
template <class T, class U> bool operator!=(const allocator<T> &, const allocator<U> &) noexcept { return false; }

#ifdef __cpp_lib_memory_resource
// Large blocks placed by bytes, small ones from `upstream`. To place many small ones too, put a pool in
// front: std::pmr::monotonic_buffer_resource pool(1 << 20, &placed).
class memory_resource : public std::pmr::memory_resource {
public:
    explicit memory_resource(policy by, std::pmr::memory_resource *upstream = std::pmr::get_default_resource())
        : by_(std::move(by)), upstream_(upstream) {}
    std::pmr::memory_resource *upstream() const noexcept { return upstream_; }

private:
    static bool placed(std::size_t bytes, std::size_t alignment) noexcept {
        return bytes >= placed_bytes && alignment <= detail::most_alignment;
    }
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        return placed(bytes, alignment) ? detail::allocate_placed(bytes, 1, by_)
                                        : upstream_->allocate(bytes, alignment);
    }
    void do_deallocate(void *memory, std::size_t bytes, std::size_t alignment) override {
        if (placed(bytes, alignment))
            nw_free(memory);
        else
            upstream_->deallocate(memory, bytes, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }

    policy by_;
    std::pmr::memory_resource *upstream_;
};
#endif

// ---- Machine and threads ----------------------------------------------------------------------------------

inline std::vector<int> nodes() {
    std::vector<int> list(static_cast<std::size_t>(nw_nodes(nullptr, 0)));
    nw_nodes(list.data(), static_cast<int>(list.size()));
    return list;
}
inline std::vector<int> cpus() {
    std::vector<int> list(static_cast<std::size_t>(nw_cpus(nullptr, 0)));
    nw_cpus(list.data(), static_cast<int>(list.size()));
    return list;
}
inline status bind_thread(int thread) { return status(nw_bind_thread(thread)); }
inline status bind_threads() { return status(nw_bind_threads()); }
#ifdef _OPENMP
[[maybe_unused]] static status bind_openmp() { return status(nw_bind_openmp()); }
#endif

} // namespace nw

#endif
