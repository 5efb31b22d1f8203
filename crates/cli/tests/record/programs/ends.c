/* Counts 100,000 writes to `data`, then ends as it is told. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    long *data = malloc(100000 * sizeof *data);
    for (long i = 0; i < 100000; i++)
        data[i] = i;
    printf("data %ld\n", data[99999]);
    fflush(stdout);
    if (strcmp(how, "segv") == 0)
        *(volatile int *)8 = 1;
    if (strcmp(how, "_exit") == 0)
        _exit(5);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "term") == 0)
        kill(getpid(), SIGTERM);
    return 7;
}
