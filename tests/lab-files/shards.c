/* Programs of the suite lab-files, by their first word:
 *
 * write FILE MIB CPU          a file, written by one CPU: word i holds i
 * read FILE THREADS PASSES    FILE mapped read-only; thread i, on CPU i if there is one, reads the i-th of as many equal parts, each word once a
 *                             pass, as an inference engine reads its weights once a token; fails if a word is another
 * slice FILE PARTS            FILE mapped in as many parts, each by itself, and read
 * hold KIND MIB CPU           shared memory, touched by one CPU, held until killed: shm, sysv, memfd, shared, hugetlb
 * use KIND MIB CPU            likewise, its first half touched by this process, all of it by a child, whose numa_maps it prints
 * share KIND MIB CPU CPU      likewise, filled by a process on the first CPU; that one reads its first half, a child on the other CPU
 *                             the second, each word once
 * grow MIB CPU                a memfd of this size of which the first half is mapped, and then all of it, by mremap; touched by
 *                             this CPU, which prints its numa_maps
 * pin FILE PAGE               holds a reference to a page of FILE, as direct input and output does, until killed
 * lock FILE MIB               FILE mapped and locked (mlock) until killed
 * as UID CMD...               CMD as this user, without capabilities
 * kill PAGES CMD...           CMD, killed once the kernel has moved this number of pages since CMD began
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void need(int holds, const char *what) {
    if (!holds) {
        perror(what);
        exit(3);
    }
}

static void bind_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    need(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

static void write_file(const char *path, size_t mib, int cpu) {
    enum { WORDS = 1 << 17 };
    static uint64_t words[WORDS];
    bind_to(cpu);
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    need(file >= 0, path);
    for (size_t done = 0; done < mib; done++) {
        for (size_t i = 0; i < WORDS; i++)
            words[i] = done * WORDS + i;
        need(write(file, words, sizeof words) == (ssize_t)sizeof words, "write");
    }
    need(fsync(file) == 0 && close(file) == 0, "fsync");
}

static const uint64_t *mapped;
static size_t count;
static int threads, passes;

static void *reader(void *argument) {
    size_t id = (size_t)argument;
    if ((long)id < sysconf(_SC_NPROCESSORS_CONF))
        bind_to((int)id);
    for (int pass = 0; pass < passes; pass++) {
        if (pass > 0)
            usleep(300000); /* others need the emulator's CPUs too */
        for (size_t i = id * count / (size_t)threads; i < (id + 1) * count / (size_t)threads; i++)
            if (mapped[i] != i) {
                fprintf(stderr, "word %zu is %llu\n", i, (unsigned long long)mapped[i]);
                exit(4);
            }
    }
    return NULL;
}

static void read_file(const char *path) {
    pthread_t all[64];
    struct stat status;
    int file = open(path, O_RDONLY);
    need(file >= 0 && fstat(file, &status) == 0, path);
    count = (size_t)status.st_size / sizeof *mapped;
    mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    need(mapped != MAP_FAILED, "mmap");
    for (size_t i = 0; i < (size_t)threads; i++)
        need(pthread_create(&all[i], NULL, reader, (void *)i) == 0, "pthread_create");
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    puts("read");
}

static void slice(const char *path, size_t parts) {
    struct stat status;
    uint64_t sum = 0;
    int file = open(path, O_RDONLY);
    need(file >= 0 && fstat(file, &status) == 0, path);
    size_t bytes = (size_t)status.st_size / parts;
    for (size_t i = 0; i < parts; i++) {
        const uint64_t *part = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, (off_t)(i * bytes));
        need(part != MAP_FAILED, "mmap");
        for (size_t j = 0; j < bytes / sizeof *part; j++)
            sum += part[j];
    }
    printf("%llu\n", (unsigned long long)sum);
}

static void *shared_memory(const char *kind, size_t bytes) {
    int shared = -1, flags = MAP_SHARED;
    if (!strcmp(kind, "sysv")) {
        int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
        void *at = shmat(id, NULL, 0);
        shmctl(id, IPC_RMID, NULL); /* gone with its last user */
        return at;
    }
    if (!strcmp(kind, "shm"))
        shared = shm_open("/buffers", O_CREAT | O_RDWR, 0600);
    else if (!strcmp(kind, "memfd"))
        shared = memfd_create("guest-ram", 0);
    else
        flags |= MAP_ANONYMOUS | (strcmp(kind, "hugetlb") ? 0 : MAP_HUGETLB);
    need(shared < 0 || ftruncate(shared, (off_t)bytes) == 0, "ftruncate");
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, shared, 0);
}

/* The lines of this process's mappings from `at` on. */
static void print_nodes(const char *at, size_t bytes) {
    char line[4096];
    FILE *maps = fopen("/proc/self/numa_maps", "r");
    need(maps != NULL, "numa_maps");
    while (fgets(line, sizeof line, maps)) {
        const char *start = (const char *)strtoul(line, NULL, 16);
        if (start >= at && start < at + bytes)
            fputs(line, stdout);
    }
    fclose(maps);
}

