/* Two hundred children, some of children, with memory of before and after the fork; pipes tell what they saw. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static char *before;
static int child(int n) {
    char *after = malloc(300000);
    memset(after, n, 300000);
    before[n * 4096 % 500000] = (char)n;
    int sum = after[299999] + before[n * 4096 % 500000];
    free(after);
    return sum & 127;
}
static void *idle(void *argument) { return pause(), argument; }
int main(void) {
    pthread_t thread;
    long sum = 0;
    before = malloc(500000);
    int *shared = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(before, 1, 500000);
    for (int n = 0; n < 200; n++) {
        if (n == 100)
            pthread_create(&thread, NULL, idle, NULL);
        pid_t pid = fork();
        if (pid == 0) {
            if (n % 20 == 0) {
                pid_t grandchild = fork();
                if (grandchild == 0)
                    _exit(child(n + 1));
                waitpid(grandchild, NULL, 0);
            }
            __atomic_add_fetch(&shared[n], n, __ATOMIC_RELAXED);
            _exit(child(n));
        }
        int status;
        waitpid(pid, &status, 0);
        sum += WIFEXITED(status) ? WEXITSTATUS(status) : -100000;
        sum += shared[n];
    }
    printf("%ld %d\n", sum, before[4096]);
    return 4;
}
