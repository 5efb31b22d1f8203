/* A thread as C11 starts them; then another program, by its descriptor. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <threads.h>
#include <unistd.h>

static volatile long counted[1024] __attribute__((aligned(4096)));

static int reads(void *unused) {
    (void)unused;
    for (int i = 0; i < 1000; i++)
        (void)counted[i];
    return 7;
}

int main(int count, char **arguments, char **environment) {
    thrd_t thread;
    int result = 0;
    if (thrd_create(&thread, reads, NULL) != thrd_success || thrd_join(thread, &result) != thrd_success || result != 7)
        return 1;
    if (count > 1)
        fexecve(open(arguments[1], O_RDONLY | O_CLOEXEC), arguments + 1, environment);
    return 2;
}
