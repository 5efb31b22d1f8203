#define _GNU_SOURCE
#include "alone.h"

#include "../scratch.h"
#include "../stderr.h"

#include "outlined.h"
#include "qemu.h"
#include "thread_info.h"
#include "vcpus.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define HEADERS 64 /* program headers; real programs have a dozen */

static bool alone;
static int state; /* enum nw_state; NW_UNKNOWN until the image has a folder */
static nw_control *control;
static char folder[NW_PATH_BYTES];

static __thread bool assigned;
static __thread uint64_t asked[5]; /* arguments of the system call under way */

static struct {
    char path[PATH_MAX];
    uint64_t bias, brk;
    size_t count;
    Elf64_Phdr header[HEADERS];
} program;

/* ---- The program. ---- */

/* Reads the program headers. False if that fails, or if the program names a dynamic loader. */
static bool read_program(const char *path, uint64_t entry) {
    Elf64_Ehdr elf;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool whole = file >= 0 && pread(file, &elf, sizeof elf, 0) == (ssize_t)sizeof elf && elf.e_phnum <= HEADERS;
    program.count = whole ? elf.e_phnum : 0;
    ssize_t bytes = (ssize_t)(program.count * sizeof *program.header);
    whole = whole && pread(file, program.header, (size_t)bytes, (off_t)elf.e_phoff) == bytes;
    if (file >= 0)
        close(file);
    for (size_t i = 0; i < program.count && whole; i++)
        whole = program.header[i].p_type != PT_INTERP;
    if (whole)
        program.bias = entry - elf.e_entry;
    return whole;
}

/* Whether an address of the program is the same address in this process. */
static bool is_here(uint64_t address, const uint8_t *bytes, size_t size) {
    uint8_t found[NW_INSN_MOST];
    struct iovec to = {found, size}, from = {(void *)address, size};
    return size <= sizeof found && process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size &&
           memcmp(found, bytes, size) == 0;
}

void nw_alone_look(uint64_t address, const uint8_t *bytes, size_t size) {
    static bool looked;
    if (looked)
        return;
    looked = true;
    alone = getenv("NODEWISE_RAW") != NULL && realpath(qemu_plugin_path_to_binary(), program.path) != NULL &&
            read_program(program.path, address);
    if (alone && !is_here(address, bytes, size)) {
        static const char line[] = "nodewise: the program's memory is elsewhere than it says: it is not counted\n";
        nw_stderr_line(line, sizeof line - 1);
        alone = false;
    }
    if (alone)
        nw_outlined_scan(program.path, program.bias);
}

bool nw_alone(void) { return alone; }

bool nw_alone_unassigned(void) { return alone && !assigned; }

void nw_alone_give_way(void) { alone = false; }

/* ---- The log. ---- */

#define log_numbers(word, ...) \
    log_line(word, (const uint64_t[]){__VA_ARGS__}, sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t), NULL)

static void log_line(const char *word, const uint64_t *numbers, size_t count, const char *path) {
    nw_line line = {0};
    nw_line_begin(&line, word);
    for (size_t i = 0; i < count; i++)
        nw_line_number(&line, numbers[i]);
    if (path != NULL) {
        nw_line_text(&line, "=");
        nw_line_text(&line, path);
    }
    nw_event(&line);
}

/* The break and the stack are not known yet, for which UINT64_MAX and 0 are logged. */
static void log_process(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    log_numbers("process", (uint64_t)getpid(), (uint64_t)getppid(),
                (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, UINT64_MAX, 0);
}

static void log_program(void) {
    static uint64_t numbers[1 + 3 * HEADERS];
    size_t count = 0;
    numbers[count++] = program.bias;
    for (size_t i = 0; i < program.count; i++) {
        const Elf64_Phdr *segment = &program.header[i];
        if (segment->p_type != PT_LOAD)
            continue;
        numbers[count++] = program.bias + segment->p_vaddr;
        numbers[count++] = segment->p_memsz;
        numbers[count++] = segment->p_flags;
    }
    log_line("module", numbers, count, program.path);
}

static uint64_t events_before_fork;

/* The first thread's stack is a mapping that QEMU made; the recorder finds other stacks among the logged mappings. */
static void log_started(const nw_thread_info *info, uint64_t stack, bool first) {
    FILE *maps = first && stack != 0 ? fopen("/proc/self/maps", "re") : NULL;
    static char line[4352]; /* used by the first thread only */
    uint64_t from = 0, to = 0;
    bool found = false;
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL)
        found = sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= stack && stack < to;
    if (maps != NULL)
        fclose(maps);
    if (found)
        log_numbers("start", info->ordinal, info->tid, from, to - from);
    else
        log_numbers("start", info->ordinal, info->tid, first ? 0 : stack, 0);
}

