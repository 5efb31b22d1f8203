/* Makes its own recording stop (a file size limit that its raw files meet), with standard error no longer what it
 * was: `file`, descriptor 2 is a file of its own by then; `pipe`, a pipe that is full or has no reader. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void replace_stderr(const char *by) {
    if (strcmp(by, "file") == 0) {
        close(2);
        if (open("data", O_RDWR | O_CREAT | O_TRUNC, 0644) != 2 || write(2, "precious", 8) != 8)
            exit(3);
        return;
    }
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], 2) != 2)
        exit(3);
    if (strcmp(by, "unread") == 0) {
        fcntl(2, F_SETFL, O_NONBLOCK);
        while (write(2, "x", 1) == 1)
            ;
        fcntl(2, F_SETFL, 0);
    } else {
        close(ends[0]);
    }
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "as-it-is") != 0)
        replace_stderr(arguments[1]);
    struct rlimit small = {300 << 10, 300 << 10};
    setrlimit(RLIMIT_FSIZE, &small);
    size_t bytes = 64ul << 20;
    char *all = malloc(bytes);
    for (size_t i = 0; i < bytes; i += 4096)
        all[i] = 1;
    printf("ran %d\n", all[4096]);
    return 7;
}
