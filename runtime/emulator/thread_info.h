/* How our library inside an emulated program tells the plugin which thread runs on a virtual CPU. Both are in
 * the same process and use the same addresses; the address of this block is passed with NW_MARK_HERE. */
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
