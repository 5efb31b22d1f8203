/* The protocol between the balancer and the companion, over a socket whose abstract name is in
 * $NODEWISE_BALANCE. The Rust mirror is crates/enforce/src/companion.rs.
 *
 * The companion connects and waits for requests. It answers each, in order, with a status: 0 (done, as a
 * preference), 1 (done, strictly) or a negative error number. When the socket is closed, for whatever
 * reason, it lifts all holds. */
#ifndef NODEWISE_PRELOAD_COMPANION_H
#define NODEWISE_PRELOAD_COMPANION_H

#include <stdint.h>

#define NW_STAY UINT32_MAX

/* Keeps pages where they are, or first moves them, while the kernel still samples accesses to them. Nodes go by the
 * kernel's number. */
typedef struct nw_request {
    uint64_t page, pages;
    uint32_t home; /* the node that the policy allows */
    uint32_t to;   /* where the pages are moved before, or NW_STAY. This also moves pages that a scan has made
                    * inaccessible, which move_pages cannot do before Linux 6.6 */
} nw_request;

#endif
