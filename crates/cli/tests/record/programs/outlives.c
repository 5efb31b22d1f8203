/* Writes to a block, says so by a file, and goes on for a while. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    volatile long *block = malloc(100000);
    for (int i = 0; i < 10000; i++)
        block[i] = i;
    close(open("ready", O_CREAT | O_WRONLY, 0600));
    sleep(4);
    return 0;
}