/* ---- The process image. ---- */

/* Makes the image's folder and begins its log, before anything is counted. */
static void open_image(nw_thread_info *info) {
    static char parent[NW_PATH_BYTES];
    const char *raw = getenv("NODEWISE_RAW");
    strcpy(parent, folder);
    control = control == NULL ? nw_control_map(raw) : control;
    state = control != NULL && nw_folder_make(folder, raw) ? NW_RECORDING : NW_OFF;
    nw_control_page = info->control = control;
    if (state == NW_OFF) {
        nw_mark_truncated("a process cannot make its folder in the profile");
        return;
    }
    nw_image_enter(info);
    log_process();
    if (parent[0] == 0)
        log_program();
    else
        nw_event_parent(parent, events_before_fork);
}

/* The first thread of an image is assigned before there are others. */
bool nw_alone_assign(unsigned vcpu, uint64_t stack) {
    if (!nw_alone_unassigned())
        return false;
    assigned = true;
    nw_thread_info info = {
        .ordinal = (uint32_t)nw_vcpu_of(vcpu)->ordinal,
        .tid = (uint32_t)gettid(),
        .state = &state,
        .control = control,
        .folder = folder,
        .outlined = &nw_outlined,
    };
    bool first = state == NW_UNKNOWN;
    if (first)
        open_image(&info);
    if (state != NW_RECORDING)
        return false;
    log_started(&info, stack, first);
    nw_vcpu_assign(vcpu, &info);
    return nw_vcpu_of(vcpu)->observer != NULL;
}

void nw_alone_before_fork(void) { events_before_fork = alone && state == NW_RECORDING ? nw_events_written() : 0; }

void nw_alone_after_fork(void) {
    assigned = false;
    state = state == NW_RECORDING ? NW_UNKNOWN : state;
}

/* ---- Memory. ---- */

void nw_alone_asked(const uint64_t arguments[5]) {
    if (alone)
        memcpy(asked, arguments, sizeof asked);
}

static void log_mapping(unsigned vcpu, uint64_t address, uint64_t bytes, int file) {
    char link[64], *path = nw_scratch_take();
    const uint64_t numbers[] = {address, bytes, nw_vcpu_of(vcpu)->observer->ordinal};
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = file < 0 || path == NULL ? -1 : readlink(link, path, NW_SCRATCH_BYTES - 1);
    if (length >= 0)
        path[length] = 0;
    log_line("map", numbers, 3, length < 0 ? NULL : path);
    nw_scratch_give(path);
}

/* All memory below the break is logged as small allocations. */
static void log_break(uint64_t at) {
    if (program.brk != 0 && at > program.brk)
        log_numbers("arena", program.brk, at - program.brk);
    program.brk = at;
}

void nw_alone_answered(unsigned vcpu, int64_t number, int64_t result) {
    bool failed = result < 0 && result > -4096;
    if (!alone || failed || nw_vcpu_of(vcpu)->observer == NULL || !nw_recording())
        return;
    switch (number) {
    case SYS_mmap: log_mapping(vcpu, (uint64_t)result, asked[1], asked[3] & MAP_ANONYMOUS ? -1 : (int)asked[4]); break;
    case SYS_mremap:
        log_numbers("unmap", asked[0], asked[1]);
        log_mapping(vcpu, (uint64_t)result, asked[2], -1);
        break;
    case SYS_munmap: log_numbers("unmap", asked[0], asked[1]); break;
    case SYS_brk: log_break((uint64_t)result); break;
    default: break;
    }
}
