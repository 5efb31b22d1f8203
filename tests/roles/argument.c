/* Relaxation of rows by threads whose part is their argument. They also count, wait and share what is counted, none of
 * which chooses anything.
 * argument THREADS ROWS STEPS */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 1024 };
static int threads, rows, steps;
static double (*grid)[COLUMNS];
static atomic_int users = 1, waiting, turn, begun;
static atomic_long updates;

static void wait_for_all(void) {
    int mine = atomic_load(&turn);
    if (atomic_fetch_add(&waiting, 1) == threads - 1) {
        atomic_store(&waiting, 0);
        atomic_fetch_add(&turn, 1);
    }
    while (atomic_load(&turn) == mine)
        sched_yield();
}

static void *relax(void *number) {
    long id = (long)number;
    atomic_fetch_add(&users, 1);
    atomic_fetch_add(&begun, 1);
    for (int s = 0; s < steps; s++) {
        for (long y = id * rows / threads; y < (id + 1) * rows / threads; y++)
            for (int x = 0; x < COLUMNS; x++)
                grid[y][x] = grid[y][x] * 0.5 + 1;
        atomic_fetch_add(&updates, rows / threads);
        wait_for_all();
    }
    if (atomic_fetch_sub(&users, 1) == 1)
        free(grid);
    return NULL;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 8;
    rows = argc > 2 ? atoi(argv[2]) : 512;
    steps = argc > 3 ? atoi(argv[3]) : 10;
    grid = calloc((size_t)rows, sizeof *grid);
    pthread_t others[threads];
    for (long i = 0; i < threads; i++)
        pthread_create(&others[i], NULL, relax, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(others[i], NULL);
    printf("%.6f %ld\n", grid[rows - 1][1], (long)updates);
}
