/* The environment of programs that this one executes. A loader that cannot map our library prints a message on the
 * program's standard error, or ends the program. So our library is removed from LD_PRELOAD for programs that cannot
 * load it, and where its file cannot be reached, as after chroot. The C library's functions that start a program are
 * intercepted; `system` and `popen` start a shell, which in turn comes through here.
 *
 * A child of vfork runs this code in its parent's memory, which must not be changed. So what is built for a program
 * (its file name, its environment) is on the stack, no larger than it has to be. printf, which takes 2 KiB of stack, is
 * not used. */
#define _GNU_SOURCE
#include "foreign.h"
#include "starting.h"
#include "write.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define VARIABLE "LD_PRELOAD="
#define OURS "libnodewise-"

enum { MOST_VARIABLES = 1024, MOST_BYTES = 2 * PATH_MAX };

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const[], char *const[]);

/* A call that executes a program, and by which function. */
typedef struct call {
    enum { BY_PATH, BY_NAME, BY_DESCRIPTOR, SPAWN, SPAWN_BY_NAME } way;
    const char *path;
    int folder, flags; /* as for execveat */
    char *const *arguments;
    pid_t *pid;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
} call;

/* The next definitions in line: the C library's, or those of another preload library. */
static struct {
    int (*by_path)(const char *, char *const[], char *const[]), (*by_name)(const char *, char *const[], char *const[]);
    int (*by_descriptor)(int, const char *, char *const[], char *const[], int);
    spawn_function *spawn, *spawn_by_name;
} real;

/* Done early: a child of vfork must not call dlsym. */
__attribute__((constructor(102))) static void look_up(void) {
    *(void **)&real.by_path = dlsym(RTLD_NEXT, "execve");
    *(void **)&real.by_name = dlsym(RTLD_NEXT, "execvpe");
    *(void **)&real.by_descriptor = dlsym(RTLD_NEXT, "execveat"); /* since glibc 2.34 */
    *(void **)&real.spawn = dlsym(RTLD_NEXT, "posix_spawn");
    *(void **)&real.spawn_by_name = dlsym(RTLD_NEXT, "posix_spawnp");
}

unsigned (*nw_put_aside)(void);
void (*nw_take_up)(unsigned what);
void (*nw_leaves)(int leaves);
const char *(*nw_left_out)(char *const *environment, int reset);
void (*nw_lacks)(const char *why, const char *file);

static int call_real(const call *c, char *const *environment) {
    switch (c->way) {
    case BY_NAME: return real.by_name(c->path, c->arguments, environment);
    case BY_DESCRIPTOR:
        if (!real.by_descriptor)
            return (int)syscall(SYS_execveat, c->folder, c->path, c->arguments, environment, c->flags);
        return real.by_descriptor(c->folder, c->path, c->arguments, environment, c->flags);
    case SPAWN: return real.spawn(c->pid, c->path, c->actions, c->attributes, c->arguments, environment);
    case SPAWN_BY_NAME:
        return real.spawn_by_name(c->pid, c->path, c->actions, c->attributes, c->arguments, environment);
    default: return real.by_path(c->path, c->arguments, environment);
    }
}

static int execute(const call *c, char *const *environment) {
    if (!real.by_name)
        look_up();
    void (*leaves)(int) = c->way == SPAWN || c->way == SPAWN_BY_NAME ? NULL : nw_leaves;
    unsigned aside = nw_put_aside ? nw_put_aside() : 0;
    if (leaves)
        leaves(1);
    int result = call_real(c, environment);
    if (leaves)
        leaves(0);
    if (nw_put_aside)
        nw_take_up(aside);
    return result;
}

static int begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* The length of the first file name in a list. */
static size_t name_length(const char *list) { return strcspn(list, ": "); }

static int is_ours(const char *name, size_t length) {
    const char *slash = memrchr(name, '/', length);
    return begins(slash ? slash + 1 : name, OURS);
}

static int is_readable(const char *name, size_t length) {
    char path[length + 1];
    *(char *)mempcpy(path, name, length) = 0;
    return access(path, R_OK) == 0;
}

/* Whether this process can read our library's file where the variable says it is. */
static int in_sight(const char *list) {
    for (size_t length; *list; list += length + (list[length] != 0)) {
        length = name_length(list);
        if (is_ours(list, length) && length < PATH_MAX && !is_readable(list, length))
            return 0;
    }
    return 1;
}

