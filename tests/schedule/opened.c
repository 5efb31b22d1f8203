/* A loop in a library that is opened while the program runs, which itself is linked with no OpenMP runtime; without PROGRAM
 * defined, the library. */
#include <stdio.h>

#ifdef PROGRAM
#include <dlfcn.h>

/* opened LIBRARY… */
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        int (*runs)(void) = library ? (int (*)(void))dlsym(library, "runs") : NULL;
        if (!runs) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        printf("opened %d 0\n", runs());
    }
    return 0;
}
#else
#include <omp.h>

int runs(void) {
    static int who[4000];
    int count = 1;
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 4000; i++) {
        volatile double x = i;
        for (int j = 0; j < 200 + i % 7 * 300; j++)
            x = x * 0.5 + 1;
        who[i] = omp_get_thread_num();
    }
    for (int i = 1; i < 4000; i++)
        count += who[i] != who[i - 1];
    return count;
}
#endif
