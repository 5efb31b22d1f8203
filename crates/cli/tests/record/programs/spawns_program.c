/* Starts another program, in the way its first argument says, and waits for it. */
#define _GNU_SOURCE
#include <grp.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static _Alignas(4096) volatile long before[512];

static int leave(void) { return setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0; }

/* In a child that has its parent's memory. */
static pid_t start(const char *way, char **program) {
    char *nothing[] = {NULL};
    pid_t child = vfork();
    if (child != 0)
        return child;
    if (strcmp(way, "user") == 0 && leave() == 0)
        execv(program[0], program);
    if (strcmp(way, "effective") == 0 && seteuid(65534) == 0)
        execv(program[0], program);
    if (strcmp(way, "kept") == 0 && setreuid(65534, 0) == 0)
        execv(program[0], program);
    if (strcmp(way, "cleared") == 0)
        execve(program[0], program, nothing);
    if (strcmp(way, "plain") == 0)
        execvp(program[0], program);
    _exit(126);
}

/* Its own effective user is another one's; the program's is not. */
static pid_t spawn(char **program) {
    pid_t child;
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_RESETIDS);
    int failed = seteuid(65534) != 0 || posix_spawn(&child, program[0], NULL, &attributes, program, environ) != 0;
    return failed ? -1 : child;
}

int main(int count, char **arguments) {
    int status;
    if (count < 3)
        return 125;
    for (int i = 0; i < 512; i++)
        before[i] = i;
    pid_t child = strcmp(arguments[1], "spawned") == 0 ? spawn(arguments + 2) : start(arguments[1], arguments + 2);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 124;
    return WEXITSTATUS(status);
}
