/* Damaged unwinding tables: a copy of this program's own, some of whose bytes are changed, is asked about places of its
 * code. A sanitizer ends it where a read leaves the copy. What is asked of a table that is whole has an answer. Ends
 * with `N rows, M of damaged tables`. */
#define _GNU_SOURCE
#include "cfi.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static nw_loaded whole;
static uintptr_t code[2];

static int find(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == PT_GNU_EH_FRAME)
            whole.unwinding = start;
        if (part->p_type == PT_LOAD && part->p_flags & PF_X)
            code[0] = start, code[1] = end;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == PT_LOAD && whole.unwinding >= start && whole.unwinding < end)
            whole.start = whole.unwinding, whole.end = end; /* .eh_frame comes behind its index */
    }
    return 1;
}

static uint32_t state = 1;

static uint32_t draw(uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 4) * below >> 28);
}

/* Half of the damage is to one entry, so that it is met. */
static void damage(unsigned char *bytes, uint32_t size) {
    uint32_t count = draw(8), near = draw(size);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = draw(2) ? near + draw(64) : draw(size);
        if (at < size)
            bytes[at] = (unsigned char)(draw(2) ? draw(256) : bytes[at] ^ 1u << draw(8));
    }
}

/* Every rule that has to be computed, with what the registers might hold. */
static void compute(const nw_loaded *in, const nw_row *row, nw_readable *sight) {
    nw_registers registers = {.valid = draw(1u << 17)};
    nw_readable stack = nw_around(&registers, sizeof registers);
    uint64_t frame = (uintptr_t)&registers, value;
    for (uint32_t i = 0; i < NW_REGISTERS; i++)
        registers.value[i] = draw(2) ? frame : draw(1u << 28);
    for (uint32_t i = 0; i <= row->count; i++) {
        const nw_rule *rule = i < row->count ? &row->rules[i] : &row->frame;
        if (rule->how == NW_COMPUTED || rule->how == NW_COMPUTED_AT)
            nw_cfi_compute(in, rule->offset, &registers, &frame, sight, &stack, &value);
    }
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 1000, rows = 0, damaged = 0;
    int computes = count > 2;
    dl_iterate_phdr(find, NULL);
    size_t size = whole.end - whole.start;
    for (long round = 0; round < rounds; round++) {
        unsigned char *copy = malloc(size);
        memcpy(copy, (void *)whole.start, size);
        nw_loaded in = {.start = (uintptr_t)copy, .end = (uintptr_t)copy + size, .unwinding = (uintptr_t)copy};
        if (round % 8)
            damage(copy, (uint32_t)size);
        for (int i = 0; i < 200; i++) {
            nw_readable sight = {0};
            nw_row row;
            uintptr_t wanted = code[0] + draw((uint32_t)(code[1] - code[0]));
            if (!nw_cfi_row(&in, wanted - whole.start + in.start, &sight, &row))
                continue;
            *(round % 8 ? &damaged : &rows) += 1;
            if (computes)
                compute(&in, &row, &sight);
        }
        free(copy);
    }
    printf("%ld rows, %ld of damaged tables\n", rows, damaged);
    return 0;
}
