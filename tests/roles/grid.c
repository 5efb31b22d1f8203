/* Relaxation of a grid by threads that take their blocks of rows in order of arrival.
 * grid THREADS ROWS STEPS */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 1024 };
static int threads, rows, steps;
static double (*now)[COLUMNS], (*next)[COLUMNS];
static atomic_int arrived;
static pthread_barrier_t step;

static void *relax(void *unused) {
    int id = atomic_fetch_add(&arrived, 1);
    int first = id * rows / threads, end = (id + 1) * rows / threads;
    for (int s = 0; s < steps; s++) {
        double(*from)[COLUMNS] = s % 2 ? next : now, (*to)[COLUMNS] = s % 2 ? now : next;
        for (int y = first < 1 ? 1 : first; y < (end > rows - 1 ? rows - 1 : end); y++)
            for (int x = 1; x < COLUMNS - 1; x++)
                to[y][x] = 0.25 * (from[y - 1][x] + from[y + 1][x] + from[y][x - 1] + from[y][x + 1]);
        pthread_barrier_wait(&step);
    }
    return unused;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 8;
    rows = argc > 2 ? atoi(argv[2]) : 512;
    steps = argc > 3 ? atoi(argv[3]) : 10;
    now = malloc(sizeof *now * (size_t)rows);
    next = malloc(sizeof *next * (size_t)rows);
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < COLUMNS; x++)
            now[y][x] = next[y][x] = y == 0 ? 1 : 0;
    pthread_t others[threads];
    pthread_barrier_init(&step, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        pthread_create(&others[i], NULL, relax, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(others[i], NULL);
    printf("%.6f\n", now[1][COLUMNS / 2]);
}
