/* Programs that a companion must not break: companion WHAT. Each says its process, waits to be held where
 * that matters, and prints `right`. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MODE_INTERLEAVE = 3, FLAG_ADDRESS = 2, MIB = 1 << 20 };
enum { BALANCING = 1 << 13 };

static int policy(const void *at) {
    int mode = -1;
    syscall(SYS_get_mempolicy, &mode, NULL, 0ul, at, at ? FLAG_ADDRESS : 0);
    return mode;
}

static int held(const void *at) { return policy(at) > 0 && policy(at) & BALANCING; }

static char *map(size_t bytes) { return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

/* Whether it comes about within some seconds. */
static int until(int (*holds)(const void *), const void *at, int wanted) {
    for (int i = 0; i < 2000; i++) {
        if (holds(at) == wanted)
            return 1;
        usleep(10000);
    }
    return 0;
}

/* A mapping of which a half is touched, and so held, grows and moves as if it were one. */
static int grows(void) {
    char *half = map(64 * MIB);
    memset(half, 1, 32 * MIB);
    if (!until(held, half, 1) || held(half + 63 * MIB))
        return 1;
    char *more = mremap(half, 64 * MIB, 128 * MIB, MREMAP_MAYMOVE);
    if (more == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < 32 * MIB; i += 4096)
        if (more[i] != 1)
            return 3;
    more[127 * MIB] = 1;
    return 0;
}

/* Moved while held and left behind by the balancer: nothing stays. What the program said for itself does. */
static int moves(void) {
    unsigned long node0 = 1;
    char *whole = map(8 * MIB), *own = map(8 * MIB);
    memset(whole, 1, 8 * MIB);
    memset(own, 1, 8 * MIB);
    if (!until(held, whole, 1) || !until(held, own, 1))
        return 1;
    char *place = map(32 * MIB),
         *moved = mremap(whole, 8 * MIB, 8 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, place + 8 * MIB);
    if (moved == MAP_FAILED || syscall(SYS_mbind, own, 4ul * MIB, MODE_INTERLEAVE, &node0, 65ul, 0u) != 0)
        return 2;
    mprotect(moved, 8 * MIB, PROT_READ);
    puts("moved");
    fflush(stdout);
    if (!until(held, own + 4 * MIB, 0) || !until(held, moved, 0))
        return 3;
    if (policy(own) != MODE_INTERLEAVE)
        return 4;
    usleep(100000);
    munmap(map(4096), 4096); /* the thread's own policy comes back where it calls us */
    return policy(NULL) == 0 ? 0 : 5;
}

static __thread char large[192 << 10];

static void *touch(void *at) {
    memset(large, 1, sizeof large);
    return at;
}

/* Thread-local variables that are larger than a small stack: the companion has them too. */
static int locals(void) {
    pthread_t thread;
    char *memory = map(8 * MIB);
    memset(memory, 1, 8 * MIB);
    return !until(held, memory, 1) || pthread_create(&thread, NULL, touch, NULL) || pthread_join(thread, NULL);
}

/* No threads from now on, but processes. */
static int forbid_threads(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_VM, 2, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

/* A child that can have no thread is held by nothing. */
static int forks(void) {
    int status = -1;
    char *memory = map(8 * MIB);
    memset(memory, 1, 8 * MIB);
    if (!until(held, memory, 1) || forbid_threads())
        return 1;
    pid_t child = fork();
    if (child == 0)
        _exit(held(memory) || policy(NULL) != 0);
    return child < 0 || waitpid(child, &status, 0) != child || status != 0 ? 2 : 0;
}

/* A program that changes its user: each of its threads must be able to, or glibc ends it. */
static int drops(void) {
    usleep(300000);
    return getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0 || setuid(0) == 0);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(void);
    } all[] = {{"grows", grows}, {"moves", moves}, {"locals", locals}, {"forks", forks}, {"drops", drops}};
    printf("%d\n", (int)getpid());
    fflush(stdout);
    for (size_t i = 0; argc == 2 && i < sizeof all / sizeof *all; i++)
        if (strcmp(argv[1], all[i].name) == 0) {
            int status = all[i].run();
            puts(status ? "wrong" : "right");
            return status;
        }
    return 99;
}
