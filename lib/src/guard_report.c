/* The line about a write to a guarded array. A signal handler prints it, so it is composed by hand. */
#include "copies.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct text {
    char chars[320];
    size_t length;
} text;

static void add(text *to, const char *more) {
    for (; *more && to->length < sizeof to->chars - 1; more++)
        to->chars[to->length++] = *more;
}

static void add_number(text *to, uintptr_t number, unsigned base) {
    char digits[24], *at = digits + sizeof digits - 1;
    *at = 0;
    do
        *--at = "0123456789abcdef"[number % base];
    while (number /= base);
    add(to, base == 16 ? "0x" : "");
    add(to, at);
}

/* /proc/self/maps, a character at a time: a line may be longer than any buffer that is sensible here. */
typedef struct maps {
    int file;
    char buffer[512];
    ssize_t length, at;
} maps;

static int next_char(maps *of) {
    if (of->at == of->length) {
        of->length = read(of->file, of->buffer, sizeof of->buffer);
        of->at = 0;
    }
    return of->length > 0 ? (unsigned char)of->buffer[of->at++] : (of->length = 0, -1);
}

/* A hexadecimal number, and the character after it. */
static uintptr_t next_number(maps *of, int *after) {
    uintptr_t number = 0;
    for (;;) {
        *after = next_char(of);
        if (*after >= '0' && *after <= '9')
            number = number * 16 + (uintptr_t)(*after - '0');
        else if (*after >= 'a' && *after <= 'f')
            number = number * 16 + (uintptr_t)(*after - 'a' + 10);
        else
            return number;
    }
}

/* The rest of a line; `name` gets what follows its last slash. 0 at the end of the file. */
static int rest_of_line(maps *of, char *name, size_t size) {
    size_t length = 0;
    int c;
    name[0] = 0;
    for (int named = 0; (c = next_char(of)) != '\n' && c >= 0;) {
        named |= c == '/';
        length = c == '/' ? 0 : length;
        if (named && c != '/' && length < size - 1)
            name[length++] = (char)(c < ' ' || c == 127 ? '?' : c);
        name[length] = 0;
    }
    return c == '\n';
}

/* " (app+0x1234)": the mapped file that an instruction is of, and its offset there. */
static void add_module(text *to, uintptr_t from) {
    maps all = {open("/proc/self/maps", O_RDONLY | O_CLOEXEC), {0}, 0, 0};
    char name[64];
    for (int more = all.file >= 0, after; more;) {
        uintptr_t start = next_number(&all, &after), end = next_number(&all, &after);
        for (int c = after; c >= 0 && (c = next_char(&all)) != ' ';) {
        }
        uintptr_t offset = next_number(&all, &after);
        more = rest_of_line(&all, name, sizeof name);
        if (from < start || from >= end)
            continue;
        if (name[0]) {
            add(to, " (");
            add(to, name);
            add(to, "+");
            add_number(to, from - start + offset, 16);
            add(to, ")");
        }
        break;
    }
    if (all.file >= 0)
        close(all.file);
}

void nw_guard_report(const char *data, size_t bytes, const char *address, uintptr_t from) {
    text line = {{0}, 0};
    add(&line, "nodewise: the array at ");
    add_number(&line, (uintptr_t)data, 16);
    add(&line, " (");
    add_number(&line, bytes, 10);
    add(&line, " bytes) was written to at byte ");
    add_number(&line, (uintptr_t)(address - data), 10);
    add(&line, " (");
    add_number(&line, (uintptr_t)address, 16);
    add(&line, ") after it was copied");
    if (from) {
        add(&line, ", by the instruction at ");
        add_number(&line, from, 16);
        add_module(&line, from);
    }
    add(&line, ": its copies are not used any more\n");
    ssize_t written = write(STDERR_FILENO, line.chars, line.length);
    (void)written;
}
