/* Objects of every kind, each swept once by one thread or by all. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static double table[20000];
static struct node {
    struct node *next;
    long value;
} *list;

static void *checked_malloc(size_t bytes) {
    void *p = malloc(bytes);
    if (p == NULL)
        abort();
    return p;
}

static void initialise(double *rhs, double *field, long n) {
    for (long i = 0; i < n; i++)
        rhs[i] = 1.0; /* line 21 */
#pragma omp parallel for num_threads(4)
    for (long i = 0; i < n; i++)
        field[i] = rhs[i]; /* line 24 */
}

int main(void) {
    long n = 1 << 16;
    double *rhs = malloc(n * sizeof *rhs); /* line 29 */
    double *field = checked_malloc(n * sizeof *field);
    initialise(rhs, field, n);
#pragma omp parallel for num_threads(4)
    for (long i = 0; i < 20000; i++)
        table[i] += field[i]; /* line 34 */
    char *mapped = mmap(NULL, 1 << 17, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 1 << 17; i += 64)
        mapped[i] = 1;
    FILE *self = fopen("/proc/self/exe", "r");
    const char *image = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fileno(self), 0);
    int sum = 0;
    for (int i = 0; i < 4096; i += 8)
        sum += image[i];
    for (int i = 0; i < 5000; i++) {
        struct node *node = malloc(sizeof *node); /* line 44 */
        node->next = list;
        node->value = i;
        list = node;
    }
    rhs = realloc(rhs, 4 * n * sizeof *rhs); /* line 49 */
    rhs[3 * n] = rhs[0];
    printf("%g %g %d %ld %g\n", table[9], field[n - 1], sum != 0, list->value, rhs[3 * n]);
    free(rhs);
    free(field);
    return 0;
}
