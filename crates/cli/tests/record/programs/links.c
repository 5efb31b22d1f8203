#include <stdio.h>

long *library_fill(long n);

int main(void) {
    printf("%ld\n", library_fill(40000)[39999]);
    return 0;
}
