/* Programs started in every way there is, with environments that were emptied and arguments of many sizes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static int ended(pid_t pid) {
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
int main(void) {
    char *exits[] = {"sh", "-c", "exit ${ONE:-7}", NULL}, *one[] = {"ONE=11", NULL}, *none[] = {NULL};
    pid_t pid;
    int failed = posix_spawn(&pid, "/bin/sh", NULL, NULL, exits, one);
    printf("spawn %d %d\n", failed, ended(pid));
    failed = posix_spawnp(&pid, "sh", NULL, NULL, exits, none);
    printf("spawnp %d %d\n", failed, ended(pid));
    printf("absent %d\n", posix_spawn(&pid, "/absent", NULL, NULL, exits, one) == ENOENT);
    if ((pid = vfork()) == 0) {
        execve("/bin/sh", exits, one);
        _exit(99);
    }
    printf("vfork %d\n", ended(pid));
    if ((pid = fork()) == 0) {
        clearenv();
        int file = open("/bin/sh", O_PATH | O_CLOEXEC);
        fexecve(file, exits, environ);
        _exit(98);
    }
    printf("fexecve %d\n", ended(pid));
    char *large = malloc(100001);
    memset(large, 'x', 100000);
    large[100000] = 0;
    if ((pid = fork()) == 0)
        execlp("sh", "sh", "-c", "exit $((${#1} / 1000))", "sh", large, NULL);
    printf("large %d\n", ended(pid));
    printf("system %d\n", WEXITSTATUS(system("exit 5")));
    FILE *pipe = popen("echo said; exit 6", "r");
    char line[64] = "";
    printf("popen %s", fgets(line, sizeof line, pipe));
    printf("%d\n", WEXITSTATUS(pclose(pipe)));
    fflush(stdout);
    execl("/bin/sh", "sh", "-c", "kill -KILL $$", NULL);
    return 97;
}
