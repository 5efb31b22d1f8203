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
    uintptr_t but; /* bias of a module that does not count */
    void *found;
} search;

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* of our own module, which begins with it */

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
    if (module->bias == wanted->but)
        return 1;
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
    search wanted = {.name = name, .bytes = strlen(name) + 1, .hash = hash_of(name), .but = UINTPTR_MAX};
    nw_loaded_each(look_in, &wanted);
    return wanted.found;
}

/* ---- The function that a module's calls of that name are meant for, where several modules define it. ---- */

/* Reads a text into `out`, cut at `size`. The part of a page is read at once: what follows may not be mapped. */
static size_t read_text(nw_readable *sight, uintptr_t at, char *out, size_t size) {
    enum { SMALLEST_PAGE = 4096 };
    size_t length = 0;
    while (length + 1 < size) {
        size_t part = SMALLEST_PAGE - (at + length) % SMALLEST_PAGE, room = size - 1 - length;
        part = part < room ? part : room;
        part = part < 64 ? part : 64;
        if (!nw_read(sight, out + length, at + length, part))
            break;
        const char *end = memchr(out + length, 0, part);
        if (end != NULL)
            return (size_t)(end - out);
        length += part;
    }
    out[length] = 0;
    return length;
}

typedef struct needed {
    search wanted;
    uintptr_t bias; /* of the module that calls */
    nw_listed by;   /* the same, once it is found */
} needed;

static int find_caller(nw_readable *sight, const nw_listed *module, void *opaque) {
    needed *calls = opaque;
    (void)sight;
    if (module->bias != calls->bias)
        return 1;
    calls->by = *module;
    return 0;
}

/* Whether a module is one that the calling module names (DT_NEEDED), or that module itself. */
static int is_meant(nw_readable *sight, const nw_listed *module, const needed *calls) {
    char path[400], name[128];
    uintptr_t texts = 0, at = calls->by.dynamic;
    ElfW(Dyn) entry;
    if (module->bias == calls->bias)
        return 1;
    size_t length = read_text(sight, module->path, path, sizeof path);
    const char *slash = memrchr(path, '/', length), *base = slash == NULL ? path : slash + 1;
    for (; nw_read(sight, &entry, at, sizeof entry) && entry.d_tag != DT_NULL; at += sizeof entry)
        if (entry.d_tag == DT_STRTAB)
            texts = placed(&calls->by, entry.d_un.d_ptr);
    at = calls->by.dynamic;
    for (; texts != 0 && nw_read(sight, &entry, at, sizeof entry) && entry.d_tag != DT_NULL; at += sizeof entry)
        if (entry.d_tag == DT_NEEDED && read_text(sight, texts + entry.d_un.d_val, name, sizeof name) > 0 &&
            strcmp(name, base) == 0)
            return 1;
    return 0;
}

static int look_in_meant(nw_readable *sight, const nw_listed *module, void *opaque) {
    needed *calls = opaque;
    return !is_meant(sight, module, calls) || look_in(sight, module, &calls->wanted);
}

void *nw_called_function(const char *name, uintptr_t caller) {
    nw_loaded module;
    needed calls = {.wanted = {.name = name, .bytes = strlen(name) + 1, .hash = hash_of(name)}};
    calls.wanted.but = (uintptr_t)__ehdr_start;
    if (nw_loaded_at(caller, &module)) {
        calls.bias = module.bias;
        nw_loaded_each(find_caller, &calls);
        if (calls.by.dynamic != 0)
            nw_loaded_each(look_in_meant, &calls);
    }
    if (calls.wanted.found == NULL)
        nw_loaded_each(look_in, &calls.wanted);
    return calls.wanted.found;
}
