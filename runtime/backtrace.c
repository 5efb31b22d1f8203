#include "backtrace.h"

#include <unwind.h>

struct walk {
    uintptr_t caller;
    uintptr_t *chain;
    uint32_t depth;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *opaque)
{
    struct walk *walk = opaque;
    uintptr_t address = _Unwind_GetIP(context);
    if (walk->depth == 0 && address != walk->caller)
        return _URC_NO_REASON; /* still inside this library */
    if (address == 0)
        return _URC_END_OF_STACK;
    walk->chain[walk->depth++] = address;
    return walk->depth == NW_CHAIN ? _URC_END_OF_STACK : _URC_NO_REASON;
}

uint32_t nw_backtrace(uintptr_t caller, uintptr_t chain[NW_CHAIN])
{
    struct walk walk = {caller, chain, 0};
    _Unwind_Backtrace(step, &walk);
    if (walk.depth == 0)
        chain[walk.depth++] = caller; /* the unwinder lost its way */
    return walk.depth;
}
