/* Linked statically: two threads, a variable, a block that malloc maps, a child. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS (1 << 15)

static long counted[WORDS] __attribute__((aligned(4096)));
static volatile long *block;

static void *reads(void *unused) {
    for (int i = 0; i < WORDS; i++)
        (void)*(volatile long *)&counted[i];
    for (int i = 0; i < WORDS; i++)
        block[i] += 1;
    return unused;
}

int main(void) {
    pthread_t thread;
    block = malloc(sizeof counted);
    for (int i = 0; i < WORDS; i++)
        *(volatile long *)&counted[i] = i;
    if (pthread_create(&thread, NULL, reads, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < WORDS; i++)
            (void)*(volatile long *)&counted[i];
        _exit(5);
    }
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
