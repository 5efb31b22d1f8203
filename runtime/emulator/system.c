/* The laboratory's counter plugin: counts exactly, in user mode, which virtual CPU read and wrote which page on
 * which frame. It takes no locks on the hot path, since each counter belongs to one virtual CPU.
 *
 * Each virtual CPU has a direct-mapped table from virtual page to counter, so that the emulator is asked for the
 * frame only when a page is not in the table. An entry is valid as long as hardware may keep the translation in
 * its TLB: after an operating system has removed a translation, it has to flush each CPU's TLB, on that CPU,
 * before the old translation could do harm. So each instruction that flushes (mov to cr0, cr3 and cr4, invlpg,
 * invpcid) also empties that CPU's table. It empties all of it, since the operand is not known. Case by case, for
 * user-mode accesses, the only ones that use the table:
 * - A page becomes present: neither a TLB nor the table keeps absent translations.
 * - Migration, NUMA balancing, collapse to a huge page: the entry is cleared or made inaccessible, and every CPU
 *   that runs the process flushes (by interrupt, on itself); only then is the frame copied and the new entry
 *   made. An access between flush and new entry faults, and is counted when it is repeated.
 * - Copy on write: likewise, the old frame's entry is cleared and flushed before the new one is made.
 * - A process switch writes cr3. With process-context identifiers and bit 63, the TLB would keep translations of
 *   other processes; the table is emptied all the same, since its keys are virtual pages alone.
 * - Lazy TLB: a CPU on which a kernel thread borrows an address space gets no interrupts for it, but catches up
 *   by writing cr3 before it returns to user mode.
 * - exec and exit change the address space, which writes cr3.
 * - Unmapping flushes before the frame is free for others. A program that reads while another of its threads
 *   unmaps may find either frame: only there may the table and the emulator's TLB differ.
 * Kernels in 32-bit mode, system management mode and nested guests do not occur while we count.
 *
 * A table slot is filled after the access, on the CPU's own thread, from the emulator's TLB entry that the access
 * used. The flushing instruction runs on the same thread, so it cannot come in between.
 */
#include "instruction.h"
#include "mark.h"
#include "qemu.h"
#include "rows.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

NW_PLUGIN int qemu_plugin_version = NW_QEMU_API;

#define PAGE_SHIFT 12
#define VCPUS 1024u
#define SLOTS_SHIFT 11
#define SLOTS (1u << SLOTS_SHIFT)
#define CHUNK 4096u
#define CHUNKS 16384u
/* A key has the epoch in the bits above the page number of a user address. The page number of a kernel address
 * reaches into these bits, with bit 44 set, and so equals no key. */
#define EPOCH_SHIFT 45
#define USER_PAGES (1ull << 44)

typedef struct counter {
    uint64_t page, frame, reads, writes, seen;
    uint64_t sliced_reads, sliced_writes; /* the part of them in earlier slices; guarded by `writing` */
} counter;

typedef struct slot {
    uint64_t key;
    counter *counter;
} slot;

/* An operand that was counted; while `next` is below `end`, further pieces of it follow. */
typedef struct pieces {
    uint64_t first, next, end;
} pieces;

typedef struct vcpu {
    uint64_t epoch; /* shifted */
    pieces wide, words[2]; /* words: of repeated string instructions, read and written */
    slot slots[SLOTS];
    /* Only grows until the next begin; published for the thread that writes the rows. */
    counter *chunks[CHUNKS];
    _Atomic uint32_t count;
    _Atomic uint64_t begun;
    uint32_t *index; /* open addressing by page and frame: position + 1 */
    uint32_t index_size;
    uint32_t number; /* the last number marked */
    counter nowhere; /* for accesses to I/O and to kernel addresses; not reported */
} vcpu;

static vcpu *vcpus[VCPUS];
static _Atomic uint64_t clock_of_pages;
static _Atomic uint64_t begins;
static bool counting; /* between a begin and an end; guarded by `writing` */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static int rows_file = -1;

static void fatal(const char *why) {
    fprintf(stderr, "nodewise: counter: %s\n", why);
    _exit(125); /* counts would be wrong */
}

/* Rows. */

