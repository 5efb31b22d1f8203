#include <mai.h>
#define N 1000
int main(int argc, char *argv[]) {
    int i, j;
    double **tab;

    //set information about cpus and nodes
    mai_init(argv[1]);

    tab = (double **)mai_alloc_2D(N, N, sizeof(double), DOUBLE);

    //just some operations
#pragma omp parallel for private(j)
    for (i = 0; i < N; i++)
        for (j = 0; j < N; j++) {
            tab[i][j] = i + j;
        }

    //finalize structures and library
    mai_final();
}
