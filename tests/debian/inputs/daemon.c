/* Goes into the background as daemons do, with all descriptors closed and another folder; says in a file that it
 * worked; the starter waits for that on a pipe and ends. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
    int ready[2], folder = open(".", O_RDONLY);
    char byte;
    if (pipe(ready) != 0)
        return 1;
    if (fork() != 0) {
        close(ready[1]);
        ssize_t got = read(ready[0], &byte, 1);
        printf("daemon %s\n", got == 1 ? "works" : "is gone");
        return 9;
    }
    setsid();
    if (fork() != 0)
        _exit(0);
    umask(027);
    for (int fd = 0; fd < 256; fd++)
        if (fd != ready[1] && fd != folder)
            close(fd);
    open("/dev/null", O_RDWR);
    dup(0), dup(0);
    if (fchdir(folder) != 0 || chdir("/") != 0)
        return 2;
    char *block = malloc(1 << 20);
    memset(block, 'd', 1 << 20);
    int file = openat(folder, "said.txt", O_CREAT | O_WRONLY, 0666);
    if (write(file, block, 5000) == 5000 && close(file) == 0)
        write(ready[1], "1", 1);
    free(block);
    return 0;
}
