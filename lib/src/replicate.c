/* Copies of arrays that are only read, one for each node that is to have one. */
#include "copies.h"
#include "kernel.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static void free_set(nw_copy_set *set) {
    for (int i = 0; i < set->count; i++)
        if (set->of[i].data)
            munmap(set->of[i].data, set->bytes);
    free(set->nearest);
    free(set);
}

void nw_copies_free(nw_copy_set *set) {
    while (set) {
        nw_copy_set *earlier = set->earlier;
        nw_guard_end(set, 0);
        free_set(set);
        set = earlier;
    }
}

void nw_copies_unguarded(nw_array *array) {
    nw_copy_set *set = atomic_load(&array->copies);
    if (set)
        nw_guard_end(set, 1);
}

int nw_copies_guarded(const nw_array *array) {
    const nw_copy_set *set = atomic_load(&array->copies);
    return set && nw_guard_holds(set);
}

/* ---- Where --------------------------------------------------------------------------------------- */

/* The nodes that are to have copies. */
typedef struct wish {
    int count, *nodes; /* without the list's doubles */
} wish;

static int listed(const int *nodes, int node_count, wish *to) {
    const nw_machine *machine = nw_machine_now();
    nw_mask seen = {{0}}, all = {{0}};
    char names[160];
    for (int i = 0; i < machine->node_count; i++)
        nw_mask_add(&all, machine->nodes[i]);
    for (int i = 0; i < node_count; i++) {
        if (!nw_machine_has_node(machine, nodes[i])) {
            nw_name_nodes(names, sizeof names, &all);
            return nw_fail(NW_INVALID, "no copy on node %d: this process may use nodes %s only", nodes[i], names);
        }
        if (!nw_mask_has(&seen, nodes[i]))
            to->nodes[to->count++] = nodes[i];
        nw_mask_add(&seen, nodes[i]);
    }
    return NW_OK;
}

/* `nodes` null: those with CPUs. */
static int wished(const int *nodes, int node_count, wish *to) {
    const nw_machine *machine = nw_machine_now();
    if (nodes && node_count < 1)
        return nw_fail(NW_INVALID, "copies on %d nodes: name at least one", node_count);
    if (!nodes) {
        nodes = machine->processors;
        node_count = machine->processor_count;
    }
    *to = (wish){0, calloc((size_t)node_count, sizeof *to->nodes)};
    if (!to->nodes)
        return nw_fail(NW_NO_MEMORY, "no memory for a list of %d nodes", node_count);
    int status = listed(nodes, node_count, to);
    if (status != NW_OK)
        free(to->nodes);
    return status;
}

static int has_copy_on(const nw_copy_set *set, int node) {
    for (int i = 0; i < set->count; i++)
        if (set->of[i].node == node)
            return 1;
    return 0;
}

/* There are copies already. A list must name their nodes. */
static int again(const nw_copy_set *set, const wish *of, int any) {
    int same = of->count == set->count;
    for (int i = 0; i < of->count && same; i++)
        same = has_copy_on(set, of->nodes[i]);
    if (any || same || set->count == 0)
        return set->count ? NW_OK : nw_place_possible();
    nw_mask mask = {{0}};
    char names[160];
    for (int i = 0; i < set->count; i++)
        nw_mask_add(&mask, set->of[i].node);
    nw_name_nodes(names, sizeof names, &mask);
    return nw_fail(NW_INVALID, "the array has copies on nodes %s already: nw_drop_copies first", names);
}

/* ---- Making them --------------------------------------------------------------------------------- */

static int refused(int error) {
    return nw_fail(NW_NOT_DONE, "no copies were made: %s; in a container, allow mbind", strerror(-error));
}

static int no_memory(const nw_copy_set *set, size_t available) {
    if (available)
        return nw_fail(NW_NO_MEMORY, "%d copies take %zu MiB each, and %zu MiB of memory are available: none was made",
                       set->count, set->bytes >> 20, available >> 20);
    return nw_fail(NW_NO_MEMORY, "no memory for %d copies of %zu bytes: none was made", set->count, set->bytes);
}

/* Reserves the copies' memory, each part to be on its node when it is filled. */
static int reserved(nw_copy_set *set) {
    const nw_machine *machine = nw_machine_now();
    size_t available = nw_available_bytes(), all;
    if (__builtin_mul_overflow(set->bytes, (size_t)set->count, &all) || (available && all > available))
        return no_memory(set, available);
    for (int i = 0; i < set->count; i++) {
        nw_copy *copy = &set->of[i];
        copy->data = nw_map(set->bytes);
        if (!copy->data)
            return no_memory(set, 0);
        int error = nw_kernel_prefer(copy->data, set->bytes, copy->node);
        if (error)
            return refused(error);
        if (machine->huge && !machine->huge_always && set->bytes >= machine->huge)
            nw_kernel_huge(copy->data, set->bytes, 1);
    }
    return NW_OK;
}

