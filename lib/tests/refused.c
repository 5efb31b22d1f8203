/* If the kernel refuses: a filter answers EPERM (as in containers) or ENOSYS to all system calls that place.
 * Arrays still work, and each function reports what it did not do. */
#define _GNU_SOURCE
#include "check.h"
#include "nodewise.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refuse(int error) {
    static const unsigned calls[] = {SYS_mbind,         SYS_move_pages,        SYS_migrate_pages, SYS_set_mempolicy,
                                     SYS_get_mempolicy, SYS_sched_setaffinity, SYS_mincore};
    enum { COUNT = sizeof calls / sizeof *calls };
    struct sock_filter filter[COUNT + 3];
    filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < COUNT; i++)
        filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], (unsigned char)(COUNT - i),
                                                     0);
    filter[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    struct sock_fprog program = {COUNT + 3, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#define NOT_DONE(call)                                                                                    \
    do {                                                                                                  \
        int got_ = (call);                                                                                \
        CHECK(got_ == NW_NOT_DONE && nw_last_error()[0], "%s: %d, \"%s\"", #call, got_, nw_last_error()); \
    } while (0)

int main(int count, char **arguments) {
    int map[8], node;
    size_t pages[64], untouched;
    if (!refuse(count > 1 && !strcmp(arguments[1], "ENOSYS") ? ENOSYS : EPERM)) {
        printf("1 passed, 0 failed: no filter can be installed here\n");
        return 0;
    }
    CHECK(syscall(SYS_move_pages, 0, 0ul, NULL, NULL, NULL, 0) == -1 && errno != 0, "the filter refuses nothing");
    CHECK(nw_nodes(&node, 1) >= 1 && nw_cpus(map, 8) >= 1, "nodes and CPUs");
    double *array = nw_alloc_2d(3000, 3000, sizeof *array), **table = nw_index(array);
    for (int fresh = 1; fresh >= 0; fresh--) {
        NOT_DONE(nw_place(array, nw_cyclic(NW_PAGES, 1)));
        NOT_DONE(nw_place(array, nw_skew(NW_PAGES, 1)));
        NOT_DONE(nw_place(array, nw_block_exclusive(0)));
        NOT_DONE(nw_place(array, nw_bind(NW_ROWS)));
        NOT_DONE(nw_place(array, nw_bind_all()));
        NOT_DONE(nw_scatter(array, NULL, 0));
        NOT_DONE(nw_replicate(array));
        NOT_DONE(nw_replicate_on(array, &node, 1));
        NOT_DONE(nw_check_copies(array));
        CHECK(nw_place(array, nw_first_touch()) >= 0, "%s", nw_last_error());
        CHECK(nw_nearest(array) == array, "the array is its own copy");
        for (int i = 0; i < 3000; i++)
            table[i][i] = 1;
    }
    NOT_DONE(nw_gather(array, node));
    NOT_DONE(nw_page_nodes(array, map, 8));
    NOT_DONE(nw_histogram(array, pages, 64, &untouched));
    NOT_DONE(nw_bind_thread(0));
    NOT_DONE(nw_bind_threads());
    NOT_DONE(nw_migrate_thread(0, map[0] < 0 ? 0 : nw_cpus(map, 1) ? map[0] : 0));
    nw_distr *distr = nw_describe(array, nw_block_exclusive(0));
    CHECK(distr != NULL, "%s", nw_last_error());
    CHECK(nw_distribute(distr) == NW_NOT_DONE, "%s", nw_last_error());
    nw_distr_free(distr);
    CHECK(table[2999][2999] == 1 && nw_free(table) == NW_OK, "%s", nw_last_error());
    return check_end();
}
