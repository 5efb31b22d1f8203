/* A program with an INT of its own. */
#define MAI_LONG_NAMES
#include <mai.h>

#define INT int
enum { CHAR, STRUCT };
typedef double DOUBLE;

int main(void) {
    mai_init(NULL);
    INT *a = mai_alloc_1D(8, sizeof(DOUBLE), MAI_DOUBLE);
    mai_final();
    return a == NULL || CHAR == STRUCT;
}
