/* Whether copies still are what they were copied from. */
#include "copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first byte in which two pieces differ, or their length. */
static size_t first_difference(const char *a, const char *b, size_t bytes) {
    enum { STEP = 4096 };
    size_t at = 0;
    while (at + STEP <= bytes && memcmp(a + at, b + at, STEP) == 0)
        at += STEP;
    while (at < bytes && a[at] == b[at])
        at++;
    return at;
}

/* A piece of all copies; the end of the piece if there is no difference. A file that has fewer bytes differs at its
 * end. */
static size_t piece_differs(const nw_copy_set *set, const char *piece, size_t at, size_t bytes, int *node) {
    size_t first = bytes;
    for (int i = 0; i < set->count; i++) {
        size_t here = first_difference(piece, set->of[i].data + at, first);
        if (here < first)
            *node = set->of[i].node;
        first = here;
    }
    return at + first;
}

static int unreadable(const nw_file *file, int error) {
    char name[160];
    nw_file_name(file, name, sizeof name);
    return nw_fail(NW_NOT_DONE, "copies of %s were not compared with it: %s", name, strerror(-error));
}

static int file_differs(const nw_array *array, const nw_copy_set *set, size_t *at, int *node) {
    size_t all = nw_array_bytes(array), end;
    char *piece = malloc(all < NW_PIECE ? all : NW_PIECE);
    if (!piece)
        return nw_fail(NW_NO_MEMORY, "no memory to compare copies with");
    for (*at = 0; *at < all; *at = end) {
        size_t wanted = all - *at < NW_PIECE ? all - *at : NW_PIECE;
        ssize_t got = nw_file_read(array->file, piece, wanted, *at);
        if (got < 0) {
            free(piece);
            return unreadable(array->file, (int)got);
        }
        end = piece_differs(set, piece, *at, (size_t)got, node);
        if (end < *at + wanted) {
            *at = end;
            break;
        }
    }
    free(piece);
    return NW_OK;
}

int nw_copies_differ(const nw_array *array, const nw_copy_set *set, size_t *at, int *node) {
    *node = set->of[0].node;
    if (array->file)
        return file_differs(array, set, at, node);
    *at = piece_differs(set, array->data, 0, nw_array_bytes(array), node);
    return NW_OK;
}

static int file_is_stale(const nw_array *array, const nw_copy_set *set, size_t at, int node) {
    char name[160];
    nw_stamp now = {0};
    nw_file_name(array->file, name, sizeof name);
    nw_file_stamp(array->file, &now);
    unsigned long long byte = (unsigned long long)array->file->offset + at, size = (unsigned long long)now.size;
    if (size <= byte)
        return nw_fail(NW_STALE, "%s has %llu bytes by now: its copies have more, from byte %zu on; nw_drop_copies",
                       name, size, at);
    return nw_fail(NW_STALE,
                   "%s differs from its copy on node %d from byte %zu on (byte %llu of the file)%s; "
                   "nw_drop_copies, then copy anew",
                   name, node, at, byte, nw_stamp_same(&now, &set->stamp) ? "" : ": it was changed since");
}

int nw_copies_stale(const nw_array *array, const nw_copy_set *set, size_t at, int node) {
    if (array->file)
        return file_is_stale(array, set, at, node);
    return nw_fail(NW_STALE,
                   "the array at %p (%zu items of %zu bytes) differs from its copy on node %d from byte %zu on; "
                   "nw_drop_copies, then copy anew",
                   (void *)array->data, array->shape.items, array->shape.item, node, at);
}

int nw_check_copies(const void *pointer) {
    nw_array *array = nw_array_of(pointer);
    size_t at;
    int node;
    if (!array)
        return NW_NO_ARRAY;
    const nw_copy_set *set = atomic_load(&array->copies);
    if (set && atomic_load(&set->dropped))
        return nw_fail(NW_STALE,
                       "the array at %p was written to, first at byte %zu, after it was copied: its copies are "
                       "not used any more",
                       (void *)array->data, atomic_load(&set->written));
    if (!set || set->count == 0)
        return nw_fail(NW_NOT_DONE, "the array at %p has no copies", (void *)array->data);
    int status = nw_copies_differ(array, set, &at, &node);
    if (status != NW_OK || at == nw_array_bytes(array))
        return status;
    return nw_copies_stale(array, set, at, node);
}
