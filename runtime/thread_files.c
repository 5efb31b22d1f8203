#define _GNU_SOURCE
#include "observer.h"

/* Files are mapped in multiples of this: the largest page size of the architecture. */
#if defined __x86_64__
#define GRAIN 4096u
#else
#define GRAIN 65536u
#endif

#define ROUND_UP(bytes) (((bytes) + GRAIN - 1) & ~(size_t)(GRAIN - 1))
#define TOUCHES_OFFSET (NW_COUNTERS_OFFSET + NW_FIRST_ENTRIES * sizeof(nw_counter))
_Static_assert(sizeof(nw_thread_header) <= NW_HEADER_BYTES, "the header has one page");
#define BASE_BYTES ROUND_UP(TOUCHES_OFFSET + NW_FIRST_ENTRIES * sizeof(nw_touch))

static uint32_t files; /* numbers given out in this process image */

void nw_thread_files_forget(void) { __atomic_store_n(&files, 0, __ATOMIC_RELAXED); }

/* Maps the next part of the file, with its offset in `*offset`, or else private memory, with 0 in `*offset`. Null if
 * neither is possible. */
static char *extend(nw_observer *observer, void *at, size_t bytes, uint64_t *offset) {
    bool backed;
    char *part = nw_map_backed("thread", observer->number, observer->file_bytes, bytes, at, &backed);
    *offset = backed ? observer->file_bytes : 0;
    observer->file_bytes += backed ? bytes : 0;
    return part;
}

/* Each segment is as large as all before it. */
static bool grow(nw_observer *observer, nw_segment *segments, uintptr_t *places, uint64_t *room, size_t entry) {
    uint64_t begin = *room, offset;
    if (observer == NULL || begin >> 31 != 0)
        return false;
    char *at = extend(observer, NULL, ROUND_UP(begin * entry), &offset);
    if (at == NULL)
        return false;
    uint32_t segment = nw_segment_of(begin);
    segments[segment] = (nw_segment){.offset = offset, .address = (uintptr_t)at};
    places[segment] = (uintptr_t)at - begin * entry;
    *room = begin * 2;
    return true;
}

bool nw_counters_grow(nw_thread *thread) {
    return grow(thread->observer, thread->header->counter_segment, thread->counters, &thread->counters_room,
                sizeof(nw_counter));
}

bool nw_touches_grow(nw_thread *thread) {
    return grow(thread->observer, thread->header->touch_segment, thread->touches, &thread->touches_room,
                sizeof(nw_touch));
}

/* Unmaps segments 1 to `to` - 1, or replaces them by private memory. Segment 0 is part of the base. */
static void drop_segments(nw_segment *segments, uintptr_t *places, uint32_t to, size_t entry, bool replace) {
    for (uint32_t i = 1; i < to; i++) {
        size_t bytes = ROUND_UP(((size_t)NW_FIRST_ENTRIES << (i - 1)) * entry);
        if (places[i] == 0)
            continue;
        if (replace)
            nw_map_private((void *)segments[i].address, bytes);
        else
            nw_unmap((void *)segments[i].address, bytes);
        places[i] = 0;
    }
}

static void drop_all_segments(nw_thread *thread, bool replace) {
    drop_segments(thread->header->counter_segment, thread->counters, NW_SEGMENTS, sizeof(nw_counter), replace);
    drop_segments(thread->header->touch_segment, thread->touches, NW_SEGMENTS, sizeof(nw_touch), replace);
}

static void log_counters(const nw_observer *observer) {
    nw_line line = {0};
    nw_line_begin(&line, "counters");
    nw_line_number(&line, observer->ordinal);
    nw_line_number(&line, observer->number);
    nw_line_number(&line, observer->thread.header->counters);
    nw_line_number(&line, observer->thread.header->touches);
    nw_event(&line);
}

/* Makes the thread's file, mapped at `observer->base` if that is set. */
static bool open_file(nw_observer *observer) {
    nw_thread *thread = &observer->thread;
    uint64_t offset;
    observer->number = __atomic_fetch_add(&files, 1, __ATOMIC_RELAXED);
    observer->file_bytes = 0;
    char *base = extend(observer, observer->base, BASE_BYTES, &offset);
    if (base == NULL)
        return false;
    observer->base = base;
    thread->header = (nw_thread_header *)base;
    thread->window = (nw_slot *)(base + NW_HEADER_BYTES);
    thread->counters[0] = (uintptr_t)base + NW_COUNTERS_OFFSET;
    thread->touches[0] = (uintptr_t)base + TOUCHES_OFFSET;
    thread->counters_room = thread->touches_room = NW_FIRST_ENTRIES;
    thread->first = 0;
    nw_window_clear(thread->window);
    nw_thread_header *header = thread->header;
    header->version = NW_LAYOUT_VERSION;
    header->window_slots = NW_WINDOW_SLOTS;
    header->counter_segment[0] = (nw_segment){NW_COUNTERS_OFFSET, thread->counters[0]};
    header->touch_segment[0] = (nw_segment){TOUCHES_OFFSET, thread->touches[0]};
    __atomic_store_n(&header->magic, NW_MAGIC, __ATOMIC_RELEASE);
    return true;
}

/* Continues the file of a finished thread, whose entries are final. */
static void take_over(nw_thread *thread) {
    nw_window_settle(thread);
    nw_thread_renew(thread);
    thread->first = thread->header->counters;
    thread->region = 0;
    drop_segments(thread->header->counter_segment, thread->counters, nw_segment_of(thread->first), sizeof(nw_counter),
                  false);
    drop_segments(thread->header->touch_segment, thread->touches, nw_segment_of(thread->header->touches),
                  sizeof(nw_touch), false);
}

/* If the takeover of a finished thread's file could not be logged (which switches recording off), the file is given up:
 * the recorder would take what is counted there for the finished thread's. */
bool nw_thread_open(nw_observer *observer) {
    bool taken = observer->base != NULL && nw_recording();
    if (taken)
        take_over(&observer->thread);
    else if (nw_thread_close(observer), !open_file(observer))
        return false;
    observer->thread.until_slice = nw_slice_budget(observer);
    if (nw_recording())
        log_counters(observer);
    if (taken && !nw_recording()) {
        nw_thread_close(observer);
        return open_file(observer);
    }
    return true;
}

/* All memory stays mapped: a signal handler may have forked, and the code that it interrupted then continues with the
 * address of a counter. */
bool nw_thread_reopen(nw_observer *observer) {
    nw_thread_release(&observer->thread);
    drop_all_segments(&observer->thread, true);
    nw_thread_files_forget();
    if (!open_file(observer))
        return false;
    observer->thread.until_slice = nw_slice_budget(observer);
    if (nw_recording())
        log_counters(observer);
    return true;
}

void nw_thread_close(nw_observer *observer) {
    nw_thread_release(&observer->thread);
    if (observer->base != NULL) {
        drop_all_segments(&observer->thread, false);
        nw_unmap(observer->base, BASE_BYTES);
    }
    observer->base = NULL;
}
