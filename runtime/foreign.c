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

enum { DEEPEST = 4, MOST_SEGMENTS = 64, MOST_ENTRIES = 512, NAME_BYTES = 32, MOST_NAMES = 1 << 20 };

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

/* The offset in the file of a virtual address; 0: none. */
static uint64_t offset_of(int file, const Elf64_Ehdr *elf, uint64_t address) {
    Elf64_Phdr segment;
    for (unsigned i = 0; i < elf->e_phnum && i < MOST_SEGMENTS; i++)
        if (read_at(file, &segment, sizeof segment, elf->e_phoff + i * sizeof segment) && segment.p_type == PT_LOAD &&
            address - segment.p_vaddr < segment.p_filesz)
            return address - segment.p_vaddr + segment.p_offset;
    return 0;
}

/* From the dynamic section. */
typedef struct dynamic {
    uint64_t strings, bytes; /* the string table: its offset in the file, its size; 0: none */
    uint64_t own_name;       /* DT_SONAME, as an offset in it; 0: none */
    unsigned needed;         /* number of libraries that the program needs */
} dynamic;

static int entry_at(int file, uint64_t section, unsigned i, Elf64_Dyn *entry) {
    return i < MOST_ENTRIES && read_at(file, entry, sizeof *entry, section + i * sizeof *entry) &&
           entry->d_tag != DT_NULL;
}

static dynamic dynamic_at(int file, const Elf64_Ehdr *elf, uint64_t section) {
    dynamic found = {0};
    Elf64_Dyn entry;
    for (unsigned i = 0; entry_at(file, section, i, &entry); i++) {
        if (entry.d_tag == DT_STRTAB)
            found.strings = offset_of(file, elf, entry.d_un.d_ptr);
        else if (entry.d_tag == DT_STRSZ)
            found.bytes = entry.d_un.d_val;
        else if (entry.d_tag == DT_SONAME)
            found.own_name = entry.d_un.d_val;
        else if (entry.d_tag == DT_NEEDED)
            found.needed++;
    }
    return found;
}

static int is_named(int (*kind)(const char *), int file, uint64_t at) {
    char name[NAME_BYTES + 1] = {0};
    return pread(file, name, NAME_BYTES, (off_t)at) > 0 && kind(name);
}

/* Whether one of the libraries that the program itself needs is of that kind. */
static int asks_for(int (*kind)(const char *), int file, const Elf64_Ehdr *elf, uint64_t section) {
    dynamic of = dynamic_at(file, elf, section);
    Elf64_Dyn entry;
    for (unsigned i = 0; of.strings && entry_at(file, section, i, &entry); i++)
        if (entry.d_tag == DT_NEEDED && is_named(kind, file, of.strings + entry.d_un.d_val))
            return 1;
    return 0;
}

/* A compiler may link one of these runtimes statically; the program then exports the runtime's start function. */
static int has_runtime_in(const char *names, size_t bytes) {
    static const char *const starts[] = {"__asan_init", "__hwasan_init", "__tsan_init", "__msan_init", "__lsan_init"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        size_t length = strlen(starts[i]) + 1;
        for (const char *at = names; (at = memmem(at, bytes - (size_t)(at - names), starts[i], length)); at++)
            if (at == names || at[-1] == 0)
                return 1;
    }
    return 0;
}

__attribute__((noinline)) static int brings_sanitizer(int file, const Elf64_Ehdr *elf, uint64_t section) {
    enum { OVERLAP = 16 }; /* longer than any of the names, so that none is cut in two */
    char names[512];
    dynamic of = dynamic_at(file, elf, section);
    if (!of.strings)
        return 0;
    for (uint64_t done = 0; done < of.bytes && done < MOST_NAMES; done += sizeof names - OVERLAP) {
        uint64_t left = of.bytes - done;
        size_t wanted = left < sizeof names ? left : sizeof names;
        ssize_t bytes = pread(file, names, wanted, (off_t)(of.strings + done));
        if (bytes > 0 && has_runtime_in(names, (size_t)bytes))
            return 1;
        if (bytes < (ssize_t)wanted)
            return 0;
    }
    return 0;
}

static int is_runtime(const char *library) { return begins(library, "libnodewise-rt.so"); }

/* Programs that need our runtime were built by our wrappers, which refuse -fsanitize: their names are not searched. */
static int has_sanitizer(int file, const Elf64_Ehdr *elf, uint64_t section) {
    return asks_for(comes_first, file, elf, section) ||
           (!asks_for(is_runtime, file, elf, section) && brings_sanitizer(file, elf, section));
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
        if (segment.p_type == PT_DYNAMIC && has_sanitizer(file, elf, segment.p_offset))
            return 0;
    }
    return 1;
}

/* Static programs name no loader. Neither does the loader itself, which can be executed with a program as argument, so
 * it is recognised by its own name. */
static int program_is_static(int file, const Elf64_Ehdr *elf) {
    if (elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_machine != OWN_MACHINE)
        return 0;
    Elf64_Phdr segment;
    for (unsigned i = 0; i < elf->e_phnum && i < MOST_SEGMENTS; i++) {
        if (!read_at(file, &segment, sizeof segment, elf->e_phoff + i * sizeof segment) || segment.p_type == PT_INTERP)
            return 0;
        if (segment.p_type != PT_DYNAMIC)
            continue;
        dynamic of = dynamic_at(file, elf, segment.p_offset);
        if (of.needed || (of.own_name && is_named(is_glibcs, file, of.strings + of.own_name)))
            return 0;
    }
    return 1;
}

static int program_counts(int file, const Elf64_Ehdr *elf) {
    Elf64_Phdr segment;
    for (unsigned i = 0; i < elf->e_phnum && i < MOST_SEGMENTS; i++)
        if (read_at(file, &segment, sizeof segment, elf->e_phoff + i * sizeof segment) &&
            segment.p_type == PT_DYNAMIC && asks_for(is_runtime, file, elf, segment.p_offset))
            return 1;
    return 0;
}

/* The name of a script's interpreter, terminated in place; null if the file is no script. */
static char *interpreter(char *head) {
    if (head[0] != '#' || head[1] != '!')
        return NULL;
    char *name = head + 2 + strspn(head + 2, " \t");
    name[strcspn(name, " \t\r\n")] = 0;
    return *name ? name : NULL;
}

/* Applies `what` to the program that executing `path` starts, which for a script is its interpreter. Returns
 * `otherwise` if there is no such program, and `unread` if its file may not be read. */
static int holds(int (*what)(int, const Elf64_Ehdr *), const char *path, int otherwise, int unread) {
    char head[256];
    int before = errno, result = otherwise;
    for (int depth = 0; path && depth <= DEEPEST; depth++) {
        int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file < 0) {
            result = errno == EACCES ? unread : otherwise;
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

int nw_takes_preload(const char *path) { return holds(program_takes, path, 1, 1); }

int nw_is_static(const char *path) { return holds(program_is_static, path, 0, 0); }

int nw_counts(const char *path) { return holds(program_counts, path, 0, 1); }
