/* A static program loads no library of ours that could announce its threads. So the plugin numbers them itself,
 * and logs what system calls show of the program's memory. */
#ifndef NODEWISE_EMULATOR_ALONE_H
#define NODEWISE_EMULATOR_ALONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Determines whether the program is static. To be called when the first block is translated, with its address and
 * bytes. */
void nw_alone_look(uint64_t address, const uint8_t *bytes, size_t size);
bool nw_alone(void);

/* Whether no virtual CPU is assigned to this thread yet. */
bool nw_alone_unassigned(void);

/* Assigns the virtual CPU to the calling thread; `stack` is an address on its stack, or 0. False: the thread's accesses
 * are not counted. */
bool nw_alone_assign(unsigned vcpu, uint64_t stack);

/* To be called if our library announces a thread after all: a dynamic loader was run as a program. */
void nw_alone_give_way(void);

/* To be called before and after a system call, with its arguments and its result. */
void nw_alone_asked(const uint64_t arguments[5]);
void nw_alone_answered(unsigned vcpu, int64_t number, int64_t result);

/* The child of a fork is a process image of its own. */
void nw_alone_before_fork(void);
void nw_alone_after_fork(void);

#endif
