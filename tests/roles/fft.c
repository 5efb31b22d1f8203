/* Transforms of the rows of a matrix, transposed in between, as a large FFT has them; threads take their numbers in
 * order of arrival.
 * fft THREADS SIDE STEPS: SIDE a power of two */
#include <complex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static int threads, side, steps;
static double complex *data, *turned, *roots;
static atomic_int arrived;
static pthread_barrier_t step;

static void transform(double complex *row) {
    for (int i = 1, j = 0; i < side; i++) {
        int bit = side >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            double complex other = row[i];
            row[i] = row[j], row[j] = other;
        }
    }
    for (int length = 2; length <= side; length *= 2)
        for (int i = 0; i < side; i += length)
            for (int k = 0; k < length / 2; k++) {
                double complex even = row[i + k], odd = row[i + k + length / 2] * roots[k * (side / length)];
                row[i + k] = even + odd, row[i + k + length / 2] = even - odd;
            }
}

static void *work(void *unused) {
    int id = atomic_fetch_add(&arrived, 1);
    int first = id * side / threads, end = (id + 1) * side / threads;
    for (int s = 0; s < steps; s++) {
        double complex *from = s % 2 ? turned : data, *to = s % 2 ? data : turned;
        for (int y = first; y < end; y++)
            for (int x = 0; x < side; x++)
                to[y * side + x] = from[x * side + y] / side;
        for (int y = first; y < end; y++)
            transform(to + y * side);
        pthread_barrier_wait(&step);
    }
    return unused;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 8;
    side = argc > 2 ? atoi(argv[2]) : 256;
    steps = argc > 3 ? atoi(argv[3]) : 6;
    size_t bytes = sizeof *data * (size_t)side * (size_t)side;
    data = malloc(bytes), turned = malloc(bytes), roots = malloc(sizeof *roots * (size_t)side);
    for (int i = 0; i < side; i++)
        roots[i] = cexp(-2 * 3.14159265358979 * I * i / side);
    for (int i = 0; i < side * side; i++)
        data[i] = i % 17, turned[i] = 0;
    pthread_t others[threads];
    pthread_barrier_init(&step, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        pthread_create(&others[i], NULL, work, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(others[i], NULL);
    printf("%.6f\n", creal(data[1]));
}
