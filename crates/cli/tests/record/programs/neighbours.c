/* Small allocations in the program break's heap, and an array that ends the program's data: under an
 * emulator both lie near the first stack. */
#include <stdlib.h>

struct node {
    struct node *next;
    long value;
};

static char data[196 * 4096];

int main(void) {
    struct node *first = NULL;
    for (long i = 0; i < 50000; i++) {
        struct node *node = malloc(sizeof *node);
        *node = (struct node){first, i};
        first = node;
    }
    long sum = 0;
    for (struct node *node = first; node != NULL; node = node->next)
        sum += node->value;
    for (size_t i = 0; i < sizeof data; i += 64)
        ((volatile char *)data)[i] = 1;
    return sum != 49999l * 50000 / 2;
}
