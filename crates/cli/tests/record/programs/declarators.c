/* Several objects on one line: 1 MiB, 2 MiB and so on, a few bytes apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

int main(void) {
    void *p, *q;
    double *c, *d;
    // One line each is what this is about.
    /* clang-format off */
    double *a=malloc(1 * MIB),*b=malloc(2 * MIB);
    if ((c = malloc(3 * MIB)) == NULL || (d = malloc(4 * MIB)) == NULL) return 1;
    double *few = malloc(16), *many = malloc(5 * MIB);
    if (posix_memalign(&p, 64, 6 * MIB) || posix_memalign(&q, 64, 7 * MIB)) return 1;
    /* clang-format on */
    void *all[] = {a, b, c, d, many, p, q};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t at = 0; at < (i + 1) * MIB; at += 4096)
            ((char *)all[i])[at] = 1;
    few[0] = a[0];
    printf("%g\n", few[0]);
    return 0;
}