/* The file that execvp would find for a name; `path` has room for file_bytes. */
static const char *found(const char *name, char *path) {
    const char *folders = getenv("PATH");
    if (strchr(name, '/') || !folders)
        return name;
    for (;; folders++) {
        size_t length = strcspn(folders, ":");
        stpcpy(stpcpy(mempcpy(path, folders, length), length ? "/" : ""), name);
        if (access(path, X_OK) == 0)
            return path;
        folders += length;
        if (!*folders)
            return name;
    }
}

static int is_by_name(const call *c) { return c->way == BY_NAME || c->way == SPAWN_BY_NAME; }

/* The room that file_of needs at most. The callers do not search for a file if that exceeds MOST_BYTES, which
 * bounds the stack that they use. */
static size_t file_bytes(const call *c) {
    const char *folders = is_by_name(c) ? getenv("PATH") : NULL;
    return strlen(c->path) + (folders ? strlen(folders) : 0) + sizeof "/proc/self/fd/-2147483648/";
}

static const char *file_of(const call *c, char *path) {
    if (is_by_name(c))
        return found(c->path, path);
    if (c->way != BY_DESCRIPTOR || (c->folder == AT_FDCWD && *c->path) || *c->path == '/')
        return c->path;
    char digits[12], *digit = digits + sizeof digits - 1;
    unsigned number = (unsigned)c->folder;
    *digit = 0;
    do
        *--digit = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    stpcpy(stpcpy(stpcpy(stpcpy(path, "/proc/self/fd/"), digit), *c->path ? "/" : ""), c->path);
    return path;
}

/* Appends a line to a file. */
static void note(const char *folder, const char *name, const char *text) {
    size_t bytes = strlen(folder) + strlen(name) + 2;
    if (bytes > PATH_MAX)
        return;
    char path[bytes];
    stpcpy(stpcpy(stpcpy(path, folder), "/"), name);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct iovec line[] = {{(void *)text, strlen(text)}, {"\n", 1}};
    if (file >= 0) {
        nw_write(file, line, 2); /* only a note: failure is ignored */
        close(file);
    }
}

/* Notes for `run` and the recorder that this program runs without our library. The recorder is not told of static
 * programs, nor under an emulator: its plugin counts static programs and reports uncounted ones itself. */
static void tell(const char *file, char *const *environment, int is_static) {
    static const char *const wheres[][2] = {{"NODEWISE_PLACEMENT=", "unplaced"}, {"NODEWISE_RAW=", "uncounted"}};
    for (size_t i = 0; environment[i]; i++)
        for (size_t w = 0; w < sizeof wheres / sizeof *wheres; w++)
            if (begins(environment[i], wheres[w][0]) && !(w && (is_static || getenv("NODEWISE_EMULATED"))))
                note(environment[i] + strlen(wheres[w][0]), wheres[w][1], file);
}

/* Writes the variable without our library to `to`; it is not longer than before. Returns 0 if no library is left. */
static int without_us(const char *list, char *to) {
    size_t used = strlen(strcpy(to, VARIABLE));
    for (size_t length; *list; list += length + (list[length] != 0)) {
        length = name_length(list);
        if (length == 0 || is_ours(list, length))
            continue;
        if (to[used - 1] != '=')
            to[used++] = ':';
        memcpy(to + used, list, length);
        used += length;
        to[used] = 0;
    }
    return to[used - 1] != '=';
}

__attribute__((noinline)) static int execute_without_us(const call *c, char *const *environment, size_t variable) {
    size_t variables = 0, count = 0, bytes = strlen(environment[variable]) + 1;
    while (environment[variables])
        variables++;
    if (variables > MOST_VARIABLES || bytes > MOST_BYTES)
        return execute(c, environment);
    char *entries[variables + 1], preload[bytes];
    int kept = without_us(environment[variable] + strlen(VARIABLE), preload);
    for (size_t i = 0; environment[i]; i++) {
        if (i != variable)
            entries[count++] = environment[i];
        else if (kept)
            entries[count++] = preload;
    }
    entries[count] = NULL;
    return execute(c, entries);
}

/* Whether the program is set-user-ID or set-group-ID to another id: its loader ignores LD_PRELOAD then. */
static int gains_privileges(const char *file) {
    struct stat status;
    return stat(file, &status) == 0 && ((status.st_mode & S_ISUID && status.st_uid != getuid()) ||
                                        (status.st_mode & S_ISGID && status.st_gid != getgid()));
}

