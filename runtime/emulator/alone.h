/* A program that loads no libraries, a static one, has no preload that announces its threads: the plugin
 * numbers them itself, and logs what system calls show of its memory. */
#ifndef NODEWISE_EMULATOR_ALONE_H
#define NODEWISE_EMULATOR_ALONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decides, when the first block is translated: at this address, with these bytes. */
void nw_alone_look(uint64_t address, const uint8_t *bytes, size_t size);
bool nw_alone(void);

/* Whether no virtual CPU is assigned to this thread yet. */
bool nw_alone_unassigned(void);

/* Assigns this one to it; `stack` is an address on its stack, or 0. False: its accesses are not counted. */
bool nw_alone_assign(unsigned vcpu, uint64_t stack);

/* A preload is there after all: a dynamic linker was run as a program. */
void nw_alone_give_way(void);

/* Around a system call: its arguments, its result. */
void nw_alone_asked(const uint64_t arguments[5]);
void nw_alone_answered(unsigned vcpu, int64_t number, int64_t result);

/* The child of a fork is a process image of its own. */
void nw_alone_before_fork(void);
void nw_alone_after_fork(void);

#endif
