/* A pool of threads that is made before there is any data; its threads take their parts in order of arrival, and other ones
 * after a quarter of the steps if CHANGES is 1.
 * changing THREADS ROWS STEPS CHANGES */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 1024 };
static int threads, rows, steps, changes;
static double (*grid)[COLUMNS];
static atomic_int arrived;
static pthread_barrier_t step;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_data = PTHREAD_COND_INITIALIZER;

static void *serve(void *unused) {
    pthread_mutex_lock(&lock);
    while (!grid)
        pthread_cond_wait(&has_data, &lock);
    pthread_mutex_unlock(&lock);
    int id = atomic_fetch_add(&arrived, 1);
    for (int s = 0; s < steps; s++) {
        int part = changes && s >= steps / 4 ? (id + threads / 2) % threads : id;
        for (int y = part * rows / threads; y < (part + 1) * rows / threads; y++)
            for (int x = 0; x < COLUMNS; x++)
                grid[y][x] = grid[y][x] * 0.5 + y;
        pthread_barrier_wait(&step);
    }
    return unused;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 8;
    rows = argc > 2 ? atoi(argv[2]) : 512;
    steps = argc > 3 ? atoi(argv[3]) : 10;
    changes = argc > 4 ? atoi(argv[4]) : 0;
    pthread_t pool[threads];
    pthread_barrier_init(&step, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        pthread_create(&pool[i], NULL, serve, NULL);
    double(*data)[COLUMNS] = malloc(sizeof *data * (size_t)rows);
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < COLUMNS; x++)
            data[y][x] = x;
    pthread_mutex_lock(&lock);
    grid = data;
    pthread_cond_broadcast(&has_data);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < threads; i++)
        pthread_join(pool[i], NULL);
    printf("%.6f\n", grid[rows - 1][COLUMNS / 2]);
}
