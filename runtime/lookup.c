/* Finds a function of a loaded module by name, without the loader: by the GNU hash tables of the modules' dynamic
 * symbols. */
#define _GNU_SOURCE
#include "loaded.h"
#include "readable.h"

#include <elf.h>
#include <link.h>
#include <string.h>

typedef struct table {
    uint32_t buckets, first, filter_words, filter_shift;
} table;

typedef struct search {
    const char *name;
    size_t bytes; /* of the name, with the terminating zero */
    uint32_t hash;
    void *found;
} search;

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    while (*name != 0)
        hash = hash * 33 + (unsigned char)*name++;
    return hash;
}

/* The loader adds the bias to the addresses in a dynamic section, except where the section is read-only. */
static uintptr_t placed(const nw_listed *module, uintptr_t address) {
    return address < module->bias ? address + module->bias : address;
}

static int find_tables(nw_readable *sight, const nw_listed *module, uintptr_t tables[3]) {
    static const ElfW(Sxword) tags[] = {DT_GNU_HASH, DT_SYMTAB, DT_STRTAB};
    ElfW(Dyn) entry;
    uintptr_t at = module->dynamic;
    for (; nw_read(sight, &entry, at, sizeof entry) && entry.d_tag != DT_NULL; at += sizeof entry)
        for (int i = 0; i < 3; i++)
            if (entry.d_tag == tags[i])
                tables[i] = placed(module, entry.d_un.d_ptr);
    return tables[0] != 0 && tables[1] != 0 && tables[2] != 0;
}

static int is_named(nw_readable *sight, uintptr_t text, const search *wanted) {
    char name[64];
    return wanted->bytes <= sizeof name && nw_read(sight, name, text, wanted->bytes) &&
           memcmp(name, wanted->name, wanted->bytes) == 0;
}

static int look_in(nw_readable *sight, const nw_listed *module, void *opaque) {
    search *wanted = opaque;
    uintptr_t tables[3] = {0};
    table head;
    uint32_t index = 0, hash = 0;
    if (!find_tables(sight, module, tables) || !nw_read(sight, &head, tables[0], sizeof head) || head.buckets == 0)
        return 1;
    uintptr_t buckets = tables[0] + sizeof head + head.filter_words * sizeof(ElfW(Addr));
    uintptr_t chains = buckets + head.buckets * sizeof index;
    if (!nw_read(sight, &index, buckets + wanted->hash % head.buckets * sizeof index, sizeof index) ||
        index < head.first)
        return 1;
    for (; !(hash & 1) && nw_read(sight, &hash, chains + (index - head.first) * sizeof hash, sizeof hash); index++) {
        ElfW(Sym) symbol;
        if ((hash | 1) == (wanted->hash | 1) &&
            nw_read(sight, &symbol, tables[1] + index * sizeof symbol, sizeof symbol) && symbol.st_shndx != SHN_UNDEF &&
            ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && is_named(sight, tables[2] + symbol.st_name, wanted)) {
            wanted->found = (void *)(module->bias + symbol.st_value);
            return 0;
        }
    }
    return 1;
}

void *nw_loaded_function(const char *name) {
    search wanted = {name, strlen(name) + 1, hash_of(name), NULL};
    nw_loaded_each(look_in, &wanted);
    return wanted.found;
}