static int changed(const nw_file *file, ssize_t got) {
    char name[160];
    nw_file_name(file, name, sizeof name);
    if (got < 0)
        return nw_fail(NW_NOT_DONE, "%s cannot be read: %s; no copies were made", name, strerror((int)-got));
    return nw_fail(NW_NOT_DONE, "%s was changed since it was adopted, or while it was read: no copies were made", name);
}

/* Reads a file once, piece by piece, and copies each piece on. */
static int read_pieces(const nw_array *array, nw_copy_set *set) {
    size_t all = nw_array_bytes(array);
    for (size_t at = 0, bytes; at < all; at += bytes) {
        bytes = all - at < NW_PIECE ? all - at : NW_PIECE;
        ssize_t got = nw_file_read(array->file, set->of[0].data + at, bytes, at);
        if (got < (ssize_t)bytes)
            return changed(array->file, got);
        for (int i = 1; i < set->count; i++)
            memcpy(set->of[i].data + at, set->of[0].data + at, bytes);
    }
    return NW_OK;
}

/* Whether the caller's mapping shows what was read: not so at another offset, of another file, or after private changes. The
 * kernel reads the mapping, since touching a file that was truncated kills a process. */
static int shows_the_file(const nw_array *array, const nw_copy_set *set) {
    size_t all = nw_array_bytes(array);
    char *piece = malloc(all < NW_PIECE ? all : NW_PIECE);
    int same = 1;
    for (size_t at = 0, bytes; piece && same && at < all; at += bytes) {
        bytes = all - at < NW_PIECE ? all - at : NW_PIECE;
        struct iovec to = {piece, bytes}, from = {(char *)array->data + at, bytes};
        ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
        if (got < 0)
            break; /* a container may forbid it */
        same = memcmp(piece, set->of[0].data + at, (size_t)got) == 0;
        if ((size_t)got < bytes)
            break;
    }
    free(piece);
    return same;
}

static int another_file(const nw_array *array) {
    char name[160];
    nw_file_name(array->file, name, sizeof name);
    return nw_fail(NW_INVALID, "the memory at %p does not have what %s has from byte %llu on: no copies were made",
                   (void *)array->data, name, (unsigned long long)array->file->offset);
}

/* What is read from the disk goes to the page cache by the thread's policy. It is interleaved, so that the cache does not
 * fill one node, on which there would be no room for the copy then. The copies have a policy of their own. */
static int read_file(const nw_array *array, nw_copy_set *set) {
    const nw_machine *machine = nw_machine_now();
    nw_kernel_policy before = {0};
    nw_mask nodes = {{0}};
    nw_stamp after;
    int error = nw_file_stamp(array->file, &set->stamp);
    if (error)
        return changed(array->file, error);
    for (int i = 0; i < machine->node_count; i++)
        nw_mask_add(&nodes, machine->nodes[i]);
    nw_kernel_thread_interleaves(&before, &nodes);
    int status = read_pieces(array, set);
    nw_kernel_thread_as_before(&before);
    if (status == NW_OK && (nw_file_stamp(array->file, &after) || !nw_stamp_same(&set->stamp, &after)))
        return changed(array->file, 0);
    if (status == NW_OK && !shows_the_file(array, set))
        return another_file(array);
    return status;
}

static int filled(const nw_array *array, nw_copy_set *set, const int *nodes) {
    set->nearest = nw_nearest_of(nodes, set->count, &set->near_size);
    int status = set->nearest ? reserved(set) : nw_fail(NW_NO_MEMORY, "no memory for a table of nodes");
    if (status != NW_OK)
        return status;
    if (array->file)
        return read_file(array, set);
    for (int i = 0; i < set->count; i++)
        memcpy(set->of[i].data, array->data, nw_array_bytes(array));
    return NW_OK;
}

static size_t elsewhere(const nw_copy_set *set) {
    size_t pages = set->bytes / nw_machine_now()->page, wrong = 0;
    for (int i = 0; i < set->count; i++)
        wrong += nw_count_elsewhere(set->of[i].data, pages, set->of[i].node);
    return wrong;
}

/* Checks where the pages of the copies are: if a node is full, the kernel uses others. */
static int verdict(const nw_copy_set *set) {
    size_t wrong = elsewhere(set), pages = set->bytes / nw_machine_now()->page;
    if (wrong == 0)
        return NW_OK;
    return nw_fail(NW_PARTLY, "%zu of the %zu pages of %d copies lie on other nodes than they are for: full nodes",
                   wrong, pages * (size_t)set->count, set->count);
}

