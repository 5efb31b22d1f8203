/* Counts all accesses of a loop in one call: a group of accesses that is repeated at a stride. */
#include "counters.h"

#define LINE_OF(offset) ((uint32_t)(offset) >> NW_LINE_SHIFT)

static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

static inline void add(nw_thread *thread, nw_slot *slot, uint64_t reads, uint64_t writes, uint64_t lines) {
    slot->counter->reads += reads;
    slot->counter->writes += writes;
    slot->bitmap |= lines;
    if (nw_unlikely(thread->until_slice != INT64_MAX)) {
        *nw_paced(thread, slot) += reads + writes;
        thread->until_slice -= (int64_t)(reads + writes);
    }
}

static inline uint64_t lines_of(uint32_t offset, uint32_t bytes) {
    return nw_lines(LINE_OF(offset), LINE_OF(min_u32(offset + bytes - 1, NW_PAGE_MASK)));
}

/* Counts the group `times` times at one address, where its accesses begin on different pages. */
static NW_COLD void crossing(nw_thread *thread, uint64_t address, uint64_t times, const nw_group *group,
                             const void *code) {
    for (uint32_t i = 0; i < group->accesses;) {
        uint64_t begin = address + (uint64_t)group->access[i].offset;
        uint64_t end = (begin | NW_PAGE_MASK) + 1 - address;
        uint64_t reads = 0, writes = 0, lines = 0;
        for (; i < group->accesses && (uint64_t)group->access[i].offset < end; i++) {
            const nw_access *access = &group->access[i];
            reads += access->reads;
            writes += access->writes;
            lines |= lines_of((address + (uint64_t)access->offset) & NW_PAGE_MASK, access->size);
        }
        add(thread, nw_find(thread, begin, code), times * reads, times * writes, lines);
    }
}

/* Lines of `times` groups from `offset` on, all beginning on one page. */
static inline uint64_t lines_strided(uint32_t offset, uint32_t stride, uint32_t times, uint32_t span) {
    if (times == 1)
        return lines_of(offset, span);
    if (nw_likely(stride < span + (1u << NW_LINE_SHIFT)))
        return lines_of(offset, (times - 1) * stride + span);
    uint64_t lines = 0;
    for (uint32_t i = 0; i < times; i++)
        lines |= lines_of(offset + i * stride, span);
    return lines;
}

/* Of `times` repetitions from `offset` on, the number whose accesses all begin on this page. The first
 * repetition must be one of them. A division is needed only if some leave the page. */
static inline uint32_t fitting(uint32_t offset, uint64_t stride, uint64_t times, uint32_t last) {
    uint32_t room = NW_PAGE_MASK - last - offset;
    if (stride > room)
        return 1;
    if (times <= NW_PAGE_MASK && (times - 1) * stride <= room)
        return (uint32_t)times;
    return min_u32(room / (uint32_t)stride + 1, times > NW_PAGE_MASK ? NW_PAGE_MASK : (uint32_t)times);
}

/* Ascending, stride > 0; each repetition counts `weight` times. */
static inline void ascending(nw_thread *thread, uint64_t address, uint64_t stride, uint64_t times, uint64_t weight,
                             const nw_group *group, const void *code) {
    while (times > 0) {
        uint32_t offset = address & NW_PAGE_MASK;
        if (nw_unlikely(offset + group->last > NW_PAGE_MASK)) {
            crossing(thread, address, weight, group, code);
            address += stride;
            times--;
            continue;
        }
        uint32_t n = fitting(offset, stride, times, group->last);
        add(thread, nw_find(thread, address, code), n * weight * group->reads, n * weight * group->writes,
            lines_strided(offset, (uint32_t)stride, n, group->span));
        address += n * stride;
        times -= n;
    }
}

