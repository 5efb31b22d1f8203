/* What the balancer and the companion say to each other, over a socket of the abstract name in
 * $NODEWISE_BALANCE. The Rust mirror is crates/enforce/src/companion.rs.
 *
 * The companion connects and waits. It is sent requests and answers each, in order, with one status:
 * 0 (done, as a preference), 1 (done strictly) or a negative error number. When the socket is closed,
 * however that comes about, everything is as it was before. */
#ifndef NODEWISE_PRELOAD_COMPANION_H
#define NODEWISE_PRELOAD_COMPANION_H

#include <stdint.h>

enum nw_request_kind {
    NW_HOLD = 1, /* the kernel keeps these pages where they are, and still says who touches them */
    NW_BRING = 2, /* moves them to their new home, and holds them there: this also reaches pages that
                   * move_pages cannot see because a hint fault is due (before Linux 6.6) */
};

typedef struct nw_request {
    uint64_t page, pages;
    uint32_t node; /* their home, by the kernel's number */
    uint32_t kind;
} nw_request;

#endif