__attribute__((noinline)) static int reached(const call *c, const char *list, char *const *environment) {
    int before = errno;
    size_t bytes = file_bytes(c);
    char path[bytes > MOST_BYTES ? 1 : bytes];
    const char *file = bytes > MOST_BYTES ? c->path : file_of(c, path);
    int seen = in_sight(list), takes = !seen || (nw_takes_preload(file) && !gains_privileges(file));
    int is_static = seen && takes && nw_is_static(file);
    if (!takes || is_static)
        tell(file, environment, is_static);
    errno = before;
    return seen && takes;
}

static int resets_ids(const call *c) {
    short flags = 0;
    return (c->way == SPAWN || c->way == SPAWN_BY_NAME) && c->attributes &&
           posix_spawnattr_getflags(c->attributes, &flags) == 0 && (flags & POSIX_SPAWN_RESETIDS);
}

/* If the program cannot be recorded or placed, reports that here, since the program's own image could not. */
__attribute__((noinline)) static void look_whether_left_out(const call *c, char *const *environment) {
    int before = errno;
    const char *why = nw_left_out(environment, resets_ids(c));
    size_t bytes = why ? file_bytes(c) : 1;
    char path[bytes > MOST_BYTES ? 1 : bytes];
    const char *file = !why || bytes > MOST_BYTES ? c->path : file_of(c, path);
    if (why)
        nw_lacks(why, file);
    errno = before;
}

/* The index of the LD_PRELOAD entry that names our library; -1: there is none. */
static ssize_t variable_of(char *const *environment) {
    for (ssize_t i = 0; environment && environment[i]; i++)
        if (begins(environment[i], VARIABLE) && strstr(environment[i], OURS))
            return i;
    return -1;
}

int nw_is_preloaded(char *const *environment) {
    ssize_t at = variable_of(environment);
    return at >= 0 && in_sight(environment[at] + strlen(VARIABLE));
}

static int start(const call *c, char *const *environment) {
    if (c->path && nw_left_out)
        look_whether_left_out(c, environment);
    ssize_t at = c->path ? variable_of(environment) : -1;
    if (at >= 0 && !reached(c, environment[at] + strlen(VARIABLE), environment))
        return execute_without_us(c, environment, (size_t)at);
    return execute(c, environment);
}

EXPORTED int execve(const char *path, char *const arguments[], char *const environment[]) {
    call c = {.way = BY_PATH, .path = path, .arguments = arguments};
    return start(&c, environment);
}

EXPORTED int execv(const char *path, char *const arguments[]) { return execve(path, arguments, environ); }

EXPORTED int execvpe(const char *name, char *const arguments[], char *const environment[]) {
    call c = {.way = BY_NAME, .path = name, .arguments = arguments};
    return start(&c, environment);
}

EXPORTED int execvp(const char *name, char *const arguments[]) { return execvpe(name, arguments, environ); }

EXPORTED int execveat(int folder, const char *path, char *const arguments[], char *const environment[], int flags) {
    call c = {.way = BY_DESCRIPTOR, .path = path, .arguments = arguments, .folder = folder, .flags = flags};
    return start(&c, environment);
}

/* As in the C library, a null environment is an error, although the kernel would accept it. */
EXPORTED int fexecve(int file, char *const arguments[], char *const environment[]) {
    if (file < 0 || !environment) {
        errno = EINVAL;
        return -1;
    }
    return execveat(file, "", arguments, environment, AT_EMPTY_PATH);
}

EXPORTED int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    call c = {SPAWN, path, 0, 0, arguments, pid, actions, attributes};
    return start(&c, environment);
}

EXPORTED int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    call c = {SPAWN_BY_NAME, name, 0, 0, arguments, pid, actions, attributes};
    return start(&c, environment);
}

/* The number of arguments, with the first one and the terminating null. */
static size_t counted(va_list more) {
    size_t count = 1;
    va_list again;
    va_copy(again, more);
    while (va_arg(again, char *))
        count++;
    va_end(again);
    return count + 1;
}

#define GATHER(first, last)            \
    va_list last;                      \
    va_start(last, first);             \
    size_t count = counted(last);      \
    char *arguments[count];            \
    arguments[0] = (char *)first;      \
    for (size_t i = 1; i < count; i++) \
    arguments[i] = va_arg(last, char *)

EXPORTED int execl(const char *path, const char *first, ...) {
    GATHER(first, more);
    va_end(more);
    return execve(path, arguments, environ);
}

EXPORTED int execlp(const char *name, const char *first, ...) {
    GATHER(first, more);
    va_end(more);
    return execvpe(name, arguments, environ);
}

EXPORTED int execle(const char *path, const char *first, ...) {
    GATHER(first, more);
    char *const *environment = va_arg(more, char *const *);
    va_end(more);
    return execve(path, arguments, environment);
}
