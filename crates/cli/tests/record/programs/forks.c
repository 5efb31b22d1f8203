/* Parent and child write to the same page numbers; the child forks and executes. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void fill(long *data, long n, long value) {
    for (long i = 0; i < n; i++)
        data[i] = value;
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) { /* executed */
        long *fresh = malloc(30000 * sizeof *fresh);
        fill(fresh, 30000, 3);
        return fresh[29999] == 3 ? 11 : 1;
    }
    long *shared = malloc(50000 * sizeof *shared);
    fill(shared, 50000, 1);
    pid_t child = fork();
    if (child == 0) {
        fill(shared, 20000, 2);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            execl("/proc/self/exe", "program", "again", NULL);
            _exit(1);
        }
        int status;
        waitpid(grandchild, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    fill(shared, 10000, 4);
    int status;
    waitpid(child, &status, 0);
    printf("%d %ld %ld\n", WEXITSTATUS(status), shared[0], shared[49999]);
    return 0;
}
