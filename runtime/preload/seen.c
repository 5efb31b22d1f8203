/* What objects there are, for whoever wants to know which pages belong to one: a line each, appended to
 * $NODEWISE_OBJECTS: `<process> <rule or -> <first page, hex> <pages> <thread>`. Only the same
 * object gets the addresses of one that goes, so nothing is said of those. */
#define _GNU_SOURCE
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char file[1024];

int nw_seeing(void) { return *file != 0; }

int nw_seen_start(void) {
    const char *path = getenv("NODEWISE_OBJECTS");
    if (path && *path == '/' && strlen(path) < sizeof file)
        strcpy(file, path);
    return nw_seeing();
}

/* Opened each time: a descriptor kept might be closed by the program, and its number then be another's. */
static void append(const char *line, int length) {
    int to = open(file, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (to < 0)
        return;
    ssize_t written = write(to, line, (size_t)length);
    (void)written; /* the page counts as nobody's */
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

static void see_span(uint64_t start, uint64_t bytes) {
    nw_object object = {.page = start >> nw_page_shift, .rule = NW_ANY};
    object.pages = ((start + bytes - 1) >> nw_page_shift) + 1 - object.page;
    nw_seen(&object);
}

void nw_seen_data(void) {
    if (nw_seeing())
        nw_main_data(see_span);
}
