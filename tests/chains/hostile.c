/* Allocates and maps memory, of an object's size, from places that unwinding tables do not describe, or describe
 * wrongly: by code that it made itself. The argument says which; ends with 42. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { BYTES = 1 << 17, STACK = 1 << 16, BEHIND = 8 << 20 };
typedef void (*call)(void (*function)(void));

void __register_frame(void *);

/* Calls its argument, in a frame of its own. */
#ifdef __x86_64__
static const unsigned char code[] = {0x55, 0x53, 0x48, 0x83, 0xec, 0x08, 0x48, 0xc7, 0xc5,
                                     0x07, 0,    0,    0, /* ebp: no frame */
                                     0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0x5b, 0x5d, 0xc3};
#else
static const unsigned char code[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x00, 0x80, 0xd2, 0x00, 0x00,
                                     0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
#endif

static unsigned char *made; /* a page of code, and one for tables of it */
static volatile long allocated;

static void allocate(void) {
    for (int i = 0; i < 3; i++) {
        errno = 77;
        char *memory = malloc(BYTES);
        memory[0] = 1;
        memory = realloc(memory, 3 * BYTES);
        memory[0] = 1;
        free(memory);
        char *mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mapped[0] = 1;
        munmap(mapped, BYTES);
        allocated += errno == 77;
    }
}

static void make(void) {
    made = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, sizeof code);
}

static void from_made_code(void) {
    mprotect(made, 4096, PROT_READ | PROT_EXEC);
    __builtin___clear_cache((char *)made, (char *)made + 4096);
    ((call)made)(allocate);
}

/* A table of one entry for the made code, with these rules. */
static void put_table(const unsigned char *rules, unsigned char bytes) {
    static const unsigned char common[] = {12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0, 0, 0};
    unsigned char *table = made + 4096, *entry = table + sizeof common;
    uint32_t length = 4 + 16 + 24, back = sizeof common + 4;
    uint64_t range[2] = {(uintptr_t)made, sizeof code};
    memcpy(table, common, sizeof common);
    memcpy(entry, &length, 4);
    memcpy(entry + 4, &back, 4);
    memcpy(entry + 8, range, 16);
    memcpy(entry + 24, rules, bytes);
    __register_frame(table);
}

/* The way of LuaJIT: an entry for the sake of its handler of exceptions, without a rule. */
static void no_rule(void) {
    make();
    put_table((const unsigned char[]){0}, 1);
    from_made_code();
}

/* The frame is said to begin 64 MiB further up. */
static void wrong_rule(void) {
    make();
    put_table((const unsigned char[]){0x0c, 7, 0x80, 0x80, 0x80, 0x20, 0x90, 1}, 8);
    from_made_code();
}

static void no_table(void) {
    make();
    from_made_code();
}

/* Of this module, so that its table is asked: the frame is said to be of 4 MiB, where no stack is. */
#ifdef __x86_64__
__asm__(".text\n.type lies, @function\nlies:\n.cfi_startproc\nsubq $8, %rsp\n.cfi_def_cfa_offset 4194304\n"
        "call allocate_here\naddq $8, %rsp\nret\n.cfi_endproc\n.size lies, .-lies\n");
#else
__asm__(".text\n.type lies, %function\nlies:\n.cfi_startproc\nstp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 4194304\n"
        ".cfi_offset 30, -8\nbl allocate_here\nldp x29, x30, [sp], #16\nret\n.cfi_endproc\n.size lies, .-lies\n");
#endif
void lies(void);
__attribute__((used)) void allocate_here(void) { allocate(); }

/* On a stack behind which nothing can be read. */
static ucontext_t outside, inside;

static void on_stack(void (*function)(void)) {
    char *stack = mmap(NULL, STACK + BEHIND, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack, STACK, PROT_READ | PROT_WRITE);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = STACK;
    inside.uc_link = &outside;
    makecontext(&inside, function, 0);
    swapcontext(&outside, &inside);
}

static void coroutine(void) {
    make();
    on_stack(from_made_code);
    on_stack(lies);
}

static void handle(int number) {
    (void)number;
    allocate();
    if (made != NULL)
        ((call)made)(allocate);
}

static void raise_signal(void) { raise(SIGUSR1); }
static void signal_from_made_code(void) { ((call)made)(raise_signal); }

/* Handlers, on the stack in use and on one of their own, above code with a table and without. */
static void signals(void) {
    static char stack[65536];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGUSR1, &action, NULL);
    raise_signal();
    make();
    from_made_code();
    signal_from_made_code();
    on_stack(signal_from_made_code);
    action.sa_flags = SA_ONSTACK;
    sigaltstack(&other, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise_signal();
    signal_from_made_code();
    on_stack(raise_signal);
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"no-table", no_table}, {"no-rule", no_rule},     {"wrong-rule", wrong_rule},
                 {"lies", lies},         {"coroutine", coroutine}, {"signals", signals}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (count == 2 && strcmp(arguments[1], cases[i].name) == 0)
            cases[i].run();
    printf("allocated %ld\n", allocated);
    return 42;
}