static inline void in_place(nw_thread *thread, uint64_t address, uint64_t times, const nw_group *group,
                            const void *code) {
    uint32_t offset = address & NW_PAGE_MASK;
    if (nw_unlikely(offset + group->last > NW_PAGE_MASK)) {
        crossing(thread, address, times, group, code);
        return;
    }
    add(thread, nw_find(thread, address, code), times * group->reads, times * group->writes,
        lines_of(offset, group->span));
}

static inline void range(nw_thread *thread, uint64_t address, int64_t stride, uint64_t times, uint64_t weight,
                         const nw_group *group, const void *code) {
    if (times == 0 || weight == 0)
        return;
    if (stride == 0 || times == 1)
        in_place(thread, address, times * weight, group, code);
    else if (stride > 0)
        ascending(thread, address, (uint64_t)stride, times, weight, group, code);
    else
        ascending(thread, address + (uint64_t)stride * (times - 1), -(uint64_t)stride, times, weight, group, code);
    if (nw_unlikely(thread->until_slice <= 0))
        nw_slice_reached(thread);
}

void nw_range(uint64_t address, int64_t stride, uint64_t times, const nw_group *group) {
    range(nw_thread_here(), address, stride, times, 1, group, __builtin_return_address(0));
}

/* Dense rows, ascending. Rows on the same page need one lookup. */
static void rows(nw_thread *thread, uint64_t address, uint64_t stride, uint64_t times, uint64_t across,
                 uint64_t repeats, const nw_group *group, const void *code) {
    uint64_t last = (repeats - 1) * across + group->last, span = (repeats - 1) * across + group->span;
    while (times > 0) {
        uint64_t offset = address & NW_PAGE_MASK, lines = 0, n = 0;
        for (; n < times && offset + last <= NW_PAGE_MASK; n++, offset += stride)
            lines |= lines_of((uint32_t)offset, (uint32_t)span);
        if (n > 0)
            add(thread, nw_find(thread, address, code), n * repeats * group->reads, n * repeats * group->writes, lines);
        else
            range(thread, address, (int64_t)across, repeats, n = 1, group, code);
        address += n * stride;
        times -= n;
    }
    if (nw_unlikely(thread->until_slice <= 0))
        nw_slice_reached(thread);
}

/* The order of counting within a grid does not matter, so negative strides are reversed. */
void nw_grid(uint64_t address, int64_t stride, uint64_t times, int64_t across, uint64_t repeats,
             const nw_group *group) {
    nw_thread *thread = nw_thread_here();
    const void *code = __builtin_return_address(0);
    uint64_t dense = group->span + (1u << NW_LINE_SHIFT);
    if (stride < 0) {
        address += (uint64_t)stride * (times - 1);
        stride = -stride;
    }
    if (across < 0) {
        address += (uint64_t)across * (repeats - 1);
        across = -across;
    }
    if (times == 0 || repeats == 0)
        return;
    if (stride == 0) {
        range(thread, address, across, repeats, times, group, code);
    } else if (across == 0) {
        range(thread, address, stride, times, repeats, group, code);
    } else if ((uint64_t)stride == (uint64_t)across * repeats) {
        range(thread, address, across, times * repeats, 1, group, code);
    } else if ((uint64_t)stride < dense) {
        for (uint64_t i = 0; i < repeats; i++)
            range(thread, address + i * (uint64_t)across, stride, times, 1, group, code);
    } else if ((uint64_t)across < dense) {
        rows(thread, address, (uint64_t)stride, times, (uint64_t)across, repeats, group, code);
    } else {
        for (uint64_t i = 0; i < times; i++)
            range(thread, address + i * (uint64_t)stride, across, repeats, 1, group, code);
    }
}

void nw_lanes(const uint64_t *addresses, uint64_t mask, uint32_t lanes, const nw_group *group) {
    nw_thread *thread = nw_thread_here();
    for (uint32_t i = 0; i < lanes; i++)
        if (mask >> i & 1)
            range(thread, addresses[i], 0, 1, 1, group, __builtin_return_address(0));
}
