/* Entry points for instrumented code; further ones are in range.c and tickets.c. */
#include "counters.h"

/* Every instrumented module refers to the symbol of its interface, so that the linker and the loader refuse, by that name,
 * code for another one. */
#define NAMED(version) nodewise_interface_##version
#define INTERFACE(version) NAMED(version)
NW_EXPORT extern const char INTERFACE(NW_INTERFACE);
const char INTERFACE(NW_INTERFACE) = 1;

nw_slot *nw_miss(uint64_t key) { return nw_fill(nw_thread_here(), key, __builtin_return_address(0)); }

nw_thread *nw_thread_get(void) { return nw_thread_here(); }

uint64_t nw_region_enter(nw_region *region) {
    nw_thread *thread = nw_thread_here();
    uint64_t previous = thread->region;
    uint32_t id = __atomic_load_n(&region->id, __ATOMIC_ACQUIRE);
    if (nw_unlikely(id == 0))
        id = nw_region_register(region);
    thread->region = (uint64_t)id << NW_REGION_SHIFT;
    return previous;
}

void nw_region_leave(nw_region *region, uint64_t previous) {
    nw_thread *thread = nw_thread_here();
    nw_region_left(thread, region);
    thread->region = previous;
}
