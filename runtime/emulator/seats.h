/* Who sits on each virtual CPU, and the process image they count for. */
#ifndef NODEWISE_EMULATOR_SEATS_H
#define NODEWISE_EMULATOR_SEATS_H

#include "../counters.h"
#include "../observer.h"
#include "seat.h"

/* What an access needs of its virtual CPU: one cache line. */
typedef struct nw_place {
    nw_slot *window;       /* with nothing in it while nobody sits here */
    uint64_t region;       /* as in nw_thread */
    nw_observer *observer; /* null while nobody sits here */
    struct {
        uint64_t next, end; /* what is still to come of an access in pieces, or 0 */
    } pieces[2];            /* read, written */
    uint64_t ordinal; /* in the order of creation, while nobody sits here */
} nw_place;

/* More threads than Linux starts by default. But QEMU numbers them one above the highest alive, so that threads which
 * each start the next get there one after the other. */
#ifndef NW_PLACES
#define NW_PLACES (1u << 16)
#endif
extern _Alignas(64) nw_place nw_places[NW_PLACES + 1]; /* the last: of all who find none, where nobody sits */

static inline nw_place *nw_place_of(unsigned vcpu) { return &nw_places[vcpu < NW_PLACES ? vcpu : NW_PLACES]; }

void nw_place_open(unsigned vcpu);
void nw_place_close(unsigned vcpu);

/* The address that came with NW_MARK_HERE; false if there is no seat. */
bool nw_place_take(unsigned vcpu, uint64_t seat);
void nw_place_sit(unsigned vcpu, const nw_seat *seat);

/* From here on this process counts, and logs, for the seat's process image. */
void nw_image_enter(const nw_seat *seat);

/* The process ends: one that was made as a copy of another and marked no place was not counted, and that is said. Copies
 * that exist to execute something else (`shares`: made by vfork, posix_spawn) mark none. */
void nw_image_copied(bool shares);
void nw_image_ends(void);

/* Every place is empty from here on: in the child of a fork, until it marks itself. */
void nw_places_forget(void);

#endif
