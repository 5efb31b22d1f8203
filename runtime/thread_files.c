#include "observer.h"

#define COUNTERS_SPACE (64ul << 30)
#define TOUCHES_SPACE (32ul << 30)
#define FIRST_COUNTERS 896u /* with header and window 64 KiB */
#define FIRST_TOUCHES 4096u

static uint64_t room(const nw_area *area, size_t offset, size_t entry)
{
    return (area->mapped - offset) / entry;
}

bool nw_counters_reserve(nw_thread *thread, uint64_t entries)
{
    nw_observer *observer = thread->observer;
    if (observer == NULL)
        return false;
    size_t bytes = NW_COUNTERS_OFFSET + entries * sizeof(nw_counter);
    if (!nw_area_grow(&observer->counters, "thread", observer->ordinal, bytes + bytes / 2))
        return false;
    thread->counters_room = room(&observer->counters, NW_COUNTERS_OFFSET, sizeof(nw_counter));
    return true;
}

bool nw_touches_reserve(nw_thread *thread, uint64_t entries)
{
    nw_observer *observer = thread->observer;
    if (observer == NULL)
        return false;
    size_t bytes = entries * sizeof(nw_touch);
    if (!nw_area_grow(&observer->touches, "touches", observer->ordinal, bytes + bytes / 2))
        return false;
    thread->touches_room = room(&observer->touches, 0, sizeof(nw_touch));
    return true;
}

static void log_counters(const nw_observer *observer)
{
    nw_line line = {0};
    nw_line_begin(&line, "counters");
    nw_line_number(&line, observer->ordinal);
    nw_line_number(&line, (uintptr_t)observer->thread.counters);
    nw_event(&line);
}

static bool open_files(nw_observer *observer)
{
    nw_thread *thread = &observer->thread;
    if (!nw_counters_reserve(thread, FIRST_COUNTERS) || !nw_touches_reserve(thread, FIRST_TOUCHES))
        return false;
    thread->header = (nw_thread_header *)observer->counters.base;
    thread->window = (nw_slot *)(observer->counters.base + NW_HEADER_BYTES);
    thread->counters = (nw_counter *)(observer->counters.base + NW_COUNTERS_OFFSET);
    thread->touches = (nw_touch *)observer->touches.base;
    thread->until_slice = nw_slice_budget(observer);
    nw_window_clear(thread->window);
    thread->header->version = NW_LAYOUT_VERSION;
    thread->header->ordinal = observer->ordinal;
    thread->header->tid = observer->tid;
    thread->header->window_slots = NW_WINDOW_SLOTS;
    if (nw_recording())
        log_counters(observer);
    __atomic_store_n(&thread->header->magic, NW_MAGIC, __ATOMIC_RELEASE);
    return true;
}

bool nw_thread_open(nw_observer *observer)
{
    return nw_area_reserve(&observer->counters, COUNTERS_SPACE) &&
           nw_area_reserve(&observer->touches, TOUCHES_SPACE) && open_files(observer);
}

bool nw_thread_reopen(nw_observer *observer)
{
    return nw_area_clear(&observer->counters) && nw_area_clear(&observer->touches) && open_files(observer);
}

void nw_thread_close(nw_observer *observer)
{
    nw_thread_release(&observer->thread);
    nw_area_release(&observer->counters);
    nw_area_release(&observer->touches);
}
