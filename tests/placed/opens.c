/* Opens a library. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (library == NULL)
        return 1;
    puts("opened");
    return 42;
}
