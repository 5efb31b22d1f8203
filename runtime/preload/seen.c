/* Lists the objects, so that pages can be attributed to them: a line each, appended to $NODEWISE_OBJECTS: `<process>
 * <rule or -> <first page, hex> <pages> <thread>`. Freed objects are not reported, since their addresses are reused
 * only by the same object.
 *
 * At the end of the process follows `<process> = <first page, hex> <first frame, hex> <pages>` for each run of
 * consecutive frames of these objects, if the kernel shows frames to the user. Several processes can have objects at
 * the same address, such as the variables of a program that is not position-independent, and only frames tell which
 * process a page belongs to. */
#define _GNU_SOURCE
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char file[1024];

int nw_seeing(void) { return *file != 0; }

int nw_seen_start(void) {
    const char *path = getenv("NODEWISE_OBJECTS");
    if (path && *path == '/' && strlen(path) < sizeof file)
        strcpy(file, path);
    return nw_seeing();
}

/* The file is opened each time: a descriptor that is kept open could be closed by the program, and its number then be
 * used for another file. */
static void append(const char *line, int length) {
    int to = open(file, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (to < 0)
        return;
    ssize_t written = write(to, line, (size_t)length);
    (void)written; /* on failure the pages are attributed to no object */
    close(to);
}

void nw_seen(const nw_object *object) {
    char line[128], rule[16] = "-";
    if (!nw_seeing() || !nw_placement)
        return;
    if (object->rule < nw_placement->rules.count)
        snprintf(rule, sizeof rule, "%u", object->rule);
    append(line, snprintf(line, sizeof line, "%d %s %llx %llu %u\n", (int)getpid(), rule,
                          (unsigned long long)object->page, (unsigned long long)object->pages, object->thread));
}

enum { ENTRIES = 32 }; /* read at once; few, since the stack on which a program ends may be small */
/* A page of this process alone: neither of a file, nor the page of zeros, nor shared since a fork. */
#define OWN (1ull << 63 | 1ull << 56)
#define OF_FILE (1ull << 61)
#define FRAME_BITS ((1ull << 55) - 1)

/* Consecutive frames of consecutive pages. */
typedef struct run {
    uint64_t page, frame, pages;
} run;

static struct {
    char text[4096];
    int length;
} said; /* lines not yet written; a process ends once */

static void say_all(void) {
    if (said.length)
        append(said.text, said.length);
    said.length = 0;
}

static void tell(const run *of) {
    enum { LINE = 96 };
    if (!of->pages)
        return;
    if (said.length + LINE > (int)sizeof said.text)
        say_all();
    said.length += snprintf(said.text + said.length, LINE, "%d = %llx %llx %llu\n", (int)getpid(),
                            (unsigned long long)of->page, (unsigned long long)of->frame, (unsigned long long)of->pages);
}

static void tell_frames(int pagemap, uint64_t first, uint64_t pages) {
    uint64_t entries[ENTRIES];
    run seen = {0};
    for (uint64_t done = 0; done < pages;) {
        size_t wanted = pages - done < ENTRIES ? (size_t)(pages - done) : ENTRIES;
        ssize_t got = pread(pagemap, entries, wanted * sizeof *entries, (off_t)((first + done) * sizeof *entries));
        if (got < (ssize_t)sizeof *entries)
            break;
        for (size_t i = 0; i < (size_t)got / sizeof *entries; i++, done++) {
            uint64_t frame = (entries[i] & (OWN | OF_FILE)) == OWN ? entries[i] & FRAME_BITS : 0;
            if (frame && frame == seen.frame + seen.pages && first + done == seen.page + seen.pages) {
                seen.pages++;
                continue;
            }
            tell(&seen);
            seen = (run){first + done, frame, frame != 0};
        }
    }
    tell(&seen);
}

/* The next line of a file; 0: there is none, or it is too long to be ours. */
static int next_line(int from, off_t *at, char *line, size_t size) {
    ssize_t got = pread(from, line, size - 1, *at);
    line[got > 0 ? got : 0] = 0;
    char *end = strchr(line, '\n');
    if (!end)
        return 0;
    *end = 0;
    *at += end + 1 - line;
    return 1;
}

/* Whether file sizes are limited: these lines are many, and writing beyond the limit raises SIGXFSZ. */
static int is_limited(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

void nw_seen_end(void) {
    if (is_limited())
        return;
    char line[128], rule[16];
    struct stat status;
    int own = (int)getpid(), process;
    int from = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY), pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    off_t at = 0, end = from >= 0 && fstat(from, &status) == 0 ? status.st_size : 0; /* our own lines follow it */
    unsigned long long page, pages, before = 0, told = 0;
    while (pagemap >= 0 && at < end && next_line(from, &at, line, sizeof line)) {
        if (sscanf(line, "%d %15s %llx %llu", &process, rule, &page, &pages) != 4 || process != own || *rule == '=')
            continue;
        /* An object that grew has a line for each of its sizes. */
        unsigned long long known = page == before && told < pages ? told : 0;
        tell_frames(pagemap, page + known, pages - known);
        before = page;
        told = pages;
    }
    say_all();
    if (pagemap >= 0)
        close(pagemap);
    if (from >= 0)
        close(from);
}

static void see_span(uint64_t start, uint64_t bytes) {
    nw_object object = {.page = start >> nw_page_shift, .rule = NW_ANY};
    object.pages = ((start + bytes - 1) >> nw_page_shift) + 1 - object.page;
    nw_seen(&object);
}

void nw_seen_data(void) {
    if (nw_seeing())
        nw_main_data(see_span);
}
