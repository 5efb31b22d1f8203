/* A mark: how a program tells an emulator that watches it an address or a small number. Anywhere else it
 * is a no-op and a load. The plugin finds the no-op when it translates the code and listens to the load
 * behind it. Numbers travel as the offset in a page of their own, so that no register has to be read
 * (QEMU 7.2 offers none).
 * The Rust mirror is crates/linux/src/mark.rs. x86-64 only: elsewhere a mark is nothing at all. */
#ifndef NODEWISE_EMULATOR_MARK_H
#define NODEWISE_EMULATOR_MARK_H

#include <stdint.h>

/* `nopl NW_MARK_MAGIC + op(%rax)`: 0f 1f 80 and the displacement, then the load. */
#define NW_MARK_MAGIC 0x6e776100
#define NW_MARK_BYTES 7

#define NW_MARK_HERE 1   /* user mode: the address is this thread's nw_thread */
#define NW_MARK_NUMBER 2 /* the address's offset in its page is a number for the next mark */
#define NW_MARK_NODE 3   /* the page at the address lies on the node of the last number */
#define NW_MARK_CPU 4    /* this virtual CPU is the kernel's CPU of the last number */
#define NW_MARK_BEGIN 5  /* from here on, user-mode accesses count */
#define NW_MARK_END 6    /* up to here */
#define NW_MARK_RUN 7    /* the address's offset in its page numbers the run that may begin now */
#define NW_MARK_SLICE 8  /* a slice of the run ends here; the offset is its number, modulo a page */
#define NW_MARK_LAST NW_MARK_SLICE

#if defined __x86_64__
/* Aligned, so that no-op and load lie on one page: one translation sees both. */
#define nw_mark(op, address)                                            \
    __asm__ volatile(".balign 16\n\tnopl %c0(%%rax)\n\tmovb (%1), %%al" \
                     :                                                  \
                     : "i"(NW_MARK_MAGIC + (op)), "r"(address)          \
                     : "rax", "memory")
#else
#define nw_mark(op, address) ((void)(address))
#endif

#endif