/* Begins to guard, where that is wanted. What was written between copying and now is found by comparing. */
static int guarded(const nw_array *array, nw_copy_set *set, int status) {
    size_t at;
    int node;
    if (!nw_guard_wanted())
        return status;
    if (set->earlier)
        nw_guard_end(set->earlier, 0); /* there is one entry for an array */
    nw_guard_begin(array, set);
    if (set->count == 0 || nw_copies_differ(array, set, &at, &node) != NW_OK || at == nw_array_bytes(array))
        return status;
    nw_guard_end(set, 1);
    atomic_store(&set->written, at);
    atomic_store(&set->dropped, 1);
    return nw_copies_stale(array, set, at, node);
}

/* `set` becomes the array's, unless another thread was faster. */
static int published(nw_array *array, nw_copy_set *set, nw_copy_set *before, int status) {
    set->earlier = before;
    if (!atomic_compare_exchange_strong(&array->copies, &before, set)) {
        free_set(set);
        return status;
    }
    return guarded(array, set, status);
}

static int replicated(nw_array *array, const wish *of, int any) {
    nw_copy_set *before = atomic_load(&array->copies);
    if (before && !atomic_load(&before->dropped))
        return again(before, of, any);
    int possible = nw_place_possible();
    if (possible != NW_OK && !nw_guard_wanted())
        return possible;
    const nw_machine *machine = nw_machine_now();
    nw_copy_set *set = calloc(1, sizeof *set + (size_t)of->count * sizeof *set->of);
    if (!set)
        return nw_fail(NW_NO_MEMORY, "no memory for a list of copies");
    set->bytes = (nw_array_bytes(array) + machine->page - 1) / machine->page * machine->page;
    if (possible != NW_OK)
        return published(array, set, before, possible);
    set->count = of->count;
    for (int i = 0; i < of->count; i++)
        set->of[i].node = of->nodes[i];
    int status = filled(array, set, of->nodes);
    if (status != NW_OK) {
        free_set(set);
        return status;
    }
    return published(array, set, before, verdict(set));
}

int nw_replicate_on(void *pointer, const int *nodes, int node_count) {
    nw_array *array = nw_array_of(pointer);
    wish of;
    if (!array)
        return NW_NO_ARRAY;
    int status = wished(nodes, node_count, &of);
    if (status != NW_OK)
        return status;
    status = replicated(array, &of, nodes == NULL);
    free(of.nodes);
    return status;
}

int nw_replicate(void *array) { return nw_replicate_on(array, NULL, 0); }

int nw_drop_copies(void *pointer) {
    nw_array *array = nw_array_of(pointer);
    if (!array)
        return NW_NO_ARRAY;
    nw_copies_unguarded(array);
    nw_copies_free(atomic_exchange(&array->copies, NULL));
    return NW_OK;
}

/* ---- Asking --------------------------------------------------------------------------------------- */

const void *nw_nearest(const void *pointer) {
    nw_array *array = nw_array_of(pointer);
    if (!array)
        return NULL;
    const nw_copy_set *set = atomic_load_explicit(&array->copies, memory_order_acquire);
    if (!set || set->count == 0 || atomic_load_explicit(&set->dropped, memory_order_relaxed))
        return array->data;
    int node = nw_cpu_node_of(nw_machine_now(), sched_getcpu());
    return node >= 0 && node < set->near_size ? set->of[set->nearest[node]].data : array->data;
}

int nw_copies_of(const void *pointer, nw_copies *copies, size_t *pages, int size) {
    nw_array *array = nw_array_of(pointer);
    size_t untouched = 0;
    int error = 0;
    if (!array)
        return NW_NO_ARRAY;
    if (!copies || size < 0 || (!pages && size > 0))
        return nw_fail(NW_INVALID, "no room for copies on %d nodes", size);
    for (int node = 0; node < size; node++)
        pages[node] = 0;
    *copies = (nw_copies){0};
    const nw_copy_set *set = atomic_load(&array->copies);
    for (; set; set = set->earlier) {
        int dropped = atomic_load(&set->dropped);
        *(dropped ? &copies->kept_bytes : &copies->bytes) += set->bytes * (size_t)set->count;
        copies->count += dropped ? 0 : set->count;
        for (int i = 0; i < set->count && !error; i++)
            error = nw_count_on(set->of[i].data, set->bytes / nw_machine_now()->page, pages, size, &untouched);
        copies->elsewhere += elsewhere(set);
    }
    return error ? nw_unanswered(error) : NW_OK;
}
