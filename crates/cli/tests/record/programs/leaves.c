/* Leaves what a recording needs, in the way its argument says, and works on: in a thread, and in a
 * forked child. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Alignas(4096) volatile long before[8192], after[8192];

static void *work(void *cells) {
    for (int i = 0; i < 8192; i++)
        ((volatile long *)cells)[i] = i;
    return NULL;
}

static int leave(const char *what) {
    if (strcmp(what, "user") == 0)
        return setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0;
    if (strcmp(what, "root") == 0)
        return chroot(".") != 0 || chdir("/") != 0;
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    return 0;
}

int main(int count, char **arguments) {
    pthread_t thread;
    work((void *)before);
    if (count < 2 || leave(arguments[1]) != 0)
        return 1;
    if (pthread_create(&thread, NULL, work, (void *)after) != 0 || pthread_join(thread, NULL) != 0)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        work((void *)after);
        _exit(4);
    }
    int status;
    if (waitpid(child, &status, 0) != child)
        return 3;
    printf("%ld %d\n", after[8191], WEXITSTATUS(status));
    return 7;
}
