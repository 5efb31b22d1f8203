/* The runtime's walk beside the C library's, from wherever a program calls it. At exit: how many chains there were,
 * how many differed, and the longest. */
#include "look.h"
#include "backtrace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unwind.h>

struct walk {
    uintptr_t caller, *chain;
    uint32_t depth;
};

static long chains, different;
static uint32_t longest;

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *opaque) {
    struct walk *walk = opaque;
    uintptr_t address = _Unwind_GetIP(context);
    if (walk->depth == 0 && address != walk->caller)
        return _URC_NO_REASON;
    if (address == 0)
        return _URC_END_OF_STACK;
    walk->chain[walk->depth++] = address;
    return walk->depth == NW_CHAIN ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static uint32_t of_library(uintptr_t caller, uintptr_t *chain) {
    struct walk walk = {caller, chain, 0};
    _Unwind_Backtrace(step, &walk);
    return walk.depth;
}

void look(void) {
    uintptr_t caller = (uintptr_t)__builtin_return_address(0), found[NW_CHAIN], expected[NW_CHAIN];
    errno = 123;
    uint32_t depth = nw_backtrace(caller, found), wanted = of_library(caller, expected);
    int same = errno == 123 && depth == wanted && memcmp(found, expected, depth * sizeof *found) == 0;
    chains++;
    different += !same;
    longest = depth > longest ? depth : longest;
    for (uint32_t i = 0; !same && i < NW_CHAIN; i++)
        fprintf(stderr, "%2u %lx %lx\n", i, i < depth ? found[i] : 0, i < wanted ? expected[i] : 0);
}

__attribute__((destructor)) static void say(void) {
    look();
    printf("%ld chains, %ld different, up to %u calls\n", chains, different, longest);
}
