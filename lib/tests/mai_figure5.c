#include <mai.h>
#define N 1000
struct mydata {
    int i;
    char *a;
};
struct mydata *t;
int main(int argc, char *argv[]) {
    int i, j, k;

    //set information about cpus and nodes
    mai_init(argv[1]);

    //allocation data
    t = (struct mydata *)mai_alloc_1D(N, sizeof(struct mydata), STRUCT);

    mai_bind_columns(t);

    //just some operations
#pragma omp parallel for
    for (i = 0; i < N; i++) {
        t[i].i = i;
    }

    //finalize structures and library
    mai_final();
}
