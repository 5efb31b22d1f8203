/* Writes down where libnodewise puts pages, for the simulator: linked between an instrumented program
 * and the library with -Wl,--wrap=nw_place,--wrap=nw_place_by,--wrap=nw_describe,--wrap=nw_describe_by,
 * --wrap=nw_distribute. Under NODEWISE_PRETEND these are the pages of a machine that is not there.
 *
 * Each line of $MAJO_PLACED is a run of pages as the library describes it, `PAGE PAGES NODE` with the
 * first page's number in hex; node -1 is first touch. Later lines hold for what they name again. */
#include "nodewise.h"
#include <stdio.h>
#include <stdlib.h>

nw_distr *__real_nw_describe_by(const void *array, const nw_policy *policy);
int __real_nw_place_by(void *array, const nw_policy *policy);
int __real_nw_distribute(const nw_distr *distr);

enum { LIVE = 256 };

/* Descriptions and their arrays; main threads alone describe. */
static struct {
    const nw_distr *distr;
    const void *array;
} described[LIVE];
static int count;

static void note(const void *array, const nw_distr *distr) {
    const char *name = getenv("MAJO_PLACED");
    FILE *out = name ? fopen(name, "a") : NULL;
    nw_shape shape;
    if (!out || !distr || nw_shape_of(array, &shape) != NW_OK) {
        fprintf(stderr, "note_placement: %s\n", out ? "no description" : "MAJO_PLACED names no file");
        exit(2);
    }
    size_t page_bytes = nw_page_bytes(), first = (size_t)array / page_bytes;
    for (size_t page = 0, end; page < shape.pages; page = end) {
        int node = nw_distr_page_node(distr, page);
        for (end = page + 1; end < shape.pages && nw_distr_page_node(distr, end) == node;)
            end++;
        fprintf(out, "%zx %zu %d\n", first + page, end - page, node);
    }
    fclose(out);
}

nw_distr *__wrap_nw_describe_by(const void *array, const nw_policy *policy) {
    nw_distr *distr = __real_nw_describe_by(array, policy);
    described[count % LIVE].distr = distr;
    described[count++ % LIVE].array = array;
    return distr;
}

nw_distr *__wrap_nw_describe(const void *array, nw_policy policy) { return __wrap_nw_describe_by(array, &policy); }

int __wrap_nw_distribute(const nw_distr *distr) {
    for (int back = 1; back <= LIVE && back <= count; back++)
        if (described[(count - back) % LIVE].distr == distr) {
            note(described[(count - back) % LIVE].array, distr);
            break;
        }
    return __real_nw_distribute(distr);
}

int __wrap_nw_place_by(void *array, const nw_policy *policy) {
    nw_distr *distr = __real_nw_describe_by(array, policy);
    note(array, distr);
    nw_distr_free(distr);
    return __real_nw_place_by(array, policy);
}

int __wrap_nw_place(void *array, nw_policy policy) { return __wrap_nw_place_by(array, &policy); }
