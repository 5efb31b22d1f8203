/* The protocol between the balancer and the companion, over a socket whose abstract name is in
 * $NODEWISE_BALANCE. The Rust mirror is crates/enforce/src/companion.rs.
 *
 * The companion connects and waits for requests. It answers each, in order, with a status: 0 (done, as a
 * preference), 1 (done, strictly) or a negative error number. When the socket is closed, for whatever
 * reason, it lifts all holds. */
#ifndef NODEWISE_PRELOAD_COMPANION_H
#define NODEWISE_PRELOAD_COMPANION_H

#include <stdint.h>

enum nw_request_kind {
    NW_HOLD = 1, /* keeps the pages where they are, while the kernel still samples accesses to them */
    NW_BRING = 2, /* moves them to their new home node and holds them there; this also moves pages that a
                   * scan has made inaccessible, which move_pages cannot do before Linux 6.6 */
};

typedef struct nw_request {
    uint64_t page, pages;
    uint32_t node; /* their home node, by the kernel's number */
    uint32_t kind;
} nw_request;

#endif
