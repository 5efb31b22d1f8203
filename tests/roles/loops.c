/* One loop under each of OpenMP's ways to deal it.
 * loops static|dynamic|guided|tasks ROWS STEPS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 1024, PIECE = 8 };

static void relax(double *row, int y) {
    for (int x = 0; x < COLUMNS; x++)
        row[x] = row[x] * 0.5 + y;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "static";
    int rows = argc > 2 ? atoi(argv[2]) : 512, steps = argc > 3 ? atoi(argv[3]) : 10;
    double(*grid)[COLUMNS] = malloc(sizeof *grid * (size_t)rows);
    memset(grid, 0, sizeof *grid * (size_t)rows);
    for (int s = 0; s < steps; s++) {
        if (strcmp(how, "dynamic") == 0) {
#pragma omp parallel for schedule(dynamic, PIECE)
            for (int y = 0; y < rows; y++)
                relax(grid[y], y);
        } else if (strcmp(how, "guided") == 0) {
#pragma omp parallel for schedule(guided, PIECE)
            for (int y = 0; y < rows; y++)
                relax(grid[y], y);
        } else if (strcmp(how, "tasks") == 0) {
#pragma omp parallel
#pragma omp single
            for (int y = 0; y < rows; y += PIECE)
#pragma omp task
                for (int i = y; i < y + PIECE && i < rows; i++)
                    relax(grid[i], i);
        } else {
#pragma omp parallel for schedule(static)
            for (int y = 0; y < rows; y++)
                relax(grid[y], y);
        }
    }
    printf("%.6f\n", grid[rows - 1][1]);
}
