/* The page policy "where the program put it": reads what note_placement.c wrote; pages that are not
 * there stay where they were first touched. */
#include "nodewise_policy.h"
#include <stdio.h>
#include <stdlib.h>

static const uint64_t PAGE_NUMBER = (UINT64_C(1) << 48) - 1; /* above it: the process */

uint32_t nodewise_policy_abi(void) { return NODEWISE_POLICY_ABI; }

/* The first of the histogram's pages that is not below `page`. */
static uint64_t find(const nodewise_histogram *h, uint64_t page) {
    uint64_t low = 0, high = h->pages;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if ((h->page[middle] & PAGE_NUMBER) < page)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int nodewise_policy(const nodewise_histogram *h, uint32_t *node) {
    const char *name = getenv("MAJO_PLACED");
    FILE *in = name ? fopen(name, "r") : NULL;
    if (!in)
        return 1;
    for (uint64_t i = 0; i < h->pages; i++)
        node[i] = h->first_touch[i];
    unsigned long page, pages;
    int wanted;
    while (fscanf(in, "%lx %lu %d", &page, &pages, &wanted) == 3)
        for (uint64_t i = find(h, page); i < h->pages && (h->page[i] & PAGE_NUMBER) < page + pages; i++)
            node[i] = wanted < 0 ? h->first_touch[i] : (uint32_t)wanted;
    int failed = ferror(in) || !feof(in);
    fclose(in);
    return failed;
}
