/* Under an emulator nothing is instrumented: its plugin counts, and is told here for whom. */
#include "emulator/seat.h"
#include "emulator/mark.h"
#include "emulator/outlined.h"
#include "observer.h"

#include <stdlib.h>

bool nw_emulated(void) {
    static int known; /* 1: no, 2: yes */
    if (known == 0)
        known = getenv("NODEWISE_EMULATED") == NULL ? 1 : 2;
    return known == 2;
}

void nw_seat_take(const nw_observer *observer) {
    nw_seat seat = {
        .magic = NW_SEAT_MAGIC,
        .version = NW_LAYOUT_VERSION,
        .ordinal = observer->ordinal,
        .tid = observer->tid,
        .state = nw_state_word(),
        .control = nw_control_page,
        .folder = nw_folder,
        .outlined = &nw_outlined,
    };
    nw_mark(NW_MARK_HERE, &seat);
    if (!*(volatile uint32_t *)&seat.taken)
        nw_switch_off("no plugin answers: this program does not run under nodewise's emulator");
}
