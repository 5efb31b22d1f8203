/* Touches ever more memory, for as long as it is let. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    long megabytes = argc > 1 ? atol(argv[1]) : 100;
    char *all = malloc((size_t)megabytes << 20);
    for (long m = 0; m < megabytes; m++)
        for (long i = 0; i < 1 << 20; i += 512)
            all[(m << 20) + i] = 1;
    printf("grown %d\n", all[(megabytes << 20) - 512]);
    fflush(stdout);
    if (argc > 2)
        pause();
    return 0;
}
