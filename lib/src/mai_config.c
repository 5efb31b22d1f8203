/* MAI's configuration: which nodes, CPUs and how many threads. The file's format is in docs/mai.md. */
#include "mai_state.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_THREADS 65536
enum { LINE_BYTES = 65536 };

/* The numbers that a keyword of the file sets. */
typedef struct list {
    int given, count, *items;
} list;

typedef struct reader {
    const char *filename;
    int line;
    list nodes, cpus, threads;
} reader;

/* ---- Numbers ------------------------------------------------------------------------------------ */

static int contains(const int *items, int count, int item) {
    for (int i = 0; i < count; i++)
        if (items[i] == item)
            return 1;
    return 0;
}

static int append(list *numbers, int number) {
    int *items = realloc(numbers->items, sizeof *items * ((size_t)numbers->count + 1));
    if (!items)
        return nw_fail(NW_NO_MEMORY, "no memory for MAI's configuration");
    items[numbers->count++] = number;
    numbers->items = items;
    return NW_OK;
}

static int copy(list *numbers, const int *items, int count) {
    for (int i = 0; i < count; i++)
        if (append(numbers, items[i]) < 0)
            return NW_NO_MEMORY;
    return NW_OK;
}

/* One number of a line, checked. */
static int accept(reader *r, list *numbers, const char *word, long number) {
    const nw_machine *machine = nw_machine_now();
    if (numbers == &r->threads) {
        if (number < 1 || number > MOST_THREADS)
            return nw_fail(NW_INVALID, "%s:%d: threads: %ld: give a number from 1 to %d", r->filename, r->line, number,
                           MOST_THREADS);
        if (numbers->count)
            return nw_fail(NW_INVALID, "%s:%d: threads: give one number", r->filename, r->line);
    } else {
        int node = numbers == &r->nodes;
        if (node ? !nw_machine_has_node(machine, (int)number)
                 : !contains(machine->cpus, machine->cpu_count, (int)number))
            return nw_fail(NW_INVALID, "%s:%d: %s: this process may not use %s %ld", r->filename, r->line, word,
                           node ? "node" : "CPU", number);
        if (contains(numbers->items, numbers->count, (int)number))
            return nw_fail(NW_INVALID, "%s:%d: %s: %ld is there twice", r->filename, r->line, word, number);
    }
    return append(numbers, (int)number);
}

/* ---- Lines -------------------------------------------------------------------------------------- */

/* Reads a number at `*text`, and moves `*text` behind it. Negative if there is none that fits an int. */
static long number_at(char **text) {
    if (**text < '0' || **text > '9')
        return -1;
    errno = 0;
    long number = strtol(*text, text, 10);
    return errno || number > INT_MAX ? -1 : number;
}

/* `0 2-5,7`: numbers and ranges between blanks or commas. */
static int read_list(reader *r, list *numbers, const char *word, char *text) {
    static const char between[] = " \t,";
    for (text += strspn(text, between); *text; text += strspn(text, between)) {
        char *item = text;
        int length = (int)strcspn(text, between);
        long first = number_at(&text), last = first;
        if (first >= 0 && *text == '-') {
            text++;
            last = number_at(&text);
        }
        if (first < 0 || last < first || text != item + length)
            return nw_fail(NW_INVALID, "%s:%d: %s: `%.*s` is no number or range such as 0-3", r->filename, r->line,
                           word, length > 40 ? 40 : length, item);
        for (long number = first; number <= last; number++) {
            int status = accept(r, numbers, word, number);
            if (status < 0)
                return status;
        }
    }
    if (!numbers->count)
        return nw_fail(NW_INVALID, "%s:%d: %s: no number follows", r->filename, r->line, word);
    return NW_OK;
}

static int read_line(reader *r, char *text) {
    text[strcspn(text, "#\r\n")] = 0;
    text += strspn(text, " \t");
    if (!*text)
        return NW_OK;
    size_t length = strcspn(text, " \t");
    char *rest = text + length + (text[length] != 0);
    text[length] = 0;
    list *numbers = !strcmp(text, "nodes")     ? &r->nodes
                    : !strcmp(text, "cpus")    ? &r->cpus
                    : !strcmp(text, "threads") ? &r->threads
                                               : NULL;
    if (!numbers)
        return nw_fail(NW_INVALID, "%s:%d: `%.40s` is neither nodes, cpus nor threads", r->filename, r->line, text);
    if (numbers->given++)
        return nw_fail(NW_INVALID, "%s:%d: %s are set twice", r->filename, r->line, text);
    return read_list(r, numbers, text, rest);
}

/* Reads the next line, without its end. Returns 1, 0 at the end of the file, or NW_INVALID if the line has more than
 * `room` bytes: a line of a device may never end. */
static int next_line(const reader *r, FILE *file, char *line, size_t room) {
    size_t length = 0;
    int byte;
    while ((byte = getc(file)) != EOF && byte != '\n') {
        if (length == room)
            return nw_fail(NW_INVALID, "%s:%d: line too long: give at most %zu bytes", r->filename, r->line, room);
        line[length++] = (char)byte;
    }
    line[length] = 0;
    return byte != EOF || length > 0;
}

