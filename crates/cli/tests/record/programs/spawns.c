/* vfork, posix_spawn and system, closing of all descriptors, another working directory. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(void) {
    int status = 0;
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    char *arguments[] = {"sh", "-c", "exit 3", NULL};
    posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
    waitpid(child, &status, 0);
    printf("%d %d\n", WEXITSTATUS(status), WEXITSTATUS(system("exit 4")));
    fflush(stdout);
    for (int file = 3; file < 1024; file++)
        close(file);
    if (chdir("/") != 0)
        return 1;
    int next = dup(1);
    long *late = malloc(4000000 * sizeof *late);
    for (long i = 0; i < 4000000; i++)
        late[i] = i;
    printf("%d %ld\n", next, late[3999999]);
    return 0;
}
