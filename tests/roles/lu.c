/* Dense LU without pivoting by blocks that are contiguous in memory, dealt over a grid of threads; these take their
 * numbers under a lock.
 * lu THREADS BLOCKS: a matrix of BLOCKS x BLOCKS blocks */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 32 };
typedef double block[SIDE][SIDE];

static int threads, blocks, columns, last_id;
static block *matrix;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t step;

static double (*at(int row, int column))[SIDE] { return matrix[row * blocks + column]; }

static int owner(int row, int column) { return row % (threads / columns) * columns + column % columns; }

static void diagonal(block a) {
    for (int k = 0; k < SIDE; k++)
        for (int i = k + 1; i < SIDE; i++) {
            a[i][k] /= a[k][k];
            for (int j = k + 1; j < SIDE; j++)
                a[i][j] -= a[i][k] * a[k][j];
        }
}

static void below(block a, block pivot) {
    for (int k = 0; k < SIDE; k++)
        for (int i = 0; i < SIDE; i++) {
            a[i][k] /= pivot[k][k];
            for (int j = k + 1; j < SIDE; j++)
                a[i][j] -= a[i][k] * pivot[k][j];
        }
}

static void beside(block a, block pivot) {
    for (int k = 0; k < SIDE; k++)
        for (int i = k + 1; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++)
                a[i][j] -= pivot[i][k] * a[k][j];
}

static void inner(block a, block left, block above) {
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++)
            for (int j = 0; j < SIDE; j++)
                a[i][j] -= left[i][k] * above[k][j];
}

static void *factor(void *unused) {
    pthread_mutex_lock(&lock);
    int id = last_id++;
    pthread_mutex_unlock(&lock);
    for (int k = 0; k < blocks; k++) {
        if (owner(k, k) == id)
            diagonal(at(k, k));
        pthread_barrier_wait(&step);
        for (int i = k + 1; i < blocks; i++) {
            if (owner(i, k) == id)
                below(at(i, k), at(k, k));
            if (owner(k, i) == id)
                beside(at(k, i), at(k, k));
        }
        pthread_barrier_wait(&step);
        for (int i = k + 1; i < blocks; i++)
            for (int j = k + 1; j < blocks; j++)
                if (owner(i, j) == id)
                    inner(at(i, j), at(i, k), at(k, j));
        pthread_barrier_wait(&step);
    }
    return unused;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 8;
    blocks = argc > 2 ? atoi(argv[2]) : 12;
    for (columns = 1; columns * columns * 2 <= threads; columns *= 2) {
    }
    matrix = malloc(sizeof *matrix * (size_t)blocks * (size_t)blocks);
    for (int row = 0; row < blocks * SIDE; row++)
        for (int column = 0; column < blocks * SIDE; column++)
            at(row / SIDE, column / SIDE)[row % SIDE][column % SIDE] = row == column ? blocks * SIDE
                                                                                     : 1.0 / (1 + abs(row - column));
    pthread_t others[threads];
    pthread_barrier_init(&step, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        pthread_create(&others[i], NULL, factor, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(others[i], NULL);
    printf("%.6f\n", at(blocks - 1, blocks - 1)[SIDE - 1][SIDE - 1]);
}
