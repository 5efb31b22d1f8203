// Tokens of a language model on CPUs: every thread multiplies its rows of 8-bit weights with the same vector, over and over.
// Blocks of 32 weights with a scale, as llama.cpp's Q8_0.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE = 4096, BLOCK = 32, COLUMNS = 4096 };

typedef struct {
    int16_t scale;
    int8_t weights[BLOCK];
} Block;

static int32_t dot(const Block *row, const int8_t *vector) {
    int32_t sum = 0;
    for (int b = 0; b < COLUMNS / BLOCK; b++) {
        int32_t part = 0;
        for (int i = 0; i < BLOCK; i++)
            part += row[b].weights[i] * vector[b * BLOCK + i];
        sum += part * row[b].scale;
    }
    return sum;
}

static void multiply(int32_t *result, const Block *weights, const int8_t *vector, size_t rows) {
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        result[r] = dot(weights + r * (COLUMNS / BLOCK), vector);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: gemv MIB TOKENS\n");
        return 2;
    }
    size_t row = COLUMNS / BLOCK * sizeof(Block), rows = (strtoull(argv[1], NULL, 10) << 20) / row;
    size_t bytes = (rows * row + PAGE - 1) / PAGE * PAGE;
    Block *weights = aligned_alloc(PAGE, bytes);
    int32_t *result = malloc(rows * sizeof *result);
    static int8_t vector[COLUMNS];
    if (!weights || !result)
        return 1;
    // One store a page: placed, but hardly any traffic.
    for (size_t at = 0; at < bytes; at += PAGE)
        ((char *)weights)[at] = 1;
    for (int i = 0; i < COLUMNS; i++)
        vector[i] = (int8_t)i;
    for (int t = 0; t < atoi(argv[2]); t++)
        multiply(result, weights, vector, rows);
    printf("%d\n", result[rows / 2]);
    return 0;
}
