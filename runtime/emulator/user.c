/* The plugin of `nodewise record --via emulate`: counts every access of an unmodified program under QEMU's user
 * mode, in the same files as an instrumented program does. libnodewise-rt.so in the program logs its objects and
 * threads, and tells which thread runs on which virtual CPU (thread_info.h). For static programs, which do not
 * load it, the plugin does that itself (alone.h). */
#define _GNU_SOURCE
#include "alone.h"
#include "execute.h"
#include "instruction.h"
#include "mark.h"
#include "qemu.h"
#include "regions.h"
#include "vcpus.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

NW_PLUGIN int qemu_plugin_version = NW_QEMU_API;

static nw_meminfo at;

/* ---- An access. ---- */

static inline nw_thread *thread_of(const nw_vcpu *vcpu) { return &vcpu->observer->thread; }

static NW_COLD nw_slot *missed(const nw_vcpu *vcpu, uint64_t key, uint64_t code) {
    if (vcpu->observer == NULL && !nw_alone_assign((unsigned)(vcpu - nw_vcpus), 0))
        return NULL;
    return nw_fill(thread_of(vcpu), key, (const void *)code);
}

/* The lines from the first to the last byte that are on the page. */
static inline uint64_t lines(uint64_t address, unsigned bytes) {
    uint32_t first = address & NW_PAGE_MASK, last = first + bytes - 1;
    return nw_lines(first >> NW_LINE_SHIFT, (last > NW_PAGE_MASK ? NW_PAGE_MASK : last) >> NW_LINE_SHIFT);
}

static inline void count(nw_vcpu *vcpu, qemu_plugin_meminfo_t info, uint64_t address, unsigned bytes, uint64_t code,
                         bool paced) {
    uint64_t page = address >> NW_PAGE_SHIFT, key = page | vcpu->region;
    nw_slot *slot = nw_slot_of(vcpu->window, page);
    if (nw_unlikely(slot->key != key) && (slot = missed(vcpu, key, code)) == NULL)
        return;
    unsigned reads = info >> at.direction & 1, writes = info >> (at.direction + 1) & 1;
    slot->bitmap |= lines(address, bytes);
    slot->counter->reads += reads;
    slot->counter->writes += writes;
    if (paced && thread_of(vcpu)->until_slice != INT64_MAX) {
        nw_thread *thread = thread_of(vcpu);
        *nw_paced(thread, slot) += reads + writes;
        thread->until_slice -= (int64_t)(reads + writes);
        if (nw_unlikely(thread->until_slice <= 0))
            nw_slice_reached(thread);
    }
}

/* The upper byte of a callback's data: in bits 0 to 5 the bytes read, in bits 6 and 7 the operand's size in units of 4
 * bytes if it is smaller. */
static uint64_t extent(const nw_instruction *seen) {
    return (uint64_t)(seen->width + seen->word + (seen->scalar >> 2 << 6)) << 56;
}

/* The pieces of one access ascend; the first one counts for all. */
static inline void count_wide(nw_vcpu *vcpu, qemu_plugin_meminfo_t info, uint64_t address, uint64_t what, bool paced) {
    unsigned bytes = nw_mem_bytes(&at, info), width = what >> 56 & 63, scalar = what >> 62 << 2;
    unsigned direction = info >> (at.direction + 1) & 1;
    uint64_t *next = &vcpu->pieces[direction].next, *end = &vcpu->pieces[direction].end;
    if (address == *next) {
        *next = address + bytes < *end ? address + bytes : 0;
        return;
    }
    *end = address + width;
    *next = bytes < width ? address + bytes : 0;
    count(vcpu, info, address, scalar ? scalar : width, what & ((1ull << 56) - 1), paced);
}

static void access_narrow(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *code) {
    count(nw_vcpu_of(vcpu), info, address, nw_mem_bytes(&at, info), (uint64_t)code, false);
}

static void access_wide(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *what) {
    count_wide(nw_vcpu_of(vcpu), info, address, (uint64_t)what, false);
}

/* For slices by accesses. */
static void access_paced(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *what) {
    if ((uint64_t)what >> 56)
        count_wide(nw_vcpu_of(vcpu), info, address, (uint64_t)what, true);
    else
        count(nw_vcpu_of(vcpu), info, address, nw_mem_bytes(&at, info), (uint64_t)what, true);
}

/* A store under a mask is one access, at its first lane that is written. */
static void masked_begins(unsigned vcpu, void *unused) {
    (void)unused;
    nw_vcpu_of(vcpu)->pieces[1].next = nw_vcpu_of(vcpu)->pieces[1].end = 0;
}

static void access_masked(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *code) {
    nw_vcpu *here = nw_vcpu_of(vcpu);
    if (here->pieces[1].end == 0)
        count(here, info, address, nw_mem_bytes(&at, info), (uint64_t)code, true);
    here->pieces[1].end = address + 1;
}

/* push and call with a memory operand read it, pop writes it; their other access is to the stack. */
static void access_read(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *code) {
    if (info >> at.direction & 1)
        access_paced(vcpu, info, address, code);
}

static void access_written(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *code) {
    if (info >> (at.direction + 1) & 1)
        access_paced(vcpu, info, address, code);
}

static void marked(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *unused) {
    (void)info;
    (void)unused;
    if (nw_vcpu_announced(vcpu, address))
        nw_alone_give_way();
}

/* A thread's first access to its stack, if the thread was not announced. */
static void stacked(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *unused) {
    (void)info;
    (void)unused;
    nw_alone_assign(vcpu, address);
}

/* ---- Translation. ---- */

static bool by_accesses;

/* Our own library inside the program: from the first page of its mapping to the last. */
static uint64_t ours, ours_end;

