// Schedules as ranges of iterations, for C++17 and later: nodewise_schedule.h in loops over ranges.
//
//     #pragma omp parallel
//     for (int id = 0; id < rows.parts; id++) {
//         for (long j : nw::exclusive(1, n - 1, columns, id))
//             for (long i : nw::part(rows, id, 1, n - 1))
//                 u(i, j) += u(i - 1, j);
//         #pragma omp barrier
//     }
#ifndef NODEWISE_SCHEDULE_HPP
#define NODEWISE_SCHEDULE_HPP

#include "nodewise_schedule.h"

#include <cstddef>
#include <iterator>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_ranges
#include <ranges>
#endif

namespace nw {

// Iterations begin to end - 1.
class indices {
public:
    class iterator {
    public:
        using iterator_category = std::random_access_iterator_tag;
        using value_type = long;
        using difference_type = long;
        using pointer = const long *;
        using reference = long;

        constexpr iterator() noexcept : at_(0) {}
        constexpr explicit iterator(long at) noexcept : at_(at) {}
        constexpr long operator*() const noexcept { return at_; }
        constexpr long operator[](long step) const noexcept { return at_ + step; }
        constexpr iterator &operator++() noexcept { return ++at_, *this; }
        constexpr iterator &operator--() noexcept { return --at_, *this; }
        constexpr iterator operator++(int) noexcept { return iterator(at_++); }
        constexpr iterator operator--(int) noexcept { return iterator(at_--); }
        constexpr iterator &operator+=(long step) noexcept { return at_ += step, *this; }
        constexpr iterator &operator-=(long step) noexcept { return at_ -= step, *this; }
        friend constexpr iterator operator+(iterator i, long step) noexcept { return i += step; }
        friend constexpr iterator operator+(long step, iterator i) noexcept { return i += step; }
        friend constexpr iterator operator-(iterator i, long step) noexcept { return i -= step; }
        friend constexpr long operator-(iterator a, iterator b) noexcept { return a.at_ - b.at_; }
        friend constexpr bool operator==(iterator a, iterator b) noexcept { return a.at_ == b.at_; }
        friend constexpr bool operator!=(iterator a, iterator b) noexcept { return a.at_ != b.at_; }
        friend constexpr bool operator<(iterator a, iterator b) noexcept { return a.at_ < b.at_; }
        friend constexpr bool operator>(iterator a, iterator b) noexcept { return a.at_ > b.at_; }
        friend constexpr bool operator<=(iterator a, iterator b) noexcept { return a.at_ <= b.at_; }
        friend constexpr bool operator>=(iterator a, iterator b) noexcept { return a.at_ >= b.at_; }

    private:
        long at_;
    };

    constexpr indices() noexcept : range_() {}
    constexpr indices(nw_range range) noexcept : range_(range) {
        if (range_.end < range_.begin)
            range_.end = range_.begin;
    }
    constexpr iterator begin() const noexcept { return iterator(range_.begin); }
    constexpr iterator end() const noexcept { return iterator(range_.end); }
    constexpr std::size_t size() const noexcept { return static_cast<std::size_t>(range_.end - range_.begin); }
    constexpr bool empty() const noexcept { return range_.begin == range_.end; }

private:
    nw_range range_;
};

// A thread's iterations of one part of a block-exclusive sweep: those of a block after those of another.
class exclusive_indices {
public:
    class iterator {
    public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = long;
        using difference_type = std::ptrdiff_t;
        using pointer = const long *;
        using reference = long;

        iterator() noexcept : blocks_(), at_(0), done_(true) {}
        explicit iterator(const nw_exclusive &blocks) noexcept : blocks_(blocks), at_(0), done_(false) { advance(); }
        long operator*() const noexcept { return at_; }
        iterator &operator++() noexcept {
            if (++at_ == blocks_.end)
                advance();
            return *this;
        }
        iterator operator++(int) noexcept {
            iterator before(*this);
            ++*this;
            return before;
        }
        friend bool operator==(const iterator &a, const iterator &b) noexcept {
            return a.done_ == b.done_ && (a.done_ || (a.at_ == b.at_ && a.blocks_.node == b.blocks_.node));
        }
        friend bool operator!=(const iterator &a, const iterator &b) noexcept { return !(a == b); }

    private:
        void advance() noexcept { // to the next block that is not empty
            do
                done_ = !nw_exclusive_next(&blocks_);
            while (!done_ && blocks_.begin >= blocks_.end);
            at_ = blocks_.begin;
        }
        nw_exclusive blocks_;
        long at_;
        bool done_;
    };

    exclusive_indices() noexcept : blocks_() {}
    exclusive_indices(const nw_exclusive &blocks) noexcept : blocks_(blocks) {}
    iterator begin() const noexcept { return iterator(blocks_); }
    iterator end() const noexcept { return iterator(); }

private:
    nw_exclusive blocks_;
};

// For thread `thread` of `threads`...
inline indices static_range(long begin, long end, int thread, int threads) noexcept {
    return nw_static(begin, end, thread, threads);
}
inline indices static_inverse(long begin, long end, int thread, int threads) noexcept {
    return nw_static_inverse(begin, end, thread, threads);
}
inline exclusive_indices exclusive(long begin, long end, nw_cuts cuts, int id, int thread, int threads) noexcept {
    return nw_exclusive_begin(begin, end, cuts, id, thread, threads);
}
// ... and for the calling thread of an OpenMP team. Not `inline`: whether there is OpenMP may differ
// from one source file to the next.
[[maybe_unused]] static indices static_range(long begin, long end) noexcept {
    return static_range(begin, end, NW_THREAD, NW_THREADS);
}
[[maybe_unused]] static indices static_inverse(long begin, long end) noexcept {
    return static_inverse(begin, end, NW_THREAD, NW_THREADS);
}
[[maybe_unused]] static exclusive_indices exclusive(long begin, long end, nw_cuts cuts, int id) noexcept {
    return exclusive(begin, end, cuts, id, NW_THREAD, NW_THREADS);
}
// The indices of part `id` that a loop from begin to end - 1 has.
inline indices part(nw_cuts cuts, int id, long begin, long end) noexcept {
    return nw_meet(nw_part(cuts, id), begin, end);
}

} // namespace nw

#ifdef __cpp_lib_ranges
template <> inline constexpr bool std::ranges::enable_borrowed_range<nw::indices> = true;
template <> inline constexpr bool std::ranges::enable_borrowed_range<nw::exclusive_indices> = true;
template <> inline constexpr bool std::ranges::enable_view<nw::indices> = true;
template <> inline constexpr bool std::ranges::enable_view<nw::exclusive_indices> = true;
#endif

#endif
