/* Closes every descriptor it did not open, as daemons do, counts what open() gives next, and works on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    int first = open("in/text", O_RDONLY), second = open("out.txt", O_CREAT | O_WRONLY | O_TRUNC, 0644);
    char *block = malloc(1 << 20);
    memset(block, 'a', 1 << 20);
    printf("%d %d %zd\n", first, second, write(second, block, 1000));
    int opened = 0;
    limit.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (open("/dev/null", O_RDONLY) >= 0)
        opened++;
    printf("%d %s\n", opened, strerror(errno));
    fflush(stdout);
    free(block);
    block = calloc(1 << 20, 1);
    pid_t pid = fork();
    if (pid == 0)
        _exit(block[77] + 9);
    int status;
    waitpid(pid, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    fflush(stdout);
    for (int fd = 0; fd < 64; fd++)
        close(fd);
    return 8;
}
