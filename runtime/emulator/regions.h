/* Parallel regions of an emulated program: entered with the first instruction of an outlined function,
 * left with its return, or a jump out of it. */
#ifndef NODEWISE_EMULATOR_REGIONS_H
#define NODEWISE_EMULATOR_REGIONS_H

#include "instruction.h"
#include "outlined.h"
#include "qemu.h"

/* Sets the table of the process image's outlined functions; null: none. */
void nw_regions_known(nw_functions *functions);

/* The outlined function with code at `address`, or null. */
nw_function *nw_regions_find(uint64_t address);

/* Registers callbacks if the function is entered or left at this instruction. */
void nw_regions_listen(struct qemu_plugin_insn *insn, const nw_instruction *seen, nw_function *function);

/* The region that is current on a virtual CPU, as in nw_thread; 0: none. */
uint64_t nw_regions_current(unsigned vcpu);

#endif
