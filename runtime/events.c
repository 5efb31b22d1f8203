#define _GNU_SOURCE
#include "observer.h"
#include "scratch.h"
#include "stderr.h"
#include "write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void append(nw_line *line, const char *text, size_t length) {
    size_t room = line->text == NULL ? 0 : NW_LINE_BYTES - 1 - line->used; /* one is kept for the newline */
    if (length > room)
        length = room;
    memcpy(line->text + line->used, text, length);
    line->used += length;
}

void nw_line_begin(nw_line *line, const char *word) {
    if (line->text == NULL)
        line->text = nw_scratch_take();
    append(line, word, strlen(word));
}

void nw_line_number(nw_line *line, uint64_t number) {
    char digits[17], *digit = digits + sizeof digits;
    do
        *--digit = "0123456789abcdef"[number & 15];
    while ((number >>= 4) != 0);
    *--digit = ' ';
    append(line, digit, (size_t)(digits + sizeof digits - digit));
}

void nw_line_numbers(nw_line *line, const uintptr_t *numbers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        nw_line_number(line, numbers[i]);
}

void nw_line_text(nw_line *line, const char *text) {
    append(line, " ", 1);
    size_t from = line->used;
    append(line, text, strlen(text));
    for (size_t i = from; i < line->used; i++)
        if (line->text[i] == '\n')
            line->text[i] = '?';
}

void nw_line_end(nw_line *line) {
    if (line->text != NULL)
        line->text[line->used++] = '\n';
}

void nw_line_next(nw_line *line, const char *word) {
    if (line->used > NW_LINE_BYTES / 2) {
        nw_event(line);
    } else if (line->used > 0) {
        nw_line_end(line);
    }
    nw_line_begin(line, word);
}

static uint64_t logged;

uint64_t nw_events_logged(void) { return __atomic_load_n(&logged, __ATOMIC_RELAXED); }

/* The log is opened for each event. A descriptor kept open would be visible to the program, which may also
 * close it and then get the same number for a file of its own. */
void nw_event(nw_line *line) {
    nw_line_end(line);
    char *path = nw_path("events", NW_NO_NUMBER);
    long file = path == NULL || line->text == NULL ? -ENOMEM : nw_open(path, O_WRONLY | O_CREAT | O_APPEND);
    struct iovec whole_line = {line->text, line->used};
    long written = file < 0 ? file : nw_write((int)file, &whole_line, 1);
    if (file >= 0)
        nw_close(file);
    bool whole = written == (long)line->used;
    if (whole) {
        __atomic_fetch_add(&logged, line->used, __ATOMIC_RELAXED);
        if (nw_control_page != NULL)
            __atomic_add_fetch(&nw_control_page->logged, line->used, __ATOMIC_RELEASE);
    }
    nw_scratch_give(path);
    nw_scratch_give(line->text);
    *line = (nw_line){0};
    if (!whole)
        nw_switch_off(nw_reason(written < 0 ? written : nw_is_file_limited() ? -EFBIG : -ENOSPC));
}

uint64_t nw_events_written(void) {
    char *path = nw_path("events", NW_NO_NUMBER);
    struct stat status;
    long result = path == NULL ? -ENOMEM : nw_system(SYS_newfstatat, AT_FDCWD, path, &status, 0);
    nw_scratch_give(path);
    return result < 0 ? 0 : (uint64_t)status.st_size;
}

void nw_event_parent(const char *folder, uint64_t written) {
    nw_line line = {0};
    nw_line_begin(&line, "parent");
    nw_line_number(&line, written);
    nw_line_text(&line, strrchr(folder, '/') + 1);
    nw_event(&line);
}

void nw_say_stopped(const char *why) {
    nw_line line = {0};
    nw_line_begin(&line, "nodewise: recording stopped:");
    nw_line_text(&line, why);
    nw_line_text(&line, "(the program runs on)");
    nw_line_end(&line);
    nw_stderr_line(line.text, line.used);
    nw_scratch_give(line.text);
}
