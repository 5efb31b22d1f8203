/* Opens and closes libraries, from several threads, and calls into them. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static void *work(void *argument) {
    static const char *const names[] = {"libm.so.6", "libz.so.1", "libpthread.so.0", "libutil.so.1", "libresolv.so.2"};
    long opened = 0;
    for (int round = 0; round < 40; round++)
        for (int i = 0; i < 5; i++) {
            void *library = dlopen(names[i], round % 2 ? RTLD_LAZY : RTLD_NOW | RTLD_LOCAL);
            opened += library != NULL;
            double (*root)(double) = library && i == 0 ? (double (*)(double))dlsym(library, "sqrt") : NULL;
            opened += root ? (long)root(16.0) : 0;
            if (library)
                dlclose(library);
        }
    return *(long *)argument = opened, NULL;
}
int main(void) {
    pthread_t threads[4];
    long opened[4];
    for (int t = 0; t < 4; t++)
        pthread_create(&threads[t], NULL, work, &opened[t]);
    for (int t = 0; t < 4; t++)
        pthread_join(threads[t], NULL), printf("%ld\n", opened[t]);
    puts(dlopen("libabsent.so.9", RTLD_LAZY) ? "opened" : dlerror());
    return 0;
}
