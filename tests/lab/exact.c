/* Touches known bytes of its objects, on known nodes, from known CPUs, and says how often: lines
 * `expect PAGE CPU_NODE MEMORY_NODE ACCESSES` for each object, page in hex; `total PAGE CPU_NODE ACCESSES`
 * where a page moved between nodes 0 and 1 meanwhile. The laboratory must count exactly that. The accesses are single instructions in assembly: nothing else touches the objects. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

enum { PAGE = 4096, NODES = 16, OBJECTS = 64, CPUS = 64, MOVE = 2 };

enum { MODE_DEFAULT = 0, MODE_PREFERRED = 1, MODE_BIND = 2 };

/* Shared with children: what is to be seen. */
static struct expectation {
    atomic_int objects;
    uint64_t page[OBJECTS];
    atomic_ullong count[OBJECTS][NODES][NODES];
    atomic_ullong total[OBJECTS][NODES]; /* of one that moves */
    atomic_int moves[OBJECTS];
    atomic_int turn, to_move;
} *expected;

static int nodes, cpus, cpu_of[NODES]; /* a CPU of each node, -1 where there is none */

static void fail(const char *what) {
    perror(what);
    exit(99);
}

#define STEP(name, weight, instruction, ...)                           \
    static void name(char *at, uint64_t times) {                       \
        __asm__ volatile("1:\n\t" instruction "\n\tdec %0\n\tjnz 1b"   \
                         : "+r"(times)                                 \
                         : "r"(at)                                     \
                         : "memory", "cc" __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                  \
    enum { name##_weight = weight };

/* How often one execution counts: a read-modify-write is a read and a write, a string instruction counts
 * words of eight bytes as begun. */
#define STEPS(X)                                                                          \
    X(load1, 1, "movb (%1), %%al", "rax")                                                 \
    X(load2, 1, "movw 2(%1), %%ax", "rax")                                                \
    X(load4, 1, "movl 4(%1), %%eax", "rax")                                               \
    X(load8, 1, "movq 8(%1), %%rax", "rax")                                               \
    X(load8_across_lines, 1, "movq 60(%1), %%rax", "rax")                                 \
    X(load8_across_pages, 1, "movq 4092(%1), %%rax", "rax")                               \
    X(load16, 1, "movups 16(%1), %%xmm0", "xmm0")                                         \
    X(load16_across_pages, 1, "movups 4091(%1), %%xmm0", "xmm0")                          \
    X(load16_whole, 1, "movaps 32(%1), %%xmm0", "xmm0")                                   \
    X(multiply8, 1, "mulsd 8(%1), %%xmm0", "xmm0")                                        \
    X(add16, 1, "addpd 16(%1), %%xmm0", "xmm0")                                           \
    X(load32, 1, "vmovups 64(%1), %%ymm0", "xmm0")                                        \
    X(load32_across_pages, 1, "vmovups 4080(%1), %%ymm0", "xmm0")                         \
    X(add32, 1, "vaddpd 32(%1), %%ymm0, %%ymm0", "xmm0")                                  \
    X(store1, 1, "movb %%al, (%1)")                                                       \
    X(store4, 1, "movl $7, 4(%1)")                                                        \
    X(store8, 1, "movq %%rax, 8(%1)")                                                     \
    X(store16, 1, "movups %%xmm0, 16(%1)")                                                \
    X(store16_past, 1, "movntps %%xmm0, 16(%1)")                                          \
    X(store32, 1, "vmovups %%ymm0, 96(%1)")                                               \
    X(store16_vex, 1, "vmovups %%xmm0, 96(%1)")                                           \
    X(modify4, 2, "addl $3, 12(%1)")                                                      \
    X(modify8_locked, 2, "lock addq $3, 16(%1)")                                          \
    X(exchange8, 2, "xchgq %%rax, 24(%1)", "rax")                                         \
    X(fill_words, 13, "lea 128(%1), %%rdi\n\tmov $100, %%ecx\n\trep stosb", "rcx", "rdi") \
    X(copy_words, 26, "lea 512(%1), %%rsi\n\tlea 256(%1), %%rdi\n\tmov $25, %%ecx\n\trep movsl", "rcx", "rsi", "rdi")

STEPS(STEP)

typedef struct step {
    const char *name;
    void (*run)(char *at, uint64_t times);
    int weight;
} step;

#define STEP_ENTRY(name, weight, ...) {#name, name, weight},
static const step steps[] = {STEPS(STEP_ENTRY)};
enum { STEP_COUNT = sizeof steps / sizeof *steps };

static int object_at(const char *at) {
    uint64_t page = (uintptr_t)at / PAGE;
    for (int i = 0; i < expected->objects; i++)
        if (expected->page[i] == page)
            return i;
    fail("no such object");
    return -1;
}

/* The node of a page that has memory. */
static int node_of(void *page) {
    int status = -1;
    if (syscall(SYS_move_pages, 0, 1ul, &page, NULL, &status, 0) != 0 || status < 0)
        fail("where is the page?");
    return status;
}

static int own_node(void) {
    unsigned cpu, node;
    syscall(SYS_getcpu, &cpu, &node, NULL);
    return (int)node;
}

static void go_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fail("sched_setaffinity");
}

static unsigned long mask_of(int node) { return 1ul << node; }

static void prefer(int node) {
    unsigned long mask = mask_of(node);
    if (syscall(SYS_set_mempolicy, MODE_PREFERRED, &mask, 65ul) != 0)
        fail("set_mempolicy");
}

/* An object of its own, its pages untouched. */
static char *object(size_t pages) {
    char *at = malloc(pages * PAGE);
    if (!at || (uintptr_t)at % PAGE != 0)
        fail("malloc: not an object of its own");
    expected->page[expected->objects++] = (uintptr_t)at / PAGE;
    return at;
}

static char *bound(size_t pages, int node) {
    char *at = object(pages);
    unsigned long mask = mask_of(node);
    if (syscall(SYS_mbind, at, pages * PAGE, MODE_BIND, &mask, 65ul, 0) != 0)
        fail("mbind");
    return at;
}

static void expect(const char *first, const char *page, uint64_t accesses) {
    int object = object_at(first), node = own_node();
    if (expected->moves[object])
        expected->total[object][node] += accesses;
    else
        expected->count[object][node][node_of((void *)(uintptr_t)page)] += accesses;
}

/* `times` of a step at a page of the object at `first`, and what it must come to. */
static void touch(const char *first, char *page, const step *how, uint64_t times) {
    how->run(page, times);
    expect(first, page, times * (uint64_t)how->weight);
}

static const step *called(const char *name) {
    for (int i = 0; i < STEP_COUNT; i++)
        if (strcmp(steps[i].name, name) == 0)
            return &steps[i];
    fail(name);
    return NULL;
}

/* Each way to touch, from every node at every node, a different number of times each. */
static void every_step_everywhere(void) {
    for (int to = 0; to < nodes; to++) {
        char *at = bound(16, to);
        touch(at, at, called("store8"), 1); /* a page that is only read has no memory of its own */
        for (int from = 0; from < nodes; from++)
            for (int i = 0; i < STEP_COUNT && cpu_of[from] >= 0; i++) {
                go_to(cpu_of[from]);
                touch(at, at, &steps[i], (uint64_t)(100 + 10 * i + 3 * from + to));
            }
    }
}

/* A page is moved while its translation is in use, there and back, on one CPU and seen by others. */
static void migration(void) {
    char *at = bound(16, 0);
    void *page = at;
    touch(at, at, called("store8"), 500);
    for (int round = 0; round < 3 * nodes; round++) {
        int to = round % nodes, status;
        for (int from = 0; from < nodes; from++)
            if (cpu_of[from] >= 0) {
                go_to(cpu_of[from]);
                touch(at, at, called("load8"), (uint64_t)(50 + round));
            }
        syscall(SYS_mbind, at, 16ul * PAGE, MODE_DEFAULT, NULL, 0ul, 0);
        if (syscall(SYS_move_pages, 0, 1ul, &page, &to, &status, MOVE) != 0 || status != to)
            fail("move_pages");
    }
}

typedef struct shared_page {
    char *at;
    int cpu;
} shared_page;

static int hammer(void *argument) {
    shared_page *mine = argument;
    go_to(mine->cpu);
    for (int i = 0; i < 20 || expected->to_move > 0; i++)
        touch(mine->at, mine->at, called("modify8_locked"), 1000);
    return 0;
}

/* Threads on all CPUs at one page at once, which meanwhile moves to and fro, so many times. */
static void threads_at_once(int moves) {
    char *at = bound(16, moves ? 0 : nodes - 1);
    void *page = at;
    thrd_t all[CPUS];
    shared_page places[CPUS];
    expected->moves[object_at(at)] = moves;
    touch(at, at, called("store8"), 1);
    syscall(SYS_mbind, at, 16ul * PAGE, MODE_DEFAULT, NULL, 0ul, 0);
    expected->to_move = moves;
    for (int i = 0; i < cpus; i++) {
        places[i] = (shared_page){at, i};
        if (thrd_create(&all[i], hammer, &places[i]) != thrd_success)
            fail("thrd_create");
    }
    while (expected->to_move > 0) {
        int to = expected->to_move % 2, status = -1;
        syscall(SYS_move_pages, 0, 1ul, &page, &to, &status, MOVE);
        expected->to_move -= status == to; /* a busy page stays */
    }
    for (int i = 0; i < cpus; i++)
        thrd_join(all[i], NULL);
}

static void await(int turn) {
    while (expected->turn != turn)
        sched_yield();
}

static pid_t split(void) {
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    return child;
}

static void join(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("the child failed");
}

/* Shared after fork: the child reads its parent's frame, writes its own copy on another node. */
static void copy_on_write(void) {
    char *at = object(16);
    go_to(0);
    prefer(0);
    touch(at, at, called("store8"), 70);
    touch(at, at + 3 * PAGE, called("store8"), 30);
    pid_t child = split();
    if (child == 0) {
        go_to(cpus - 1);
        prefer(nodes - 1);
        touch(at, at, called("load8"), 210);
        touch(at, at + 5 * PAGE, called("store1"), 20);
        touch(at, at, called("store8"), 330);
        touch(at, at, called("load4"), 440);
        touch(at, at + 3 * PAGE, called("load4"), 55);
        exit(0);
    }
    touch(at, at, called("load2"), 1200);
    join(child);
    touch(at, at, called("modify4"), 17);
    syscall(SYS_set_mempolicy, MODE_DEFAULT, NULL, 0ul);
}

/* Two processes in turns on one CPU, at the same virtual page with different frames behind it. */
static void turns_on_one_cpu(void) {
    char *at = object(16);
    go_to(0);
    prefer(0);
    touch(at, at, called("store8"), 9);
    expected->turn = 0;
    pid_t child = split();
    if (child == 0)
        prefer(nodes - 1);
    for (int i = 0; i < 50; i++) {
        await(2 * i + (child != 0));
        touch(at, at, called(i == 0 ? "store8" : "load8"), child == 0 ? 300 : 7);
        expected->turn++;
    }
    if (child == 0)
        exit(0);
    join(child);
    syscall(SYS_set_mempolicy, MODE_DEFAULT, NULL, 0ul);
}

/* The same address given back and touched again on another node. */
static void given_back(void) {
    char *at = object(16);
    for (int round = 0; round < 2 * nodes; round++) {
        prefer(round % nodes);
        touch(at, at, called("store8"), 11 + (uint64_t)round);
        touch(at, at, called("load16"), 5);
        if (madvise(at, PAGE, MADV_DONTNEED) != 0)
            fail("madvise");
    }
    syscall(SYS_set_mempolicy, MODE_DEFAULT, NULL, 0ul);
}

/* More pages than any table holds, in strides that fall on one slot of it. */
static void many_pages(void) {
    enum { STRIDE = 512, COUNT = 8 };
    char *at = bound(STRIDE * COUNT, nodes - 1);
    go_to(0);
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < COUNT; i++)
            touch(at, at + (size_t)i * STRIDE * PAGE, called("store8"), 3);
}

static void find_cpus(void) {
    cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < NODES; i++)
        cpu_of[i] = -1;
    for (int cpu = 0; cpu < cpus; cpu++) {
        go_to(cpu);
        if (own_node() + 1 > nodes)
            nodes = own_node() + 1;
        cpu_of[own_node()] = cpu;
    }
}

static void say(void) {
    for (int i = 0; i < expected->objects; i++)
        for (int from = 0; from < nodes; from++) {
            if (expected->moves[i])
                printf("total %llx %d %llu\n", (unsigned long long)expected->page[i], from,
                       (unsigned long long)expected->total[i][from]);
            for (int to = 0; !expected->moves[i] && to < nodes; to++)
                printf("expect %llx %d %d %llu\n", (unsigned long long)expected->page[i], from, to,
                       (unsigned long long)expected->count[i][from][to]);
        }
}

int main(void) {
    expected = mmap(NULL, sizeof *expected, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (expected == MAP_FAILED)
        fail("mmap");
    find_cpus();
    every_step_everywhere();
    migration();
    threads_at_once(0);
    threads_at_once(12);
    copy_on_write();
    turns_on_one_cpu();
    given_back();
    many_pages();
    say();
    return 0;
}
