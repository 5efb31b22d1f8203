/* A mark passes an address or a small number from a program to the emulator that it runs under. Otherwise it is
 * just a no-op and a load. The plugin recognises the no-op when it translates the code, and observes the address
 * of the load that follows. A number is passed as an offset in a page, so that no register has to be read, which
 * plugins of QEMU 7.2 cannot do.
 * The Rust mirror is crates/linux/src/mark.rs. x86-64 only: on other processors a mark does nothing. */
#ifndef NODEWISE_EMULATOR_MARK_H
#define NODEWISE_EMULATOR_MARK_H

#include <stdint.h>

/* `nopl NW_MARK_MAGIC + op(%rax)`: 0f 1f 80 and the displacement, then the load. */
#define NW_MARK_MAGIC 0x6e776100
#define NW_MARK_BYTES 7

#define NW_MARK_HERE 1   /* user mode: the address is that of the calling thread's nw_thread_info */
#define NW_MARK_NUMBER 2 /* the address's offset in its page is a number for the next mark */
#define NW_MARK_NODE 3   /* the page at the address lies on the node of the last number */
#define NW_MARK_CPU 4    /* this virtual CPU is the kernel's CPU of the last number */
#define NW_MARK_BEGIN 5  /* from here on, user-mode accesses are counted */
#define NW_MARK_END 6    /* up to here */
#define NW_MARK_RUN 7    /* the address's offset in its page is the number of the run that may begin now */
#define NW_MARK_SLICE 8  /* a slice of the run ends here; the offset is its number, modulo a page */
#define NW_MARK_LAST NW_MARK_SLICE

#if defined __x86_64__
/* Aligned, so that no-op and load are on one page and are translated together. */
#define nw_mark(op, address)                                            \
    __asm__ volatile(".balign 16\n\tnopl %c0(%%rax)\n\tmovb (%1), %%al" \
                     :                                                  \
                     : "i"(NW_MARK_MAGIC + (op)), "r"(address)          \
                     : "rax", "memory")
#else
#define nw_mark(op, address) ((void)(address))
#endif

#endif
