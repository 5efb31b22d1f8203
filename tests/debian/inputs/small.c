#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
    int *many = malloc(100000 * sizeof *many), x = 1;
    for (int i = 0; i < 100000; i++)
        many[i] = (x = (x * 75 + 74) % 65537);
    qsort(many, 100000, sizeof *many, order);
    printf("%d %d %zu\n", many[0], many[50000], strlen("text"));
    free(many);
    return 3;
}
