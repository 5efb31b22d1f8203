/* Under an emulator the emulator's plugin counts, not code in the program. This file tells it which thread runs. */
#include "emulator/mark.h"
#include "emulator/outlined.h"
#include "emulator/thread_info.h"
#include "observer.h"

#include <stdlib.h>

bool nw_emulated(void) {
    static int known; /* 1: no, 2: yes */
    if (known == 0)
        known = getenv("NODEWISE_EMULATED") == NULL ? 1 : 2;
    return known == 2;
}

void nw_announce_thread(const nw_observer *observer) {
    nw_thread_info info = {
        .magic = NW_THREAD_INFO_MAGIC,
        .version = NW_LAYOUT_VERSION,
        .ordinal = observer->ordinal,
        .tid = observer->tid,
        .state = nw_state_word(),
        .control = nw_control_page,
        .folder = nw_folder,
        .outlined = &nw_outlined,
    };
    nw_mark(NW_MARK_HERE, &info);
    if (!*(volatile uint32_t *)&info.taken)
        nw_switch_off("no plugin answers: this program does not run under nodewise's emulator");
}