static void use(const char *kind, size_t bytes, int cpu) {
    bind_to(cpu);
    char *at = shared_memory(kind, bytes);
    need(at != MAP_FAILED, kind);
    memset(at, 1, bytes / 2);
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        memset(at, 2, bytes);
        print_nodes(at, bytes);
        exit(0);
    }
    int status = 0;
    need(waitpid(child, &status, 0) == child && status == 0, "child");
    if (!strcmp(kind, "shm"))
        shm_unlink("/buffers");
}

static void read_half(const uint64_t *words, size_t bytes, size_t half) {
    size_t part = bytes / sizeof *words / 2;
    for (size_t i = half * part; i < (half + 1) * part; i++)
        need(*(const volatile uint64_t *)&words[i] == i, "word");
}

static void share(const char *kind, size_t bytes, int cpu, int other) {
    bind_to(cpu);
    uint64_t *words = shared_memory(kind, bytes);
    need(words != MAP_FAILED, kind);
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        words[i] = i;
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        bind_to(other);
        read_half(words, bytes, 1);
        exit(0);
    }
    read_half(words, bytes, 0);
    int status = 0;
    need(waitpid(child, &status, 0) == child && status == 0, "child");
    if (!strcmp(kind, "shm"))
        shm_unlink("/buffers");
}

static void grow(size_t bytes, int cpu) {
    bind_to(cpu);
    int file = memfd_create("guest-ram", 0);
    need(file >= 0 && ftruncate(file, (off_t)bytes) == 0, "memfd");
    char *at = mmap(NULL, bytes / 2, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    need(at != MAP_FAILED, "mmap");
    memset(at, 1, bytes / 2);
    at = mremap(at, bytes / 2, bytes, MREMAP_MAYMOVE);
    need(at != MAP_FAILED, "mremap");
    memset(at, 2, bytes);
    print_nodes(at, bytes);
}

static void pin(const char *path, size_t page) {
    int file = open(path, O_RDONLY), ends[2];
    void *at = mmap(NULL, (page + 1) * 4096, PROT_READ, MAP_SHARED, file, 0);
    need(file >= 0 && at != MAP_FAILED && pipe(ends) == 0, path);
    struct iovec one = {(char *)at + page * 4096, 4096};
    need(vmsplice(ends[1], &one, 1, 0) == 4096, "vmsplice");
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    pause();
}

static void lock(const char *path, size_t bytes) {
    int file = open(path, O_RDONLY);
    void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    need(file >= 0 && at != MAP_FAILED && mlock(at, bytes) == 0, path);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    pause();
}

/* Pages that the kernel has moved since it started. */
static long moved_pages(void) {
    static char text[1 << 16];
    int file = open("/proc/vmstat", O_RDONLY);
    need(file >= 0, "/proc/vmstat");
    size_t length = 0;
    for (ssize_t got; (got = read(file, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = '\0';
    close(file);
    const char *at = strstr(text, "pgmigrate_success ");
    need(at != NULL, "pgmigrate_success");
    return atol(at + strlen("pgmigrate_success "));
}

static void kill_after(long pages, char **command) {
    long until = moved_pages() + pages;
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        execvp(command[0], command);
        need(0, command[0]);
    }
    while (moved_pages() < until && waitpid(child, NULL, WNOHANG) == 0)
        sched_yield();
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
    need(argc >= 4, "usage");
    if (!strcmp(argv[1], "write")) {
        write_file(argv[2], (size_t)atoi(argv[3]), atoi(argv[4]));
    } else if (!strcmp(argv[1], "read")) {
        threads = atoi(argv[3]);
        passes = atoi(argv[4]);
        read_file(argv[2]);
    } else if (!strcmp(argv[1], "slice")) {
        slice(argv[2], (size_t)atoi(argv[3]));
    } else if (!strcmp(argv[1], "hold")) {
        size_t bytes = (size_t)atoi(argv[3]) << 20;
        bind_to(atoi(argv[4]));
        char *at = shared_memory(argv[2], bytes);
        need(at != MAP_FAILED, argv[2]);
        memset(at, 1, bytes);
        printf("ready %d\n", (int)getpid());
        fflush(stdout);
        pause();
    } else if (!strcmp(argv[1], "use")) {
        use(argv[2], (size_t)atoi(argv[3]) << 20, atoi(argv[4]));
    } else if (!strcmp(argv[1], "share")) {
        share(argv[2], (size_t)atoi(argv[3]) << 20, atoi(argv[4]), atoi(argv[5]));
    } else if (!strcmp(argv[1], "grow")) {
        grow((size_t)atoi(argv[2]) << 20, atoi(argv[3]));
    } else if (!strcmp(argv[1], "pin")) {
        pin(argv[2], (size_t)atoi(argv[3]));
    } else if (!strcmp(argv[1], "lock")) {
        lock(argv[2], (size_t)atoi(argv[3]) << 20);
    } else if (!strcmp(argv[1], "kill")) {
        kill_after(atol(argv[2]), argv + 3);
    } else if (!strcmp(argv[1], "as")) {
        need(setgid((gid_t)atoi(argv[2])) == 0 && setuid((uid_t)atoi(argv[2])) == 0, "setuid");
        execvp(argv[3], argv + 3);
        need(0, argv[3]);
    }
    return 0;
}
