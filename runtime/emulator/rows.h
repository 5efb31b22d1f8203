/* What the laboratory's counter plugin writes to its file descriptor: rows, in the order of events.
 * The Rust mirror is crates/lab/src/rows.rs. */
#ifndef NODEWISE_EMULATOR_ROWS_H
#define NODEWISE_EMULATOR_ROWS_H

#include <stdint.h>

enum nw_row_kind {
    NW_ROW_NODE = 1, /* number: a node; frame: of a page that lies on it */
    NW_ROW_CPU,      /* number: the kernel's CPU that `vcpu` is */
    NW_ROW_BEGIN,    /* number: of this begin, from 0 */
    NW_ROW_PAGE,     /* between begin and end: one page seen by one virtual CPU on one frame */
    NW_ROW_END,
    NW_ROW_RUN,      /* number: the run that the next begin and end belong to, if they come */
    NW_ROW_SLICE,    /* ends a slice: the page rows before it count its accesses only, not all since the begin */
};

/* A frame is the emulator's physical address / 4096. It is not the guest kernel's frame number: QEMU 7.2 adds a
 * RAM block's offset twice. Node rows relate frames to nodes; a node's memory is contiguous. */
typedef struct nw_row {
    uint32_t kind;
    uint32_t vcpu;
    uint64_t number;
    uint64_t page;  /* virtual page number */
    uint64_t frame;
    uint64_t reads;
    uint64_t writes;
    uint64_t seen;  /* order: when this CPU last began to use the page on this frame */
} nw_row;

#endif
