/* Where the memory of a program is, of one large object and of small ones.
 *
 * spread [hold]           Says `weights W0 W1`, which the kernel has, and `large N0 N1` and `small N0 N1`, pages by node. With
 *                         `hold` it then says `ready`, and waits to be ended.
 * spread as UID CMD...    Runs a command as another user. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, LARGE = 8192, SMALL = 4096, NODES = 2 };

static int fail(const char *what) {
    perror(what);
    return 1;
}

/* Adds the page of an address to its node's. */
static void count(void *address, long found[NODES]) {
    void *page = (void *)((uintptr_t)address / PAGE * PAGE);
    int node = -1;
    if (syscall(SYS_move_pages, 0, 1ul, &page, NULL, &node, 0) == 0 && node >= 0 && node < NODES)
        found[node]++;
}

static void say_weights(void) {
    printf("weights");
    for (int node = 0; node < NODES; node++) {
        char path[80], text[16] = "-";
        snprintf(path, sizeof path, "/sys/kernel/mm/mempolicy/weighted_interleave/node%d", node);
        FILE *file = fopen(path, "r");
        if (file) {
            if (fscanf(file, "%15s", text) != 1)
                strcpy(text, "-");
            fclose(file);
        }
        printf(" %s", text);
    }
    puts("");
}

int main(int argc, char **argv) {
    if (argc > 3 && strcmp(argv[1], "as") == 0) {
        if (setgid((gid_t)atoi(argv[2])) || setuid((uid_t)atoi(argv[2])))
            return fail("setuid");
        execvp(argv[3], argv + 3);
        return fail(argv[3]);
    }
    char *large = malloc((size_t)LARGE * PAGE);
    char *small[SMALL];
    for (int i = 0; i < SMALL; i++) {
        small[i] = malloc(PAGE);
        if (!small[i])
            return fail("malloc");
        memset(small[i], 1, PAGE);
    }
    if (!large)
        return fail("malloc");
    memset(large, 1, (size_t)LARGE * PAGE);
    long of_large[NODES] = {0}, of_small[NODES] = {0};
    for (int i = 0; i < LARGE; i++)
        count(large + (size_t)i * PAGE, of_large);
    for (int i = 0; i < SMALL; i++)
        count(small[i] + PAGE / 2, of_small);
    say_weights();
    printf("large %ld %ld\nsmall %ld %ld\n", of_large[0], of_large[1], of_small[0], of_small[1]);
    if (argc > 1 && strcmp(argv[1], "hold") == 0) {
        puts("ready");
        fflush(stdout);
        pause();
    }
    return 0;
}
