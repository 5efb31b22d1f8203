/* One object for each kind of access, accessed TIMES by single instructions and by nothing else. */
#include <pthread.h>

enum { TIMES = 1000, PAGE = 4096 };

#define OBJECT(name) static _Alignas(PAGE) char name[2 * PAGE];
#define STEP(name, instructions)                                                       \
    OBJECT(name)                                                                       \
    static void *do_##name(void *unused) {                                             \
        long times = TIMES;                                                            \
        __asm__ volatile("1:\n\t" instructions "\n\tdec %0\n\tjnz 1b"                  \
                         : "+r"(times)                                                 \
                         : "r"(name)                                                   \
                         : "rax", "rbx", "rcx", "rdx", "rdi", "xmm0", "memory", "cc"); \
        return unused;                                                                 \
    }

#define STEPS(X)                                                                           \
    X(load1, "movb 3(%1), %%al")                                                           \
    X(load2, "movw 2(%1), %%ax")                                                           \
    X(load4, "addl 4(%1), %%eax")                                                          \
    X(load8, "movq 8(%1), %%rax")                                                          \
    X(load8_across_lines, "movq 60(%1), %%rax")                                            \
    X(load8_across_pages, "movq 4092(%1), %%rax")                                          \
    X(load16, "movaps 32(%1), %%xmm0")                                                     \
    X(load16_across_pages, "movups 4090(%1), %%xmm0")                                      \
    X(load32, "vmovups 64(%1), %%ymm0")                                                    \
    X(load32_across_pages, "vmovups 4072(%1), %%ymm0")                                     \
    X(load_scalar, "vaddsd 8(%1), %%xmm0, %%xmm0")                                         \
    X(load_fused, "vfmadd231pd 32(%1), %%ymm0, %%ymm0")                                    \
    X(load_fused_scalar, "vfmadd231sd 56(%1), %%xmm0, %%xmm0")                             \
    X(load_masked, "vpcmpeqd %%ymm0, %%ymm0, %%ymm0\n\tvpmaskmovd 32(%1), %%ymm0, %%ymm0") \
    X(load_half, "vpmovzxbw 16(%1), %%ymm0")                                               \
    X(load10, "fldt (%1)\n\tfstp %%st(0)")                                                 \
    X(store1, "movb %%al, 5(%1)")                                                          \
    X(store8, "movq $7, 16(%1)")                                                           \
    X(store8_across_pages, "movq %%rax, 4093(%1)")                                         \
    X(store16, "movups %%xmm0, 24(%1)")                                                    \
    X(store32, "vmovdqu %%ymm0, 31(%1)")                                                   \
    X(store_masked, "vpcmpeqd %%ymm0, %%ymm0, %%ymm0\n\tvmaskmovps %%ymm0, %%ymm0, 8(%1)") \
    X(store10, "fldz\n\tfstpt (%1)")                                                       \
    X(add8, "addq $1, 8(%1)")                                                              \
    X(atomic_add8, "movl $1, %%eax\n\tlock xaddq %%rax, 8(%1)")                            \
    X(exchange4, "xchgl %%eax, 4(%1)")                                                     \
    X(exchange16, "lock cmpxchg16b 16(%1)")                                                \
    X(pushed, "pushq 8(%1)\n\tpopq %%rax")                                                 \
    X(popped, "pushq %%rax\n\tpopq 8(%1)")                                                 \
    X(filled, "leaq 8(%1), %%rdi\n\tmovl $100, %%ecx\n\trep stosb")                        \
    X(filled_by_words, "leaq 8(%1), %%rdi\n\tmovl $100, %%ecx\n\trep stosq")

STEPS(STEP)

OBJECT(copied_from)
OBJECT(copied_to)

int main(void) {
#define RUN(name, instructions) do_##name(0);
    STEPS(RUN)
    void *from = copied_from, *to = copied_to;
    long count = 803;
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    /* Half of it again by two threads at once: an emulator does atomics in another way then. */
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, i ? do_atomic_add8 : do_exchange16, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}
