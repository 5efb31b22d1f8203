#include <stdlib.h>

long *library_fill(long n) {
    long *inside = malloc(n * sizeof *inside);
    for (long i = 0; i < n; i++)
        inside[i] = i; /* line 6 */
    return inside;
}
