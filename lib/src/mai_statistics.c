/* MAI's statistics of pages, obtained by comparing the pages' nodes before and after a call. */
#include "kernel.h"
#include "mai_state.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int *nodes_of_pages(const mai_array *array) {
    int *nodes = malloc(sizeof *nodes * array->shape.pages);
    if (nodes && nw_page_nodes(array->data, nodes, array->shape.pages) < 0) {
        free(nodes);
        return NULL;
    }
    return nodes;
}

int *mai_pages_before(const mai_array *array) {
    const nw_machine *machine = nw_machine_now();
    if (machine->online_nodes < 2 || machine->pretended)
        return NULL;
    int *nodes = nodes_of_pages(array);
    for (size_t page = 0; nodes && page < array->shape.pages; page++)
        if (nodes[page] >= 0)
            return nodes;
    free(nodes);
    return NULL;
}

void mai_pages_after(mai_state *state, mai_array *array, int *before, double seconds) {
    int *after = before ? nodes_of_pages(array) : NULL;
    uint64_t moved = 0;
    for (size_t page = 0; after && page < array->shape.pages; page++) {
        if (before[page] < 0 || after[page] < 0 || before[page] == after[page])
            continue;
        if (!array->moves)
            array->moves = calloc(array->shape.pages, sizeof *array->moves);
        if (array->moves)
            array->moves[page]++;
        moved++;
    }
    state->page_moves += moved;
    if (moved)
        state->page_seconds += seconds;
    free(before);
    free(after);
}

double mai_get_time_pmigration(void) {
    mai_state *s = mai_enter("mai_get_time_pmigration");
    if (!s)
        return 0;
    double seconds = s->page_seconds;
    mai_leave(NW_OK);
    return seconds;
}

/* How often the page of an address has moved; -1 if it is in no array of MAI. */
static long moves_of(const mai_state *s, uintptr_t address) {
    size_t page = nw_page_bytes();
    for (size_t i = 0; i < s->array_count; i++) {
        const mai_array *array = &s->arrays[i];
        size_t offset = address - (uintptr_t)array->data;
        if (offset < array->shape.pages * page && mai_array_lives(array))
            return array->moves ? (long)array->moves[offset / page] : 0;
    }
    return -1;
}

int mai_number_page_migration(unsigned long *pageaddrs, int size) {
    mai_state *s = mai_enter("mai_number_page_migration");
    if (!s)
        return NW_NOT_STARTED;
    long sum = pageaddrs ? 0 : (long)s->page_moves;
    if (pageaddrs && size < 0)
        sum = nw_fail(NW_INVALID, "mai_number_page_migration: %d addresses", size);
    for (int i = 0; pageaddrs && i < size && sum >= 0; i++) {
        long moves = moves_of(s, pageaddrs[i]);
        sum = moves < 0
                  ? nw_fail(NW_NO_ARRAY, "mai_number_page_migration: %#lx is in no array of mai_alloc_*", pageaddrs[i])
                  : sum + moves;
    }
    mai_leave(sum < 0 ? (int)sum : NW_OK);
    return sum > INT_MAX ? INT_MAX : (int)sum;
}

static void print_page(uintptr_t address, int node) {
    printf("page %#lx: ", address);
    if (node >= 0)
        printf("node %d\n", node);
    else
        puts(node == -ENOENT   ? "not touched"
             : node == -EFAULT ? "no memory, or never read or written"
                               : strerror(-node));
}

void mai_print_pagenodes(unsigned long *pageaddrs, int size) {
    mai_state *s = mai_enter("mai_print_pagenodes");
    if (!s)
        return;
    int status = NW_OK;
    if (!pageaddrs || size < 0)
        status = nw_fail(NW_INVALID, "mai_print_pagenodes: %d addresses at %p", size, (void *)pageaddrs);
    for (int i = 0; status == NW_OK && i < size; i++) {
        uintptr_t address = pageaddrs[i] - pageaddrs[i] % nw_page_bytes();
        void *page = (void *)address;
        int node = -ENOENT, error = nw_kernel_move(1, &page, NULL, &node);
        if (error)
            status = nw_fail(NW_NOT_DONE, "mai_print_pagenodes: the kernel does not say: %s", strerror(-error));
        else
            print_page(address, node);
    }
    mai_leave(status);
}
