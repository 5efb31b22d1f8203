/* Limits the size of its own files, and allocates before and after. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { BYTES = 1 << 20 };

static long fill(void) {
    char *block = malloc(BYTES);
    memset(block, 1, BYTES);
    return block[BYTES / 2];
}

int main(int count, char **arguments) {
    rlim_t most = (rlim_t)strtoul(arguments[1], NULL, 10);
    struct rlimit limit = {most, most};
    long sum = fill();
    if (count != 2 || setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 1;
    for (int i = 0; i < 200; i++)
        sum += fill();
    printf("ran %ld\n", sum);
    return 7;
}
