/* Under an emulator the program does not call nw_region_enter, so outlined functions are recognised by their
 * symbols. */
#define _GNU_SOURCE
#include "emulator/outlined.h"
#include "observer.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

nw_functions nw_outlined;

/* The same names as in the compiler pass (compiler/region.cpp). With debug information clang makes a wrapper and a
 * body, `..._debug__`, that it calls; here the wrapper is the region. */
static bool is_outlined(const char *name) {
    if (strstr(name, ".cold") != NULL || strstr(name, "_debug__") != NULL)
        return false;
    return strstr(name, ".omp_outlined") != NULL || strstr(name, ".omp_task_entry") != NULL ||
           strstr(name, "._omp_fn") != NULL;
}

static void add(uint64_t start, uint64_t size) {
    uint32_t next = nw_outlined.count;
    if (next == NW_OUTLINED || size == 0)
        return;
    nw_outlined.entry[next] = (nw_function){.start = start, .end = start + size};
    __atomic_store_n(&nw_outlined.count, next + 1, __ATOMIC_RELEASE);
}

/* Every offset is checked against the size of the file. */
static void scan_symbols(const char *file, uint64_t bytes, const Elf64_Shdr *table, const Elf64_Shdr *names,
                         uint64_t bias) {
    if (table->sh_offset > bytes || table->sh_size > bytes - table->sh_offset || names->sh_offset > bytes ||
        names->sh_size > bytes - names->sh_offset || names->sh_size == 0 ||
        file[names->sh_offset + names->sh_size - 1] != 0)
        return;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(file + table->sh_offset);
    for (uint64_t i = 0; i < table->sh_size / sizeof *symbols; i++)
        if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_name < names->sh_size &&
            is_outlined(file + names->sh_offset + symbols[i].st_name))
            add(bias + symbols[i].st_value, symbols[i].st_size);
}

static void scan(const char *file, uint64_t bytes, uint64_t bias) {
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)file;
    uint64_t sections = (uint64_t)elf->e_shnum * sizeof(Elf64_Shdr);
    if (bytes < sizeof *elf || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_shoff > bytes ||
        sections > bytes - elf->e_shoff || elf->e_shoff % 8 != 0)
        return;
    const Elf64_Shdr *section = (const Elf64_Shdr *)(file + elf->e_shoff);
    for (unsigned i = 0; i < elf->e_shnum; i++)
        if (section[i].sh_type == SHT_SYMTAB && section[i].sh_link < elf->e_shnum)
            scan_symbols(file, bytes, &section[i], &section[section[i].sh_link], bias);
}

void nw_outlined_scan(const char *path, uint64_t bias) {
    long file = nw_system(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    struct stat status;
    long result = nw_system(SYS_fstat, file, &status);
    long at = result < 0 ? result : nw_system(SYS_mmap, NULL, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    nw_system(SYS_close, file);
    if (at < 0 && at > -4096)
        return;
    scan((const char *)at, (uint64_t)status.st_size, bias);
    nw_unmap((void *)at, (size_t)status.st_size);
}
