/* Maps in every step, unmaps, and maps again what fits there: memory from four places, once with its ends given back, and
 * two files from one place. The argument says how many steps. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, BYTES = 200 * PAGE };

static int make(const char *name) {
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    return ftruncate(file, BYTES) == 0 ? file : -1;
}

static void fill(volatile char *memory, int times) {
    for (int i = 0; i < times; i++)
        for (int at = 0; at < BYTES; at += PAGE)
            memory[at] = 1;
}

static void look(int file, int times) {
    volatile char *memory = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 0);
    for (int i = 0; i < times; i++)
        for (int at = 0; at < BYTES; at += PAGE)
            (void)memory[at];
    munmap((void *)memory, BYTES);
}

int main(int count, char **words) {
    int steps = count > 1 ? atoi(words[1]) : 1, odd = make("odd"), even = make("even");
    for (int step = 0; step < steps; step++) {
        char *first = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *second = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        fill(first, 1);
        fill(second, 2);
        munmap(first, BYTES);
        munmap(second, BYTES);
        char *third = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        fill(third, 3);
        munmap(third, BYTES);
        char *fourth = mmap(NULL, BYTES + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(fourth, PAGE);
        munmap(fourth + PAGE + BYTES, PAGE);
        fill(fourth + PAGE, 4);
        munmap(fourth + PAGE, BYTES);
        look(odd, 1);
        look(even, 2);
    }
    return 0;
}
