#define _GNU_SOURCE
#include "execute.h"

#include "../foreign.h"
#include "qemu.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEEPEST 4 /* scripts interpreted by scripts */
#define RAW "NODEWISE_RAW="
#define DESCRIPTORS "/proc/self/fd/"

static const char *preload;
static char plugin[4352]; /* its path and arguments */

static char head[256]; /* the file's beginning; static, as only one thread matters in a process that executes a file */

void nw_execute_prepare(const char *library, const char *arguments) {
    Dl_info self;
    preload = library;
    if (dladdr(plugin, &self) != 0)
        snprintf(plugin, sizeof plugin, "%s%s", self.dli_fname, arguments);
}

/* Reads the file's beginning into `head`, followed by zeros. */
static bool read_head(const char *path) {
    memset(head, 0, sizeof head);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool read_some = file >= 0 && read(file, head, sizeof head - 1) > 0;
    if (file >= 0)
        close(file);
    return read_some;
}

/* Whether `head` is an x86-64 program's. */
static bool is_program(void) {
    Elf64_Ehdr elf;
    memcpy(&elf, head, sizeof elf);
    return memcmp(elf.e_ident, ELFMAG, SELFMAG) == 0 && elf.e_machine == EM_X86_64 &&
           elf.e_ident[EI_CLASS] == ELFCLASS64;
}

/* Notes for the recorder that this program runs uncounted. */
static void tell_uncounted(const char *path) {
    const char *raw = getenv("NODEWISE_RAW");
    static char line[4352]; /* static for the same reason as `head` */
    if (raw == NULL)
        return;
    snprintf(line, sizeof line, "%s/uncounted", raw);
    int file = open(line, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int length = snprintf(line, sizeof line, "%s\n", path);
    if (file >= 0 && write(file, line, (size_t)length) != length)
        (void)0; /* only a note: failure is ignored */
    if (file >= 0)
        close(file);
}

typedef struct list {
    const char **entry;
    size_t count;
} list;

static void add(list *list, const char *text) { list->entry[list->count++] = text; }

static size_t length(char *const *texts) {
    size_t count = 0;
    while (texts != NULL && texts[count] != NULL)
        count++;
    return count;
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* Variables of the dynamic loader (LD_...) are passed to the program, not to QEMU. Ours are passed even if the
 * program has cleared its environment. */
static void split_environment(char *const *environment, list *emulator, list *own) {
    bool preloaded = false;
    for (size_t i = 0; i < length(environment); i++) {
        const char *variable = environment[i];
        preloaded |= begins(variable, "LD_PRELOAD=") && strstr(variable, preload) != NULL;
        if (begins(variable, "LD_")) {
            add(emulator, "-E");
            add(emulator, variable);
        } else if (!begins(variable, RAW) && !begins(variable, "NODEWISE_EMULATED=")) {
            add(own, variable);
        }
    }
    static char raw[4352], library[4352];
    snprintf(raw, sizeof raw, RAW "%s", getenv("NODEWISE_RAW"));
    add(own, raw);
    add(emulator, "-E");
    add(emulator, "NODEWISE_EMULATED=1");
    if (!preloaded) {
        snprintf(library, sizeof library, "LD_PRELOAD=%s", preload);
        add(emulator, "-E");
        add(emulator, library);
    }
}

/* `path` becomes the interpreter that the script in `head` names; false: it is no script. */
static bool interpreted(const char **path, list *before) {
    if (head[0] != '#' || head[1] != '!')
        return false;
    head[strcspn(head, "\n")] = 0;
    char *name = head + 2 + strspn(head + 2, " \t"), *end = name + strcspn(name, " \t");
    char *argument = end + strspn(end, " \t");
    for (char *last = argument + strlen(argument); last > argument && strchr(" \t\r", last[-1]) != NULL;)
        *--last = 0;
    *end = 0;
    /* In reverse order: what is added last comes first. */
    add(before, *path);
    if (*argument != 0)
        add(before, strdup(argument));
    *path = strdup(name);
    return true;
}

/* A name of the file that stays valid when the program's descriptors are closed. A file that has no name any more
 * keeps the one of its descriptor. */
static const char *name_of(int folder, const char *path) {
    static char at[4352], real[PATH_MAX];
    if (strcmp(path, "/proc/self/exe") == 0)
        return qemu_plugin_path_to_binary();
    if (folder != AT_FDCWD && path[0] != '/') {
        snprintf(at, sizeof at, DESCRIPTORS "%d%s%s", folder, *path == 0 ? "" : "/", path);
        path = at;
    }
    return begins(path, DESCRIPTORS) && realpath(path, real) != NULL ? real : path;
}

void nw_execute(int folder, const char *path, char *const *arguments, char *const *environment) {
    struct stat status;
    if (preload == NULL || getenv("NODEWISE_RAW") == NULL || path == NULL)
        return;
    path = name_of(folder, path);
    if (access(path, X_OK) != 0)
        return;
    const char *before_room[2 * DEEPEST], *file = path;
    list before = {before_room, 0};
    bool readable = !begins(path, DESCRIPTORS) && read_head(file);
    for (int depth = 0; readable && depth < DEEPEST && interpreted(&file, &before); depth++)
        readable = read_head(file);
    bool privileged = stat(file, &status) == 0 && status.st_mode & (S_ISUID | S_ISGID);
    if (!readable || privileged || !is_program() || !nw_takes_preload(file)) {
        tell_uncounted(path);
        return;
    }
    size_t count = length(arguments), most = count + 2 * length(environment) + 32;
    list command = {calloc(most, sizeof(char *)), 0}, own = {calloc(most, sizeof(char *)), 0};
    if (command.entry == NULL || own.entry == NULL)
        return;
    add(&command, "qemu-x86_64");
    add(&command, "-cpu");
    add(&command, "max");
    split_environment(environment, &command, &own);
    add(&command, "-plugin");
    add(&command, plugin);
    add(&command, "-0");
    add(&command, before.count > 0 || count == 0 ? file : arguments[0]);
    add(&command, file);
    while (before.count > 0)
        add(&command, before.entry[--before.count]);
    for (size_t i = 1; i < count; i++)
        add(&command, arguments[i]);
    execve("/proc/self/exe", (char *const *)command.entry, (char *const *)own.entry);
}