static int read_file(reader *r) {
    FILE *file = fopen(r->filename, "re");
    if (!file)
        return nw_fail(NW_INVALID, "%s: %s", r->filename, strerror(errno));
    char *line = malloc(LINE_BYTES + 1);
    int status = line ? NW_OK : nw_fail(NW_NO_MEMORY, "no memory for MAI's configuration"), more = 1;
    errno = 0;
    while (status == NW_OK && more) {
        r->line++;
        more = next_line(r, file, line, LINE_BYTES);
        status = more > 0 ? read_line(r, line) : more;
    }
    if (status == NW_OK && ferror(file))
        status = nw_fail(NW_INVALID, "%s: %s", r->filename, strerror(errno));
    free(line);
    fclose(file);
    return status;
}

/* ---- What the file leaves open ------------------------------------------------------------------ */

/* CPUs of a list on a node. */
static int cpus_on(const list *cpus, int node) {
    int count = 0;
    for (int i = 0; i < cpus->count; i++)
        count += nw_cpu_node(cpus->items[i]) == node;
    return count;
}

/* The CPUs, if the file names none: those of the named nodes, in nw_cpus' order, or all if these have none. */
static int complete_cpus(reader *r, const nw_machine *machine) {
    for (int i = 0; i < machine->cpu_count; i++)
        if (!r->nodes.given || contains(r->nodes.items, r->nodes.count, nw_cpu_node(machine->cpus[i])))
            if (append(&r->cpus, machine->cpus[i]) < 0)
                return NW_NO_MEMORY;
    return r->cpus.count ? NW_OK : copy(&r->cpus, machine->cpus, machine->cpu_count);
}

/* The nodes, if the file names none: those of the named CPUs, ascending, or all if these have no memory. */
static int complete_nodes(reader *r, const nw_machine *machine) {
    for (int i = 0; i < machine->node_count; i++) {
        int used = !r->cpus.given || cpus_on(&r->cpus, machine->nodes[i]);
        if (used && append(&r->nodes, machine->nodes[i]) < 0)
            return NW_NO_MEMORY;
    }
    return r->nodes.count ? NW_OK : copy(&r->nodes, machine->nodes, machine->node_count);
}

/* Nodes with memory of a list's CPUs, ascending. */
static int nodes_of(const list *cpus, list *nodes) {
    const nw_machine *machine = nw_machine_now();
    for (int i = 0; i < machine->node_count; i++)
        if (cpus_on(cpus, machine->nodes[i]) && append(nodes, machine->nodes[i]) < 0)
            return NW_NO_MEMORY;
    return NW_OK;
}

/* A thread's CPU if the file lists none: threads are distributed evenly over the nodes, as by nw_bind_thread. */
static int even_cpu(const list *cpus, const list *nodes, long thread, long threads) {
    if (!nodes->count)
        return cpus->items[thread % cpus->count];
    long at = thread * nodes->count / threads, first = (at * threads + nodes->count - 1) / nodes->count;
    long rank = (thread - first) % cpus_on(cpus, nodes->items[at]);
    for (int i = 0; i < cpus->count; i++)
        if (nw_cpu_node(cpus->items[i]) == nodes->items[at] && rank-- == 0)
            return cpus->items[i];
    return cpus->items[0];
}

static int assign_cpus(const reader *r, int threads, int **thread_cpus) {
    list nodes = {0};
    *thread_cpus = malloc(sizeof **thread_cpus * (size_t)threads);
    if (!*thread_cpus || nodes_of(&r->cpus, &nodes) < 0) {
        free(*thread_cpus);
        free(nodes.items);
        return nw_fail(NW_NO_MEMORY, "no memory for MAI's configuration");
    }
    for (int thread = 0; thread < threads; thread++)
        (*thread_cpus)[thread] = r->cpus.given ? r->cpus.items[thread % r->cpus.count]
                                               : even_cpu(&r->cpus, &nodes, thread, threads);
    free(nodes.items);
    return NW_OK;
}

/* OMP_NUM_THREADS takes precedence over the number of CPUs, as without a file. */
static int default_threads(const reader *r) {
    return (r->cpus.given || r->nodes.given) && !getenv("OMP_NUM_THREADS") ? r->cpus.count : nw_get_threads();
}

static int complete(reader *r, mai_config *config) {
    const nw_machine *machine = nw_machine_now();
    int status = r->cpus.given ? NW_OK : complete_cpus(r, machine);
    if (status == NW_OK && !r->nodes.given)
        status = complete_nodes(r, machine);
    if (status < 0)
        return status;
    config->threads = r->threads.count ? r->threads.items[0] : default_threads(r);
    status = assign_cpus(r, config->threads, &config->thread_cpus);
    if (status < 0)
        return status;
    config->nodes = r->nodes.items;
    config->node_count = r->nodes.count;
    config->cpus = r->cpus.items;
    config->cpu_count = r->cpus.count;
    return NW_OK;
}

int mai_config_read(mai_config *config, const char *filename) {
    reader r = {.filename = filename};
    memset(config, 0, sizeof *config);
    int status = filename ? read_file(&r) : NW_OK;
    if (status == NW_OK)
        status = complete(&r, config);
    if (status < 0) {
        free(r.nodes.items);
        free(r.cpus.items);
    }
    free(r.threads.items);
    return status;
}

void mai_config_free(mai_config *config) {
    free(config->nodes);
    free(config->cpus);
    free(config->thread_cpus);
    memset(config, 0, sizeof *config);
}
