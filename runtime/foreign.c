#define _GNU_SOURCE
#include "foreign.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#ifdef __x86_64__
enum { OWN_MACHINE = EM_X86_64 };
#else
enum { OWN_MACHINE = EM_AARCH64 };
#endif

enum { DEEPEST = 4, MOST_SEGMENTS = 64, MOST_ENTRIES = 512, NAME_BYTES = 32 };

static int read_at(int file, void *to, size_t bytes, uint64_t offset) {
    return pread(file, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

static int begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static int is_glibcs(const char *loader) {
    const char *slash = strrchr(loader, '/'), *name = slash ? slash + 1 : loader;
    return begins(name, "ld-linux") || begins(name, "ld64.so") || begins(name, "ld.so");
}

/* Runtimes that abort unless they come before every other library. */
static int comes_first(const char *library) {
    static const char *const names[] = {
        "libasan.so",       "libhwasan.so",       "libtsan.so",       "liblsan.so",
        "libclang_rt.asan", "libclang_rt.hwasan", "libclang_rt.tsan", "libclang_rt.lsan",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins(library, names[i]))
            return 1;
    return 0;
}

/* Where in the file a linked address lies; 0: nowhere. */
static uint64_t offset_of(int file, const Elf64_Ehdr *elf, uint64_t address) {
    Elf64_Phdr segment;
    for (unsigned i = 0; i < elf->e_phnum && i < MOST_SEGMENTS; i++)
        if (read_at(file, &segment, sizeof segment, elf->e_phoff + i * sizeof segment) && segment.p_type == PT_LOAD &&
            address - segment.p_vaddr < segment.p_filesz)
            return address - segment.p_vaddr + segment.p_offset;
    return 0;
}

/* Whether a library of that kind is among those that the program itself asks for. */
static int asks_for(int (*kind)(const char *), int file, const Elf64_Ehdr *elf, uint64_t dynamic) {
    Elf64_Dyn entry;
    uint64_t strings = 0;
    for (unsigned i = 0; i < MOST_ENTRIES && !strings; i++) {
        if (!read_at(file, &entry, sizeof entry, dynamic + i * sizeof entry) || entry.d_tag == DT_NULL)
            return 0;
        if (entry.d_tag == DT_STRTAB)
            strings = offset_of(file, elf, entry.d_un.d_ptr);
    }
    for (unsigned i = 0; i < MOST_ENTRIES && strings; i++) {
        char name[NAME_BYTES + 1] = {0};
        if (!read_at(file, &entry, sizeof entry, dynamic + i * sizeof entry) || entry.d_tag == DT_NULL)
            return 0;
        if (entry.d_tag == DT_NEEDED && pread(file, name, NAME_BYTES, (off_t)(strings + entry.d_un.d_val)) > 0 &&
            kind(name))
            return 1;
    }
    return 0;
}

static int program_takes(int file, const Elf64_Ehdr *elf) {
    if (elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_machine != OWN_MACHINE)
        return 0;
    Elf64_Phdr segment;
    for (unsigned i = 0; i < elf->e_phnum && i < MOST_SEGMENTS; i++) {
        if (!read_at(file, &segment, sizeof segment, elf->e_phoff + i * sizeof segment))
            return 1;
        char loader[128] = {0};
        if (segment.p_type == PT_INTERP && segment.p_filesz < sizeof loader &&
            read_at(file, loader, segment.p_filesz, segment.p_offset) && !is_glibcs(loader))
            return 0;
        if (segment.p_type == PT_DYNAMIC && asks_for(comes_first, file, elf, segment.p_offset))
            return 0;
    }
    return 1;
}

static int is_runtime(const char *library) { return begins(library, "libnodewise-rt.so"); }

static int program_counts(int file, const Elf64_Ehdr *elf) {
    Elf64_Phdr segment;
    for (unsigned i = 0; i < elf->e_phnum && i < MOST_SEGMENTS; i++)
        if (read_at(file, &segment, sizeof segment, elf->e_phoff + i * sizeof segment) &&
            segment.p_type == PT_DYNAMIC && asks_for(is_runtime, file, elf, segment.p_offset))
            return 1;
    return 0;
}

/* Of a script its interpreter's name, in place; null: it is none. */
static char *interpreter(char *head) {
    if (head[0] != '#' || head[1] != '!')
        return NULL;
    char *name = head + 2 + strspn(head + 2, " \t");
    name[strcspn(name, " \t\r\n")] = 0;
    return *name ? name : NULL;
}

/* What holds for the program that executing `path` starts; `otherwise` where there is none, and yes where it may not
 * be read. */
static int holds(int (*what)(int, const Elf64_Ehdr *), const char *path, int otherwise) {
    char head[256];
    int before = errno, result = otherwise;
    for (int depth = 0; path && depth <= DEEPEST; depth++) {
        int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file < 0) {
            result = otherwise || errno == EACCES;
            break;
        }
        memset(head, 0, sizeof head);
        ssize_t bytes = pread(file, head, sizeof head - 1, 0);
        Elf64_Ehdr elf;
        memcpy(&elf, head, sizeof elf);
        int program = bytes >= (ssize_t)sizeof(Elf32_Ehdr) && memcmp(head, ELFMAG, SELFMAG) == 0;
        if (program)
            result = what(file, &elf);
        close(file);
        path = program ? NULL : interpreter(head);
    }
    errno = before;
    return result;
}

int nw_takes_preload(const char *path) { return holds(program_takes, path, 1); }

int nw_counts(const char *path) { return holds(program_counts, path, 0); }
