/* Two threads that use memory of their own. With an argument it says there, by a byte, that it ran; with a second
 * one it says on standard output that it is ready, and stays until its input ends. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 2, BYTES = 1 << 20 };

static void *fill(void *memory) { return memset(memory, 1, BYTES); }

int main(int count, char **words) {
    pthread_t threads[THREADS];
    char *memory[THREADS];
    int sum = 0;
    if (count > 1) {
        int ran = open(words[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (ran < 0 || write(ran, "x", 1) != 1)
            return 1;
        close(ran);
    }
    for (int i = 0; i < THREADS; i++) {
        memory[i] = malloc(BYTES);
        pthread_create(&threads[i], NULL, fill, memory[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += memory[i][BYTES - 1];
    }
    printf("filled %d\n", sum);
    fflush(stdout);
    while (count > 2 && getchar() != EOF)
        ;
    for (int i = 0; i < THREADS; i++)
        free(memory[i]);
    return 42;
}
