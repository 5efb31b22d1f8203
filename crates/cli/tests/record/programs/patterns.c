/* Seven arrays, each used one way: what the recogniser is to find, by name. One page is 512 doubles. */
#include <stdlib.h>

enum { ROWS = 32, COLUMNS = 12288, ITEMS = ROWS * COLUMNS, PAGE = 512 };

static double *by_rows, *by_columns, *inside, *in_turn, *in_chunks, *by_all, *at_random;

static double *filled(double *array) {
    for (int i = 0; i < ITEMS; i++)
        array[i] = i;
    return array;
}

int main(void) {
    by_rows = filled(aligned_alloc(PAGE * 8, ITEMS * 8));
    by_columns = filled(aligned_alloc(PAGE * 8, ITEMS * 8));
    inside = filled(aligned_alloc(PAGE * 8, ITEMS * 8));
    in_turn = filled(aligned_alloc(PAGE * 8, ITEMS * 8));
    in_chunks = filled(aligned_alloc(PAGE * 8, ITEMS * 8));
    by_all = filled(aligned_alloc(PAGE * 8, ITEMS * 8));
    at_random = filled(aligned_alloc(PAGE * 8, ITEMS * 8));
    double sum = 0;
    for (int round = 0; round < 8; round++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                by_rows[i * COLUMNS + j] += 1;
#pragma omp parallel for schedule(static)
        for (int j = 0; j < COLUMNS; j++)
            for (int i = 1; i < ROWS - 1; i++)
                by_columns[i * COLUMNS + j] += 1;
#pragma omp parallel for schedule(static)
        for (int k = 0; k < PAGE; k++)
            for (int i = 0; i < ITEMS; i += PAGE)
                inside[i + k] += 1;
#pragma omp parallel for schedule(static, 1)
        for (int p = 0; p < ITEMS / PAGE - 1; p++)
            for (int k = 0; k < PAGE; k++)
                in_turn[p * PAGE + k] += 1;
#pragma omp parallel for schedule(static, 8 * PAGE)
        for (int i = 0; i < ITEMS; i++)
            in_chunks[i] += 1;
#pragma omp parallel for reduction(+ : sum)
        for (int t = 0; t < 8; t++)
            for (int i = 0; i < ITEMS; i++)
                sum += by_all[i];
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < ITEMS; i++)
            sum += at_random[(unsigned)(i + round) * 2654435761u % ITEMS];
    }
    return sum == 0;
}
