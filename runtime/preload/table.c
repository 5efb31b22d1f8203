/* Reads the table, and checks everything in it before it is used. */
#define _GNU_SOURCE
#include "table.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int fits(const nw_table *table, nw_section section, size_t size) {
    uint64_t end = section.offset + (uint64_t)section.count * size;
    return section.offset % 8 == 0 && section.offset >= sizeof(nw_table) && end <= table->bytes;
}

/* Whether [first, first + count) lies in a section. */
static int inside(uint32_t first, uint32_t count, nw_section section) {
    return (uint64_t)first + count <= section.count;
}

static int node_known(const nw_table *table, uint32_t node) { return node < table->nodes.count; }

static int distribution_sound(const nw_table *table, const nw_distribution *how) {
    if (!inside(how->first, how->count, table->parts))
        return 0;
    for (uint32_t i = 0; i < how->count; i++)
        if (!node_known(table, nw_parts(table)[how->first + i].node))
            return 0;
    switch (how->kind) {
    case NW_BY_THREAD:
    case NW_CYCLIC_BLOCKS:
    case NW_SKEW_BLOCKS:
    case NW_RANDOM_BLOCKS: return how->repeat > 0;
    case NW_PRIME_BLOCKS: return how->repeat > 0 && how->parameter >= how->count && how->parameter <= UINT32_MAX;
    default: return 1;
    }
}

static int rule_sound(const nw_table *table, const nw_rule *rule) {
    if (!inside(rule->run, rule->runs, table->runs) || !distribution_sound(table, &rule->how))
        return 0;
    for (uint32_t i = 0; i < rule->runs; i++)
        if (!node_known(table, nw_runs(table)[rule->run + i].node))
            return 0;
    if (rule->name != NW_ANY && rule->name >= table->texts.count)
        return 0;
    return rule->site == NW_ANY || rule->site < table->sites.count;
}

static int references_sound(const nw_table *table) {
    for (uint32_t i = 0; i < table->sites.count; i++)
        if (!inside(nw_sites(table)[i].first, nw_sites(table)[i].count, table->frames))
            return 0;
    for (uint32_t i = 0; i < table->ranges.count; i++) {
        const nw_range *range = &nw_ranges(table)[i];
        if (!inside(range->first, range->count, table->frames) || range->module >= table->modules.count)
            return 0;
    }
    for (uint32_t i = 0; i < table->variables.count; i++) {
        const nw_variable *variable = &nw_variables(table)[i];
        if (variable->module >= table->modules.count || variable->rule > table->rules.count)
            return 0;
    }
    if (table->texts.count > 0 && nw_texts(table)[table->texts.count - 1] != 0)
        return 0;
    for (uint32_t i = 0; i < table->rules.count; i++)
        if (!rule_sound(table, &nw_rules(table)[i]))
            return 0;
    for (uint32_t i = 0; i < table->thread_nodes.count; i++)
        if (!node_known(table, nw_thread_nodes(table)[i]))
            return 0;
    return distribution_sound(table, &table->fallback);
}

static const char *fault(const nw_table *table, uint64_t size) {
    if (size < sizeof *table || table->magic != NW_TABLE_MAGIC)
        return "not a placement table";
    if (table->version != NW_TABLE_VERSION)
        return "the table is of another version";
    if (table->bytes != size)
        return "the table is cut short";
#define NW_SECTION_FITS(type, name)              \
    if (!fits(table, table->name, sizeof(type))) \
        return "the table's section " #name " is damaged";
    NW_SECTIONS(NW_SECTION_FITS)
#undef NW_SECTION_FITS
    if (table->nodes.count == 0 || table->nodes.count > NW_NODES ||
        table->thread_cpus.count != table->thread_nodes.count)
        return "the table's counts are damaged";
    for (uint32_t i = 0; i < table->nodes.count; i++)
        if (nw_nodes(table)[i] >= NW_NODES)
            return "the table names a node beyond the limit";
    return table->granule != 1 && table->granule != 512 ? "the table's granule is damaged"
           : references_sound(table)                    ? NULL
                                                        : "the table refers to what it does not have";
}

const nw_table *nw_table_open(const char *path, const char **why) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) {
        *why = "cannot open the table";
        if (file >= 0)
            close(file);
        return NULL;
    }
    void *at = status.st_size > 0 ? mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    *why = at == MAP_FAILED ? "cannot map the table" : fault(at, (uint64_t)status.st_size);
    if (!*why)
        return at;
    if (at != MAP_FAILED)
        munmap(at, (size_t)status.st_size);
    return NULL;
}
