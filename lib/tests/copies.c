/* Copies of arrays and of files on a simulated machine of two nodes: what they are, where, and what is said when they
 * cannot be made or are not the same any more. */
#define _GNU_SOURCE
#include "check.h"
#include "nodewise.h"
#include "simulated.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#define PIECE ((size_t)4 << 20) /* in which the library reads files */

#define REFUSED(call, status, says)                                                                               \
    do {                                                                                                          \
        int got_ = (call);                                                                                        \
        CHECK(got_ == (status) && strstr(nw_last_error(), says), "%s: %d, \"%s\"", #call, got_, nw_last_error()); \
    } while (0)

static size_t page;

/* ---- Reading, as the kernel may answer ------------------------------------------------------------ */

static size_t most = SIZE_MAX; /* bytes that a call reads */
static int interrupts, broken;  /* every other call is interrupted; calls until EIO (0: never) */
static int reads, wrong_policy; /* calls; those while the thread does not interleave */
static void (*meanwhile)(void); /* called before the second call */

ssize_t __real_pread(int fd, void *to, size_t bytes, off_t at);

ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t at) {
    reads++;
    wrong_policy += thread_policy != MODE_INTERLEAVE;
    if (reads == 2 && meanwhile)
        meanwhile();
    if ((interrupts && reads % 2) || (broken && reads == broken)) {
        errno = broken ? EIO : EINTR;
        return -1;
    }
    return __real_pread(fd, to, bytes < most ? bytes : most, at);
}

static unsigned char pattern(size_t at) { return (unsigned char)(at * 2654435761u >> 24 | 1); }

static void fill(char *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (char)pattern(i);
}

static int intact(const char *bytes, size_t count, size_t from) {
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)bytes[i] != pattern(from + i))
            return 0;
    return 1;
}

static int model; /* a file of `model_bytes` */
static size_t model_bytes;

static int new_file(size_t bytes) {
    char name[] = "/tmp/nodewise-copies-XXXXXX", *content = malloc(bytes + 1);
    int file = mkostemp(name, O_CLOEXEC);
    fill(content, bytes);
    CHECK(file >= 0 && pwrite(file, content, bytes, 0) == (ssize_t)bytes, "%s: no file", name);
    free(content);
    unlink(name);
    return file;
}

static void write_byte(size_t at, char byte) { CHECK(pwrite(model, &byte, 1, (off_t)at) == 1, "byte %zu", at); }

/* ---- Arrays --------------------------------------------------------------------------------------- */

/* The copy for a CPU, which is its node's number here. */
static const char *copy_for(const void *array, int cpu) {
    cpu_set_t before, one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_getaffinity(0, sizeof before, &before);
    int bound = sched_setaffinity(0, sizeof one, &one);
    const char *copy = nw_nearest(array);
    sched_setaffinity(0, sizeof before, &before);
    return bound ? NULL : copy;
}

