/* Opens an instrumented library late. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
    if (library == NULL) {
        puts(dlerror());
        return 1;
    }
    long *(*fill)(long) = (long *(*)(long))dlsym(library, "library_fill");
    printf("%ld\n", fill(40000)[39999]);
    return 0;
}