static void write_rows(const nw_row *rows, size_t count) {
    const char *bytes = (const char *)rows;
    size_t left = count * sizeof *rows;
    while (left > 0) {
        ssize_t written = write(rows_file, bytes, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return; /* the host has closed the file, and will end us */
        bytes += written;
        left -= (size_t)written;
    }
}

/* The increase of a counter since the last slice. Its virtual CPU may count meanwhile, which belongs to the next
 * slice. */
static nw_row sliced(unsigned which, counter *at) {
    uint64_t reads = *(volatile uint64_t *)&at->reads, writes = *(volatile uint64_t *)&at->writes;
    nw_row row = {NW_ROW_PAGE, which, 0, at->page, at->frame, reads - at->sliced_reads, writes - at->sliced_writes,
                  at->seen};
    at->sliced_reads = reads;
    at->sliced_writes = writes;
    return row;
}

static void write_counters(unsigned which, vcpu *of, bool slice) {
    static nw_row rows[512]; /* guarded by `writing` */
    size_t filled = 0;
    uint32_t count = atomic_load_explicit(&of->count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        counter *at = &of->chunks[i / CHUNK][i % CHUNK];
        nw_row row = {NW_ROW_PAGE, which, 0, at->page, at->frame, at->reads, at->writes, at->seen};
        if (slice)
            row = sliced(which, at);
        if (slice && row.reads + row.writes == 0)
            continue;
        rows[filled++] = row;
        if (filled == sizeof rows / sizeof *rows) {
            write_rows(rows, filled);
            filled = 0;
        }
    }
    write_rows(rows, filled);
}

/* Counters of a virtual CPU. */

static uint32_t hash(uint64_t page, uint64_t frame) {
    return (uint32_t)((page * 0x9e3779b97f4a7c15ull ^ frame * 0xc2b2ae3d27d4eb4full) >> 32);
}

static void insert(vcpu *own, uint32_t position) {
    const counter *at = &own->chunks[position / CHUNK][position % CHUNK];
    uint32_t slot = hash(at->page, at->frame);
    while (own->index[slot & (own->index_size - 1)])
        slot++;
    own->index[slot & (own->index_size - 1)] = position + 1;
}

static void grow_index(vcpu *own, uint32_t count) {
    free(own->index);
    own->index_size = own->index_size ? own->index_size * 2 : 8 * CHUNK;
    own->index = calloc(own->index_size, sizeof *own->index);
    if (!own->index)
        fatal("out of memory");
    for (uint32_t i = 0; i < count; i++)
        insert(own, i);
}

static counter *add(vcpu *own, uint64_t page, uint64_t frame) {
    uint32_t count = atomic_load_explicit(&own->count, memory_order_relaxed);
    if (count >= own->index_size / 2)
        grow_index(own, count);
    if (count / CHUNK == CHUNKS)
        fatal("too many pages");
    counter **chunk = &own->chunks[count / CHUNK];
    if (!*chunk && !(*chunk = malloc(CHUNK * sizeof **chunk)))
        fatal("out of memory");
    counter *made = &(*chunk)[count % CHUNK];
    *made = (counter){.page = page, .frame = frame};
    insert(own, count);
    atomic_store_explicit(&own->count, count + 1, memory_order_release);
    return made;
}

static counter *find(vcpu *own, uint64_t page, uint64_t frame) {
    for (uint32_t slot = hash(page, frame); own->index_size; slot++) {
        uint32_t position = own->index[slot & (own->index_size - 1)];
        if (position == 0)
            break;
        counter *at = &own->chunks[(position - 1) / CHUNK][(position - 1) % CHUNK];
        if (at->page == page && at->frame == frame)
            return at;
    }
    return add(own, page, frame);
}

/* Starts a new epoch, so that earlier keys no longer match. When the epochs are used up, the slots are cleared. */
static void flush(vcpu *own) {
    own->epoch += 1ull << EPOCH_SHIFT;
    if (own->epoch != 0)
        return;
    memset(own->slots, 0, sizeof own->slots);
    own->epoch = 1ull << EPOCH_SHIFT;
}

/* Each virtual CPU discards its earlier counters itself, when it first misses a page in its table after a begin. It
 * does miss, since the program that begins has a new address space. */
static void forget(vcpu *own, uint64_t begun) {
    atomic_store_explicit(&own->count, 0, memory_order_relaxed);
    atomic_store_explicit(&own->begun, begun, memory_order_release);
    if (own->index)
        memset(own->index, 0, own->index_size * sizeof *own->index);
    flush(own);
}

static uint64_t frame_of(qemu_plugin_meminfo_t info, uint64_t address) {
    struct qemu_plugin_hwaddr *where = qemu_plugin_get_hwaddr(info, address);
    if (!where || qemu_plugin_hwaddr_is_io(where))
        return UINT64_MAX;
    return qemu_plugin_hwaddr_phys_addr(where) >> PAGE_SHIFT;
}

__attribute__((noinline, cold)) static counter *miss(vcpu *own, slot *into, qemu_plugin_meminfo_t info,
                                                     uint64_t address) {
    uint64_t page = address >> PAGE_SHIFT, begun = atomic_load_explicit(&begins, memory_order_acquire);
    if (page >= USER_PAGES)
        return &own->nowhere;
    if (atomic_load_explicit(&own->begun, memory_order_relaxed) != begun)
        forget(own, begun);
    if (qemu_plugin_mem_is_store(info) != (info >> 17 & 1))
        fatal("this QEMU describes accesses in another way");
    uint64_t frame = frame_of(info, address);
    if (frame == UINT64_MAX)
        return &own->nowhere;
    counter *found = find(own, page, frame);
    found->seen = atomic_fetch_add_explicit(&clock_of_pages, 1, memory_order_relaxed);
    into->key = page | own->epoch;
    into->counter = found;
    return found;
}

/* The hot path. The description's bits 16 and 17 say read and write; an atomic operation has both. */
static inline void count(vcpu *own, qemu_plugin_meminfo_t info, uint64_t address) {
    uint64_t page = address >> PAGE_SHIFT;
    slot *slot = &own->slots[(page ^ page >> SLOTS_SHIFT) % SLOTS];
    counter *counter = slot->counter;
    if (__builtin_expect(slot->key != (page | own->epoch), 0))
        counter = miss(own, slot, info, address);
    counter->reads += info >> 16 & 1;
    counter->writes += info >> 17 & 1;
}

static void access_any(unsigned which, qemu_plugin_meminfo_t info, uint64_t address, void *unused) {
    (void)unused;
    count(vcpus[which], info, address);
}

/* The pieces of an operand count as one access. If the operand's second page faults, the instruction is repeated
 * from its first piece, which was counted already. */
static inline void count_pieces(vcpu *own, pieces *of, qemu_plugin_meminfo_t info, uint64_t address, uint64_t whole) {
    bool first = of->next >= of->end || address != of->next;
    if (first && !(of->next < of->end && address == of->first))
        count(own, info, address);
    if (first) {
        of->first = address;
        of->end = address + whole;
    }
    of->next = address + (1ull << qemu_plugin_mem_size_shift(info));
}

/* The pieces in which an emulator accesses a wide operand. */
static void access_wide(unsigned which, qemu_plugin_meminfo_t info, uint64_t address, void *width) {
    vcpu *own = vcpus[which];
    count_pieces(own, &own->wide, info, address, (uintptr_t)width);
}

/* The elements of a repeated string instruction, read and written in turn. They count as words, like memcpy's. */
static void access_words(unsigned which, qemu_plugin_meminfo_t info, uint64_t address, void *word) {
    vcpu *own = vcpus[which];
    count_pieces(own, &own->words[info >> 17 & 1], info, address, (uintptr_t)word);
}

/* An emulator reads, then writes. If the write faults, the whole instruction is repeated, and the frame that was
 * read before may have been another one (the zero page). So both accesses are counted at the write. */
static void access_modified(unsigned which, qemu_plugin_meminfo_t info, uint64_t address, void *unused) {
    (void)unused;
    if (info >> 17 & 1)
        count(vcpus[which], info | 1u << 16, address);
}

static void flushes(unsigned which, void *unused) {
    (void)unused;
    flush(vcpus[which]);
}

/* Marks. */

static void write_all(unsigned which, bool slice, uint64_t number) {
    uint64_t begun = atomic_load(&begins);
    for (unsigned i = 0; i < VCPUS && counting; i++)
        if (vcpus[i] && atomic_load_explicit(&vcpus[i]->begun, memory_order_acquire) == begun)
            write_counters(i, vcpus[i], slice);
    nw_row row = {.kind = slice ? NW_ROW_SLICE : NW_ROW_END, .vcpu = which, .number = slice ? number : begun - 1};
    write_rows(&row, 1);
}

static void mark(unsigned which, qemu_plugin_meminfo_t info, uint64_t address, void *operation) {
    vcpu *own = vcpus[which];
    nw_row row = {.vcpu = which, .number = own->number, .page = address >> PAGE_SHIFT};
    pthread_mutex_lock(&writing);
    switch ((uintptr_t)operation) {
    case NW_MARK_NUMBER: own->number = address % (1u << PAGE_SHIFT); break;
    case NW_MARK_NODE:
        row.kind = NW_ROW_NODE;
        row.frame = frame_of(info, address);
        write_rows(&row, 1);
        break;
    case NW_MARK_CPU:
        row.kind = NW_ROW_CPU;
        write_rows(&row, 1);
        break;
    case NW_MARK_RUN:
        row.kind = NW_ROW_RUN;
        row.number = address % (1u << PAGE_SHIFT);
        write_rows(&row, 1);
        break;
    case NW_MARK_BEGIN:
        row.kind = NW_ROW_BEGIN;
        row.number = atomic_fetch_add(&begins, 1);
        counting = true;
        forget(own, row.number + 1);
        write_rows(&row, 1);
        break;
    case NW_MARK_END:
        write_all(which, false, 0);
        counting = false; /* what comes now belongs to no slice */
        break;
    case NW_MARK_SLICE: write_all(which, true, address % (1u << PAGE_SHIFT)); break;
    }
    pthread_mutex_unlock(&writing);
}

/* Translation: callbacks are registered for user-mode instructions, and for those that flush. */

static void listen(struct qemu_plugin_insn *insn, const nw_instruction *known, uint8_t marked) {
    qemu_plugin_vcpu_mem_cb_t call = marked            ? mark
                                     : known->width    ? access_wide
                                     : known->word     ? access_words
                                     : known->modifies ? access_modified
                                                       : access_any;
    uintptr_t data = marked ? marked : known->width + known->word;
    qemu_plugin_register_vcpu_mem_cb(insn, call, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, (void *)data);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    size_t count = qemu_plugin_tb_n_insns(block);
    uint8_t marked = 0;
    (void)id;
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
        uint8_t bytes[NW_INSN_MOST];
        nw_instruction known = nw_decode(bytes, nw_insn_bytes(insn, bytes));
        bool user = qemu_plugin_insn_vaddr(insn) >> 63 == 0;
        if (user)
            listen(insn, &known, marked);
        if (known.flushes)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, flushes, QEMU_PLUGIN_CB_NO_REGS, NULL);
        marked = user ? known.mark : 0;
    }
}

static void vcpu_starts(qemu_plugin_id_t id, unsigned which) {
    (void)id;
    if (which >= VCPUS)
        fatal("more than 1024 virtual CPUs");
    if (vcpus[which])
        return;
    vcpu *own = aligned_alloc(4096, (sizeof *own + 4095) / 4096 * 4096);
    if (!own)
        fatal("out of memory");
    memset(own, 0, sizeof *own);
    own->epoch = 1ull << EPOCH_SHIFT;
    vcpus[which] = own;
}

NW_PLUGIN int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **arguments) {
    for (int i = 0; i < count; i++)
        if (sscanf(arguments[i], "fd=%d", &rows_file) != 1)
            return fprintf(stderr, "nodewise: counter: unknown option %s\n", arguments[i]), -1;
    if (!info->system_emulation || strcmp(info->target_name, "x86_64") != 0)
        return fprintf(stderr, "nodewise: counter: for qemu-system-x86_64 only\n"), -1;
    if (rows_file < 0)
        return fprintf(stderr, "nodewise: counter: fd=N is missing\n"), -1;
    qemu_plugin_register_vcpu_init_cb(id, vcpu_starts);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