static void each_node(void) {
    size_t bytes = 5 * page + 100, pages[3];
    char *array = nw_alloc_1d(bytes, 1);
    nw_copies copies = {7, 7, 7, 7};
    fill(array, bytes);
    CHECK(nw_copies_of(array, &copies, NULL, 0) == NW_OK && copies.count == 0 && copies.bytes == 0, "copies before");
    REFUSED(nw_check_copies(array), NW_NOT_DONE, "has no copies");
    CHECK(nw_replicate(array) == NW_OK, "%s", nw_last_error());
    const char *first = copy_for(array, 0), *second = copy_for(array, 1);
    if (second) /* else there is no such CPU here */
        CHECK(first != second && intact(second, bytes, 0), "each CPU has its own");
    CHECK(first != array && intact(first, bytes, 0), "the copy of CPU 0");
    CHECK(nw_copies_of(array, &copies, pages, 3) == NW_OK, "%s", nw_last_error());
    CHECK(copies.count == 2 && copies.bytes == 12 * page && copies.kept_bytes == 0 && copies.elsewhere == 0,
          "%d of %zu bytes, %zu pages elsewhere", copies.count, copies.bytes, copies.elsewhere);
    CHECK(pages[0] == 6 && pages[1] == 6 && pages[2] == 0, "%zu, %zu pages", pages[0], pages[1]);
    others_node = 1;
    CHECK(nw_copies_of(array, &copies, pages, 3) == NW_OK && copies.elsewhere == 6 && pages[1] == 12, "%zu elsewhere",
          copies.elsewhere);
    others_node = -1;
    CHECK(nw_check_copies(array) == NW_OK, "%s", nw_last_error());
    CHECK(nw_replicate(array) == NW_OK && copy_for(array, 0) == first, "copied twice");
    REFUSED(nw_copies_of(array, NULL, NULL, 0), NW_INVALID, "no room");
    REFUSED(nw_copies_of(array, &copies, NULL, 2), NW_INVALID, "no room");
    REFUSED(nw_copies_of(array, &copies, pages, -1), NW_INVALID, "no room");
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

static void chosen_nodes(void) {
    size_t pages[2];
    char *array = nw_alloc_1d(3 * page, 1);
    const int last[] = {1, 1}, both[] = {1, 0}, foreign[] = {0, 5}, negative[] = {-1};
    nw_copies copies;
    fill(array, 3 * page);
    REFUSED(nw_replicate_on(array, foreign, 2), NW_INVALID, "node 5: this process may use nodes 0-1 only");
    REFUSED(nw_replicate_on(array, negative, 1), NW_INVALID, "node -1");
    REFUSED(nw_replicate_on(array, last, 0), NW_INVALID, "at least one");
    REFUSED(nw_replicate_on(array, last, -2), NW_INVALID, "at least one");
    CHECK(nw_nearest(array) == array, "copies were made");
    CHECK(nw_replicate_on(array, last, 2) == NW_OK, "%s", nw_last_error());
    CHECK(nw_copies_of(array, &copies, pages, 2) == NW_OK && copies.count == 1, "%d copies", copies.count);
    CHECK(pages[0] == 0 && pages[1] == 3, "%zu, %zu pages", pages[0], pages[1]);
    const char *copy = copy_for(array, 0);
    CHECK(copy != array && intact(copy, 3 * page, 0), "no copy for a node without one");
    CHECK(nw_replicate_on(array, last, 1) == NW_OK && nw_replicate(array) == NW_OK, "%s", nw_last_error());
    CHECK(copy_for(array, 0) == copy, "copied twice");
    REFUSED(nw_replicate_on(array, both, 2), NW_INVALID, "copies on nodes 1 already");
    CHECK(nw_drop_copies(array) == NW_OK && nw_nearest(array) == array, "%s", nw_last_error());
    CHECK(nw_drop_copies(array) == NW_OK, "%s", nw_last_error());
    CHECK(nw_replicate_on(array, both, 2) == NW_OK, "%s", nw_last_error());
    CHECK(nw_copies_of(array, &copies, pages, 2) == NW_OK && pages[0] == 3 && pages[1] == 3, "%zu", pages[0]);
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

static void written_after(void) {
    size_t bytes = 3 * page + 5;
    const size_t places[] = {0, 1, page - 1, page, 2 * page + 77, bytes - 1};
    char *array = nw_alloc_2d(bytes, 1, 1), says[64];
    fill(array, bytes);
    CHECK(nw_replicate(array) == NW_OK, "%s", nw_last_error());
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        array[places[i]] ^= 0x40;
        array[bytes - 1] ^= 0x20; /* a later byte is not the first one */
        snprintf(says, sizeof says, "from byte %zu on;", places[i]);
        REFUSED(nw_check_copies(array), NW_STALE, says);
        array[places[i]] ^= 0x40;
        array[bytes - 1] ^= 0x20;
        CHECK(nw_check_copies(array) == NW_OK, "%s", nw_last_error());
    }
    char *copy = (char *)nw_nearest(array); /* one copy alone is enough */
    copy[9]++;
    REFUSED(nw_check_copies(array), NW_STALE, "from byte 9 on;");
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

/* Each allocation fails once, and then each mbind: there are no copies then, and all of them at the end. */
static void memory_ends(void) {
    char *array = nw_alloc_1d(9 * page, 1);
    fill(array, 9 * page);
    for (int after = 0, status = NW_NO_MEMORY; status != NW_OK; after++) {
        memory_left = after;
        status = nw_replicate(array);
        int failed = memory_left < 0;
        memory_left = -1;
        CHECK(status == (failed ? NW_NO_MEMORY : NW_OK), "allocation %d: %d, %s", after, status, nw_last_error());
        CHECK((nw_nearest(array) == array) == failed && (failed || after >= 3), "allocation %d", after);
    }
    CHECK(nw_drop_copies(array) == NW_OK, "%s", nw_last_error());
    for (int after = 0; after < 2; after++) {
        mappings_left = after;
        REFUSED(nw_replicate(array), NW_NOT_DONE, "no copies were made");
        CHECK(nw_nearest(array) == array, "half made");
    }
    mappings_left = -1;
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
    size_t bytes = (size_t)1 << 44;
    char *large = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (large == MAP_FAILED) /* under sanitizers */
        return;
    CHECK(nw_adopt(large, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    REFUSED(nw_replicate(large), NW_NO_MEMORY, "2 copies take 16777216 MiB each, and");
    CHECK(nw_forget(large) == NW_OK && munmap(large, bytes) == 0, "%s", nw_last_error());
}

/* ---- Files ---------------------------------------------------------------------------------------- */

static void file_refused(void) {
    int ends[2], empty = new_file(0), folder = open("/", O_RDONLY), device = open("/dev/null", O_RDONLY);
    int deaf = open("/tmp", O_TMPFILE | O_WRONLY, 0600);
    char here[4];
    CHECK(pipe(ends) == 0, "no pipe");
    REFUSED(nw_adopt_file(here, 4, -1, 0), NW_INVALID, "-1 is no open file");
    REFUSED(nw_adopt_file(NULL, 4, model, 0), NW_INVALID, "null pointer");
    REFUSED(nw_adopt_file(here, 4, ends[0], 0), NW_INVALID, "is a pipe: only regular files");
    REFUSED(nw_adopt_file(here, 4, folder, 0), NW_INVALID, "is a directory");
    REFUSED(nw_adopt_file(here, 4, device, 0), NW_INVALID, "is a device");
    REFUSED(nw_adopt_file(here, 4, empty, 0), NW_INVALID, "is empty");
    REFUSED(nw_adopt_file(here, 4, model, model_bytes), NW_INVALID, "there are no 4 from byte");
    REFUSED(nw_adopt_file(here, 4, model, model_bytes - 3), NW_INVALID, "there are no 4 from byte");
    REFUSED(nw_adopt_file(here, 0, model, UINT64_MAX), NW_INVALID, "there are no 1 from byte");
    REFUSED(nw_adopt_file(here, SIZE_MAX, model, 1), NW_INVALID, "there are no");
    if (deaf >= 0)
        REFUSED(nw_adopt_file(here, 0, deaf, 0), NW_INVALID, "not open for reading");
    CHECK(nw_map_file(empty, 0, 0) == NULL && strstr(nw_last_error(), "is empty"), "%s", nw_last_error());
    CHECK(nw_map_file(folder, 0, 0) == NULL && strstr(nw_last_error(), "directory"), "%s", nw_last_error());
    CHECK(nw_map_file(model, 0, model_bytes + 1) == NULL && nw_last_error()[0], "%s", nw_last_error());
    REFUSED(nw_check_copies(here), NW_NO_ARRAY, "is no array");
    close(ends[0]), close(ends[1]), close(empty), close(folder), close(device), close(deaf);
}

/* Short reads and interrupted ones; an offset that is no page's; the descriptor closed. */
static void file_copied(size_t offset, size_t bytes) {
    int mine = dup(model);
    char *array = nw_map_file(mine, offset, bytes);
    size_t length = bytes ? bytes : model_bytes - offset, pages[2];
    nw_shape shape;
    nw_copies copies;
    close(mine);
    CHECK(array && intact(array, length, offset), "%s", nw_last_error());
    CHECK(nw_shape_of(array, &shape) == NW_OK && shape.items == length && shape.item == 1, "%zu bytes", shape.items);
    most = 1000003, interrupts = 1, wrong_policy = interleaved = 0;
    CHECK(nw_replicate(array) == NW_OK, "%s", nw_last_error());
    CHECK(interleaved == 1 && wrong_policy == 0 && thread_policy == MODE_DEFAULT, "%d, %d reads by another policy",
          interleaved, wrong_policy);
    for (int cpu = 0; cpu < 2; cpu++) {
        const char *copy = copy_for(array, cpu);
        CHECK(cpu == 1 || (copy && copy != array), "no copy");
        CHECK(!copy || intact(copy, length, offset), "the copy for CPU %d", cpu);
    }
    size_t each = (length + page - 1) / page;
    CHECK(nw_copies_of(array, &copies, pages, 2) == NW_OK && pages[0] == each && pages[1] == each, "%zu pages",
          pages[0]);
    CHECK(nw_check_copies(array) == NW_OK, "%s", nw_last_error());
    most = SIZE_MAX, interrupts = 0;
    REFUSED(nw_place(array, nw_cyclic(NW_PAGES, 1)), NW_NOT_DONE, "nodewise files");
    REFUSED(nw_forget(array), NW_INVALID, "nw_free");
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

static void file_adopted(void) {
    char *mapping = mmap(NULL, model_bytes, PROT_READ, MAP_SHARED, model, 0), *tensor = mapping + 4000;
    size_t bytes = 3 * page + 1;
    CHECK(nw_adopt_file(tensor, bytes, model, 4000) == NW_OK, "%s", nw_last_error());
    CHECK(nw_adopt_file(tensor, bytes, model, 4000) == NW_OK, "adopted again: %s", nw_last_error());
    REFUSED(nw_adopt_file(tensor, bytes, model, 4001), NW_INVALID, "is adopted already");
    REFUSED(nw_adopt(tensor, 1, 1, &bytes), NW_INVALID, "is adopted already");
    CHECK(nw_replicate(tensor) == NW_OK && nw_nearest(tensor) != tensor, "%s", nw_last_error());
    CHECK(intact(nw_nearest(tensor), bytes, 4000), "the copy");
    REFUSED(nw_free(tensor), NW_INVALID, "nw_forget");
    CHECK(nw_forget(tensor) == NW_OK && intact(tensor, bytes, 4000), "%s", nw_last_error());
    /* Memory that is not the file's any more, or is not there, is no reason to crash. */
    CHECK(nw_adopt_file(mapping, 0, model, 0) == NW_OK && munmap(mapping, model_bytes) == 0, "%s", nw_last_error());
    int status = nw_replicate(mapping);
    CHECK(status == NW_INVALID || (status == NW_OK && intact(nw_nearest(mapping), model_bytes, 0)), "%s",
          nw_last_error());
    CHECK(nw_forget(mapping) == NW_OK, "%s", nw_last_error());
}

static void file_changed(void) {
    char *array = nw_map_file(model, 100, 0), says[64];
    const size_t places[] = {100, 101, PIECE + 99, PIECE + 100, model_bytes - 1};
    CHECK(nw_replicate(array) == NW_OK, "%s", nw_last_error());
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        write_byte(places[i], 0);
        snprintf(says, sizeof says, "from byte %zu on (byte %zu of the file): it was changed", places[i] - 100,
                 places[i]);
        REFUSED(nw_check_copies(array), NW_STALE, says);
        write_byte(places[i], (char)pattern(places[i]));
        CHECK(nw_check_copies(array) == NW_OK, "new times alone: %s", nw_last_error());
    }
    write_byte(5, 0); /* before the part that is the array */
    CHECK(nw_check_copies(array) == NW_OK, "%s", nw_last_error());
    write_byte(5, (char)pattern(5));
    CHECK(ftruncate(model, (off_t)(2 * page)) == 0, "not truncated");
    snprintf(says, sizeof says, "has %zu bytes by now: its copies have more, from byte %zu on", 2 * page,
             2 * page - 100);
    REFUSED(nw_check_copies(array), NW_STALE, says);
    CHECK(intact(nw_nearest(array), model_bytes - 100, 100), "copies of a file that was truncated");
    broken = reads + 1;
    REFUSED(nw_check_copies(array), NW_NOT_DONE, "Input/output error");
    broken = 0;
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
    close(model);
    model = new_file(model_bytes);
}

static void truncates(void) { CHECK(ftruncate(model, (off_t)(page + 1)) == 0, "not truncated"); }
static void writes(void) {
    struct timespec tick = {0, 20000000}; /* by which the kernel's clock of files has gone on */
    nanosleep(&tick, NULL);
    write_byte(7, (char)pattern(7));
}

/* Memory that does not show what the file has there: another offset, or changed before. */
static void not_the_file(void) {
    char *mapping = mmap(NULL, model_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, model, 0);
    CHECK(nw_adopt_file(mapping + 7, model_bytes - 7, model, 0) == NW_OK, "%s", nw_last_error());
    REFUSED(nw_replicate(mapping + 7), NW_INVALID, "does not have what");
    CHECK(nw_nearest(mapping + 7) == mapping + 7 && nw_forget(mapping + 7) == NW_OK, "%s", nw_last_error());
    CHECK(nw_adopt_file(mapping + 7, model_bytes - 7, model, 7) == NW_OK, "%s", nw_last_error());
    CHECK(nw_replicate(mapping + 7) == NW_OK && nw_forget(mapping + 7) == NW_OK, "%s", nw_last_error());
    mapping[model_bytes - 1] ^= 1;
    CHECK(nw_adopt_file(mapping, model_bytes, model, 0) == NW_OK, "%s", nw_last_error());
    REFUSED(nw_replicate(mapping), NW_INVALID, "does not have what");
    CHECK(nw_forget(mapping) == NW_OK && munmap(mapping, model_bytes) == 0, "%s", nw_last_error());
}

/* What happens while the file is read leaves no copies behind. */
static void file_changes_meanwhile(void) {
    char *array = nw_map_file(model, 0, 0);
    nw_copies copies;
    reads = 0, broken = 2;
    REFUSED(nw_replicate(array), NW_NOT_DONE, "cannot be read: Input/output error");
    reads = 0, broken = 0, meanwhile = writes;
    REFUSED(nw_replicate(array), NW_NOT_DONE, "was changed since it was adopted, or while it was read");
    reads = 0, meanwhile = truncates;
    REFUSED(nw_replicate(array), NW_NOT_DONE, "was changed since it was adopted, or while it was read");
    meanwhile = NULL;
    CHECK(thread_policy == MODE_DEFAULT, "the thread's policy is %ld", thread_policy);
    CHECK(nw_copies_of(array, &copies, NULL, 0) == NW_OK && copies.count == 0, "half made");
    REFUSED(nw_replicate(array), NW_NOT_DONE,
            "was changed since it was adopted, or while it was read"); /* shorter than the array by now */
    CHECK(nw_nearest(array) == array && nw_free(array) == NW_OK, "%s", nw_last_error());
    CHECK(ftruncate(model, (off_t)1 << 42) == 0, "no file of 4 TiB");
    array = nw_map_file(model, 0, 0);
    if (array) {
        REFUSED(nw_replicate(array), NW_NO_MEMORY, "2 copies take 4194304 MiB each, and");
        CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
    }
}

/* No descriptor stays open, in whatever way an array ends. */
static void descriptors(int free_before) {
    int now = dup(0);
    CHECK(now == free_before, "descriptor %d was free, now it is %d", free_before, now);
    close(now);
}

int main(void) {
    page = nw_page_bytes();
    each_node();
    chosen_nodes();
    written_after();
    memory_ends();
    model_bytes = 2 * PIECE + 12345;
    model = new_file(model_bytes);
    int unused = dup(0);
    close(unused);
    file_refused();
    file_copied(0, 0);
    file_copied(0, 17);
    file_copied(page, PIECE);
    file_copied(4097, PIECE + 1);
    file_adopted();
    descriptors(unused);
    file_changed();
    not_the_file();
    file_changes_meanwhile();
    descriptors(unused);
    return check_end();
}
