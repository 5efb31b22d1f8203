/* Memory that other processes can map: a POSIX object, a memfd, shared anonymous memory, a file; each of 64 pages, written once. The
 * argument is the object's name. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, BYTES = 64 * PAGE };

static int fill(int file, int flags) {
    if (!(flags & MAP_ANONYMOUS) && (file < 0 || ftruncate(file, BYTES) != 0))
        return 0;
    volatile char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, file, 0);
    if (memory == MAP_FAILED)
        return 0;
    for (int at = 0; at < BYTES; at += PAGE)
        memory[at] = 1;
    return 1;
}

int main(int count, char **words) {
    if (count < 2)
        return 2;
    int object = shm_open(words[1], O_RDWR | O_CREAT, 0600);
    int right = fill(object, MAP_SHARED) && fill(memfd_create("ram", 0), MAP_SHARED) &&
                fill(-1, MAP_SHARED | MAP_ANONYMOUS) && fill(open("weights", O_RDWR | O_CREAT, 0600), MAP_SHARED);
    shm_unlink(words[1]);
    return right ? 0 : 1;
}
