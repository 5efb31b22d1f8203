/* nodes COUNT -- COMMAND…: runs a command on a host of one memory node as if it had COUNT of them, so that
 * placement can be tested without a guest. Each node has its share of the CPUs.
 *
 * Private to the command and its children: /sys/devices/system/node is a tree made here, and a filter of
 * system calls answers the policies that name a node the kernel does not have (preferred and bind: as if
 * done, and nothing is done) and the question which nodes are allowed (not known, so that programs go by
 * the tree). Affinity, interleaving, first touch and page moves stay the kernel's own: all pages lie on the
 * one node there is, and a page asked to move to another stays, with ENODEV.
 *
 * Works as root and, where user namespaces are allowed, without. Exit status 77: not possible here. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TREE "/sys/devices/system/node"
enum { NOT_HERE = 77, MODE_PREFERRED = 1, MODE_BIND = 2, MODE_PREFERRED_MANY = 5, MODE_FLAGS = 7 << 13 };
enum { FLAG_MEMS_ALLOWED = 4 };

static _Noreturn void not_here(const char *what) {
    fprintf(stderr, "pretended nodes: not possible here: %s: %s\n", what, strerror(errno));
    exit(NOT_HERE);
}

static void put(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        not_here(path);
    close(file);
}

/* The user keeps its number, and may mount in a namespace of its own. */
static void become_mounter(void) {
    char line[64];
    uid_t user = geteuid();
    gid_t group = getegid();
    if (unshare(CLONE_NEWNS) == 0)
        return;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        not_here("a namespace of mounts");
    put("/proc/self/setgroups", "deny");
    snprintf(line, sizeof line, "%u %u 1", user, user);
    put("/proc/self/uid_map", line);
    snprintf(line, sizeof line, "%u %u 1", group, group);
    put("/proc/self/gid_map", line);
}

static unsigned long total_kilobytes(void) {
    unsigned long total = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file || fscanf(file, "MemTotal: %lu", &total) != 1)
        not_here("/proc/meminfo");
    fclose(file);
    return total;
}

/* The numbers [first, end) as the kernel lists them. */
static const char *list_of(char text[32], int first, int end) {
    snprintf(text, 32, first == end ? "\n" : first + 1 == end ? "%d\n" : "%d-%d\n", first, end - 1);
    return text;
}

/* Node `node` of `count`: CPUs [first, end) of those there are, and its share of memory. */
static void make_node(int node, int count, int cpus, unsigned long kilobytes) {
    char path[128], text[4096] = "";
    int first = node * cpus / count, end = (node + 1) * cpus / count;
    snprintf(path, sizeof path, TREE "/node%d", node);
    if (mkdir(path, 0755) != 0 || chdir(path) != 0)
        not_here(path);
    put("cpulist", list_of(text, first, end));
    unsigned long long low = 0; /* hexadecimal, for up to 64 CPUs: who has more reads the list */
    for (int cpu = first; cpu < end && cpu < 64; cpu++)
        low |= 1ull << cpu;
    snprintf(text, sizeof text, "%08x,%08x\n", (unsigned)(low >> 32), (unsigned)low);
    put("cpumap", text);
    snprintf(text, sizeof text,
             "Node %d MemTotal: %14lu kB\nNode %d MemFree: %15lu kB\nNode %d MemUsed: %15lu kB\n"
             "Node %d Active(file): %10d kB\nNode %d Inactive(file): %8d kB\n",
             node, kilobytes, node, kilobytes / 2, node, kilobytes - kilobytes / 2, node, 0, node, 0);
    put("meminfo", text);
    put("numastat", "numa_hit 0\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 0\n");
    size_t at = 0;
    for (int other = 0; other < count; other++)
        at += (size_t)snprintf(text + at, sizeof text - at, other ? " %d" : "%d", other == node ? 10 : 20);
    put("distance", strcat(text, "\n"));
}

static void make_tree(int count) {
    static const char *const lists[] = {"online", "possible", "has_memory", "has_normal_memory", "has_cpu"};
    char text[32];
    int cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
    unsigned long kilobytes = total_kilobytes();
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("nodes", TREE, "tmpfs", 0, "mode=0755") != 0)
        not_here("a tree over " TREE);
    int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int node = 0; node < count; node++)
        make_node(node, count, cpus, kilobytes / (unsigned)count);
    if (chdir(TREE) != 0)
        not_here(TREE);
    list_of(text, 0, count);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        put(lists[i], text);
    if (back < 0 || fchdir(back) != 0)
        not_here("the way back");
    close(back);
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define IF(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise)
#ifdef __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE AUDIT_ARCH_X86_64
#endif
/* Eight instructions: of the call `number`, whose argument `mode` is a policy's. */
#define POLICY_CALL(number, mode)                                                                             \
    LOAD(nr), IF(number, 0, 6), LOAD(args[mode]), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (unsigned)~MODE_FLAGS), \
        IF(MODE_PREFERRED, 2, 0), IF(MODE_BIND, 1, 0), IF(MODE_PREFERRED_MANY, 0, 1), ANSWER(0)

static void answer_calls(void) {
    struct sock_filter filter[] = {
        LOAD(arch),
        IF(ARCHITECTURE, 1, 0),
        ALLOW,
        POLICY_CALL(SYS_mbind, 2),
        POLICY_CALL(SYS_set_mempolicy, 0),
        LOAD(nr),
        IF(SYS_get_mempolicy, 0, 3),
        LOAD(args[4]),
        IF(FLAG_MEMS_ALLOWED, 0, 1),
        ANSWER(ENOSYS),
        ALLOW,
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0)
        return;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        not_here("a filter of system calls");
}

int main(int count, char **arguments) {
    int nodes = count > 1 ? atoi(arguments[1]) : 0;
    if (count < 4 || nodes < 2 || nodes > 64 || strcmp(arguments[2], "--") != 0) {
        fprintf(stderr, "usage: nodes COUNT -- COMMAND…, COUNT from 2 to 64\n");
        return 2;
    }
    become_mounter();
    make_tree(nodes);
    answer_calls();
    execvp(arguments[3], arguments + 3);
    fprintf(stderr, "pretended nodes: %s: %s\n", arguments[3], strerror(errno));
    return 127;
}
