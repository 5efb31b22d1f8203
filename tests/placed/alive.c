/* Some thousand objects alive at once, in this process and in a forked child that adds its own. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OBJECTS = 3000 };

static long touched(void) {
    long sum = 0;
    for (int i = 0; i < OBJECTS; i++) {
        char *object = malloc(1 << 16);
        if (object)
            sum += *object = 1;
    }
    return sum;
}

int main(void) {
    int status = 0;
    long sum = touched();
    pid_t child = fork();
    if (child == 0)
        _exit(touched() == OBJECTS ? 7 : 1);
    waitpid(child, &status, 0);
    printf("alive %ld, child %d\n", sum, WEXITSTATUS(status));
    return 42;
}
