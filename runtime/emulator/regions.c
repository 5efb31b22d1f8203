#include "regions.h"

#include "vcpus.h"

#define NESTED 15 /* a region nested deeper replaces the innermost of these */

typedef struct calls {
    uint32_t depth;
    uint32_t region[NESTED];
} calls;

static calls under_way[NW_VCPUS];
static nw_functions *known;
static uint32_t ids;

void nw_regions_known(nw_functions *functions) { known = functions; }

nw_function *nw_regions_find(uint64_t address) {
    uint32_t count = known == NULL ? 0 : __atomic_load_n(&known->count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < NW_OUTLINED; i++)
        if (address >= known->entry[i].start && address < known->entry[i].end)
            return &known->entry[i];
    return NULL;
}

/* Logs the function when it is first entered, so that the profile lists only regions that ran. */
static uint32_t identify(nw_function *function) {
    static int locked;
    uint32_t id = __atomic_load_n(&function->id, __ATOMIC_ACQUIRE);
    if (nw_likely(id != 0))
        return id;
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        ;
    id = __atomic_load_n(&function->id, __ATOMIC_RELAXED);
    if (id == 0 && nw_recording()) {
        id = ++ids;
        nw_line line = {0};
        nw_line_begin(&line, "outlined");
        nw_line_number(&line, id);
        nw_line_number(&line, function->start);
        nw_event(&line);
        __atomic_store_n(&function->id, id, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
    return id;
}

uint64_t nw_regions_current(unsigned vcpu) {
    const calls *calls = &under_way[vcpu];
    return calls->depth == 0 ? 0 : (uint64_t)calls->region[calls->depth - 1] << NW_REGION_SHIFT;
}

static void entered(unsigned vcpu, void *function) {
    if (vcpu >= NW_VCPUS)
        return;
    calls *calls = &under_way[vcpu];
    if (calls->depth < NESTED)
        calls->depth++;
    calls->region[calls->depth - 1] = identify(function);
    nw_vcpus[vcpu].region = nw_regions_current(vcpu);
}

/* Regions that were entered since and not left (because of longjmp or an exception) are left too. */
static void left(unsigned vcpu, void *function) {
    if (vcpu >= NW_VCPUS)
        return;
    calls *calls = &under_way[vcpu];
    uint32_t id = ((nw_function *)function)->id, depth = calls->depth;
    while (depth > 0 && calls->region[depth - 1] != id)
        depth--;
    if (depth > 0)
        calls->depth = depth - 1;
    nw_vcpus[vcpu].region = nw_regions_current(vcpu);
}

void nw_regions_listen(struct qemu_plugin_insn *insn, const nw_instruction *seen, nw_function *function) {
    uint64_t address = qemu_plugin_insn_vaddr(insn);
    uint64_t to = address + qemu_plugin_insn_size(insn) + (uint64_t)(int64_t)seen->distance;
    if (address == function->start)
        qemu_plugin_register_vcpu_insn_exec_cb(insn, entered, QEMU_PLUGIN_CB_NO_REGS, function);
    if (seen->returns || (seen->jumps && (to < function->start || to >= function->end)))
        qemu_plugin_register_vcpu_insn_exec_cb(insn, left, QEMU_PLUGIN_CB_NO_REGS, function);
}
