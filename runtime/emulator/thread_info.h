/* How the preload inside an emulated program tells the plugin around it which thread runs on this virtual CPU.
 * Both live in one process and at the same addresses; the address of this block goes out with
 * NW_MARK_HERE. */
#ifndef NODEWISE_EMULATOR_THREAD_INFO_H
#define NODEWISE_EMULATOR_THREAD_INFO_H

#include "../layout.h"

#define NW_THREAD_INFO_MAGIC 0x6f666e6965646f6eull /* "nodeinfo" */

typedef struct nw_thread_info {
    uint64_t magic;
    uint32_t version; /* NW_LAYOUT_VERSION */
    uint32_t taken;   /* the plugin's answer: 1 */
    uint32_t ordinal;
    uint32_t tid;
    int *state;       /* enum nw_state of the process, for both to see and set */
    nw_control *control;
    const char *folder; /* of the process image */
    struct nw_functions *outlined;
} nw_thread_info;

#endif
