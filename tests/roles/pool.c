/* A pool of threads that take jobs from a queue, made before there is any data. A job is a piece of an array; each step
 * queues all pieces.
 * pool THREADS PIECES STEPS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 8192 };
static int queued, taken, done, over;
static double *data;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, all = PTHREAD_COND_INITIALIZER;

static void *serve(void *unused) {
    pthread_mutex_lock(&lock);
    while (!over) {
        if (taken == queued) {
            pthread_cond_wait(&some, &lock);
            continue;
        }
        double *piece = data + (size_t)taken++ * PIECE;
        pthread_mutex_unlock(&lock);
        for (int again = 0; again < 100; again++)
            for (int i = 0; i < PIECE; i++)
                piece[i] = piece[i] * 0.5 + 1;
        pthread_mutex_lock(&lock);
        if (++done == queued)
            pthread_cond_signal(&all);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 8, pieces = argc > 2 ? atoi(argv[2]) : 64,
        steps = argc > 3 ? atoi(argv[3]) : 10;
    pthread_t pool[threads];
    for (int i = 0; i < threads; i++)
        pthread_create(&pool[i], NULL, serve, NULL);
    data = malloc(sizeof *data * (size_t)pieces * PIECE);
    for (size_t i = 0; i < (size_t)pieces * PIECE; i++)
        data[i] = 0;
    pthread_mutex_lock(&lock);
    for (int s = 0; s < steps; s++) {
        taken = done = 0, queued = pieces;
        pthread_cond_broadcast(&some);
        while (done < queued)
            pthread_cond_wait(&all, &lock);
    }
    over = 1;
    pthread_cond_broadcast(&some);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < threads; i++)
        pthread_join(pool[i], NULL);
    printf("%.6f\n", data[1]);
}
