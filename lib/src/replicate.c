/* Copies of arrays that are only read, one for each node that has CPUs. */
#include "kernel.h"
#include "library.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct nw_copies {
    size_t bytes; /* of each */
    int count;
    void *of[]; /* in the order of the machine's processors */
} nw_copies;

void nw_copies_free(nw_copies *copies) {
    for (int i = 0; copies && i < copies->count; i++)
        if (copies->of[i])
            munmap(copies->of[i], copies->bytes);
    free(copies);
}

/* One copy; null where there is no memory. */
static void *copy_on(const nw_array *array, size_t bytes, int node, int *error) {
    void *copy = nw_map(bytes);
    if (!copy)
        return NULL;
    *error = nw_kernel_prefer(copy, bytes, node);
    if (!*error)
        memcpy(copy, array->data, nw_array_bytes(array));
    return copy;
}

static int refused(nw_copies *copies, int error) {
    nw_copies_free(copies);
    if (error)
        return nw_fail(NW_NOT_DONE, "no copies were made: %s; in a container, allow mbind", strerror(-error));
    return nw_fail(NW_NO_MEMORY, "no memory for a copy on each node");
}

/* Checks where the pages of the copies are: if a node is full, the kernel uses others. */
static int verdict(const nw_copies *copies) {
    const nw_machine *machine = nw_machine_now();
    size_t pages = copies->bytes / machine->page, wrong = 0;
    for (int i = 0; i < copies->count; i++)
        wrong += nw_count_elsewhere(copies->of[i], pages, machine->processors[i]);
    if (wrong == 0)
        return NW_OK;
    return nw_fail(NW_PARTLY, "%zu of the %zu pages of %d copies lie on other nodes than they are for: full nodes",
                   wrong, pages * (size_t)copies->count, copies->count);
}

int nw_replicate(void *pointer) {
    const nw_machine *machine = nw_machine_now();
    nw_array *array = nw_array_of(pointer);
    if (!array)
        return NW_NO_ARRAY;
    int status = nw_place_possible(), error = 0;
    if (status != NW_OK || atomic_load(&array->copies))
        return status;
    nw_copies *copies = calloc(1, sizeof *copies + (size_t)machine->processor_count * sizeof(void *));
    if (!copies)
        return refused(copies, 0);
    copies->bytes = (nw_array_bytes(array) + machine->page - 1) / machine->page * machine->page;
    copies->count = machine->processor_count;
    for (int i = 0; i < copies->count; i++) {
        copies->of[i] = copy_on(array, copies->bytes, machine->processors[i], &error);
        if (!copies->of[i] || error)
            return refused(copies, error);
    }
    nw_copies *none = NULL;
    status = verdict(copies);
    if (!atomic_compare_exchange_strong(&array->copies, &none, copies))
        nw_copies_free(copies);
    return status;
}

const void *nw_nearest(const void *pointer) {
    const nw_machine *machine = nw_machine_now();
    nw_array *array = nw_array_of(pointer);
    if (!array)
        return NULL;
    nw_copies *copies = atomic_load_explicit(&array->copies, memory_order_acquire);
    int node = copies ? nw_cpu_node_of(machine, sched_getcpu()) : -1;
    return node >= 0 && node < machine->near_size && machine->nearest ? copies->of[machine->nearest[node]]
                                                                      : array->data;
}