static void find_ours(void) {
    FILE *maps = fopen("/proc/self/maps", "re");
    static char line[4352];
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        uint64_t from, to;
        if (strstr(line, "/libnodewise-rt.so\n") == NULL || sscanf(line, "%lx-%lx", &from, &to) != 2)
            continue;
        ours = ours == 0 ? from : ours;
        ours_end = to;
    }
    if (maps != NULL)
        fclose(maps);
}

static bool is_ours(uint64_t address) {
    static uint64_t looked_at; /* the page for which find_ours was last called */
    if (ours == 0 && looked_at != address >> NW_PAGE_SHIFT) {
        looked_at = address >> NW_PAGE_SHIFT;
        find_ours();
    }
    return address >= ours && address < ours_end;
}

/* The callback for an instruction's accesses; null if it accesses only the thread's own stack. */
static qemu_plugin_vcpu_mem_cb_t listener(const nw_instruction *seen) {
    bool stack = seen->stack_reads || seen->stack_writes;
    if ((stack && !seen->operand) || (seen->stack_reads && seen->stack_writes))
        return NULL;
    if (stack)
        return seen->stack_writes ? access_read : access_written;
    if (seen->masked)
        return access_masked;
    return by_accesses ? access_paced : seen->width || seen->word ? access_wide : access_narrow;
}

static void listen(struct qemu_plugin_insn *insn, const nw_instruction *seen) {
    qemu_plugin_vcpu_mem_cb_t callback = listener(seen);
    /* Like a return address: the address minus 1 lies in the instruction. */
    uint64_t what = (qemu_plugin_insn_vaddr(insn) + 1) | extent(seen);
    if (callback == access_masked)
        qemu_plugin_register_vcpu_insn_exec_cb(insn, masked_begins, QEMU_PLUGIN_CB_NO_REGS, NULL);
    if (callback != NULL)
        qemu_plugin_register_vcpu_mem_cb(insn, callback, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, (void *)what);
}

/* A thread that has no virtual CPU yet executes next what it translates now, which shows where its stack is. */
static void listen_for_stack(struct qemu_plugin_insn *insn, const nw_instruction *seen) {
    if (nw_alone_unassigned() && (seen->stack_reads || seen->stack_writes))
        qemu_plugin_register_vcpu_mem_cb(insn, stacked, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
}

static void look_at(const struct qemu_plugin_tb *block) {
    uint8_t bytes[NW_INSN_MOST];
    size_t size = nw_insn_bytes(qemu_plugin_tb_get_insn(block, 0), bytes);
    nw_alone_look(qemu_plugin_tb_vaddr(block), bytes, size);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    look_at(block);
    bool silent = !nw_alone() && is_ours(qemu_plugin_tb_vaddr(block));
    nw_function *function = silent ? NULL : nw_regions_find(qemu_plugin_tb_vaddr(block));
    size_t count = qemu_plugin_tb_n_insns(block);
    uint8_t mark = 0;
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
        uint8_t bytes[NW_INSN_MOST];
        nw_instruction seen = nw_decode(bytes, nw_insn_bytes(insn, bytes));
        if (mark == NW_MARK_HERE)
            qemu_plugin_register_vcpu_mem_cb(insn, marked, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
        else if (!silent)
            listen(insn, &seen);
        listen_for_stack(insn, &seen);
        if (function != NULL)
            nw_regions_listen(insn, &seen, function);
        mark = seen.mark;
    }
}

/* ---- The rest. ---- */

static void vcpu_began(qemu_plugin_id_t id, unsigned vcpu) {
    (void)id;
    nw_vcpu_open(vcpu);
}

static void vcpu_ended(qemu_plugin_id_t id, unsigned vcpu) {
    (void)id;
    nw_vcpu_close(vcpu);
}

NW_PLUGIN int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **arguments);

static _Thread_local bool shares_memory; /* whether a child made by the thread's last system call shares its memory */

static void calls(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                  uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)vcpu, (void)f, (void)g, (void)h;
    shares_memory = number == SYS_vfork || (number == SYS_clone && a & CLONE_VM);
    if (number == SYS_exit_group || number == SYS_exit)
        nw_image_ends();
    if (number == SYS_execve)
        nw_execute(AT_FDCWD, (const char *)a, (char *const *)b, (char *const *)c);
    if (number == SYS_execveat)
        nw_execute((int)a, (const char *)b, (char *const *)c, (char *const *)d);
    nw_alone_asked((const uint64_t[]){a, b, c, d, e});
}

static void answered(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result) {
    (void)id;
    nw_alone_answered(vcpu, number, result);
}

static void forked(void) {
    nw_image_copied(shares_memory);
    nw_vcpus_forget();
    nw_alone_after_fork();
}

/* Arguments: `preload=` and libnodewise-rt.so; `slices=accesses` if slices are cut by accesses. */
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **arguments) {
    if (info->system_emulation || strcmp(info->target_name, "x86_64") != 0 || !nw_meminfo_learn(&at)) {
        fputs("nodewise: this QEMU's plugin interface is not known here\n", stderr);
        return 1;
    }
    static char again[4352];
    const char *preload = NULL;
    for (int i = 0; i < count; i++) {
        by_accesses |= strcmp(arguments[i], "slices=accesses") == 0;
        if (strncmp(arguments[i], "preload=", 8) == 0)
            preload = strdup(arguments[i] + 8);
        strncat(strncat(again, ",", 2), arguments[i], sizeof again - strlen(again) - 2);
    }
    nw_execute_prepare(preload, again);
    qemu_plugin_register_vcpu_init_cb(id, vcpu_began);
    qemu_plugin_register_vcpu_exit_cb(id, vcpu_ended);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, calls);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, answered);
    pthread_atfork(nw_alone_before_fork, NULL, forked);
    return 0;
}
