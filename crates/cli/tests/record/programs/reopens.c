/* Opens and closes libraries, each thread one of its own, so that whoever walks the loader's list meets those that another
 * thread is about to unmap. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 20 };

static void *work(void *path) {
    long opened = 0;
    for (int round = 0; round < ROUNDS; round++) {
        void *library = dlopen(path, RTLD_NOW);
        opened += library != NULL && dlclose(library) == 0;
    }
    return (void *)opened;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    long opened = 0;
    if (argc != THREADS + 1)
        return 1;
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, work, argv[t + 1]);
    for (int t = 0; t < THREADS; t++) {
        void *result;
        pthread_join(threads[t], &result);
        opened += (long)result;
    }
    printf("%ld\n", opened);
    return 0;
}
