/* Reads the plan: null-terminated `key:value`, in order; `run:` begins a run, `end:` ends it. */
#define _GNU_SOURCE
#include "guest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *value_of(const char *token, const char *key) {
    size_t length = strlen(key);
    return strncmp(token, key, length) == 0 && token[length] == ':' ? token + length + 1 : NULL;
}

static const char *text_of_plan(uint64_t *bytes) {
    struct stat status;
    int file = open("/lab/plan", O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0 || status.st_size == 0)
        nw_fail("/lab/plan is missing");
    char *text = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    if (text == MAP_FAILED || text[status.st_size - 1] != 0)
        nw_fail("/lab/plan is damaged");
    *bytes = (uint64_t)status.st_size;
    return text;
}

static void *zeroed(size_t count, size_t size) {
    void *at = calloc(count, size);
    if (!at)
        nw_fail("no memory for the plan");
    return at;
}

static void add(char **list, size_t *count, const char *value) {
    if (*count + 1 >= NW_ARGUMENTS)
        nw_fail("more than %d arguments or variables", NW_ARGUMENTS);
    list[(*count)++] = (char *)(uintptr_t)value;
}

static int is_set(char **environment, const char *assignment) {
    size_t name = strcspn(assignment, "=") + 1;
    for (; *environment; environment++)
        if (strncmp(*environment, assignment, name) == 0)
            return 1;
    return 0;
}

/* OpenMP threads that spin while they wait would make most of the accesses that are counted. */
static void wait_passively(char **environment, size_t count) {
    static const char *const passive[] = {"OMP_WAIT_POLICY=passive", "GOMP_SPINCOUNT=0", "KMP_BLOCKTIME=0"};
    for (unsigned i = 0; i < sizeof passive / sizeof *passive; i++)
        if (!is_set(environment, passive[i]))
            add(environment, &count, passive[i]);
}

static nw_run *open_run(nw_plan *plan) {
    if (plan->runs == NW_RUNS)
        nw_fail("more than %d runs", NW_RUNS);
    nw_run *run = &plan->run[plan->runs++];
    run->arguments = zeroed(NW_ARGUMENTS, sizeof *run->arguments);
    return run;
}

static void bring(nw_plan *plan, const char *path) {
    if (plan->brought == NW_BROUGHT)
        nw_fail("more than %d files to bring", NW_BROUGHT);
    plan->bring[plan->brought++] = path;
}

static void read_token(nw_plan *plan, const char *token, size_t *variables, size_t *arguments) {
    const char *value;
    nw_run *run = plan->runs ? &plan->run[plan->runs - 1] : NULL;
    if ((value = value_of(token, "env")))
        add(plan->environment, variables, value);
    else if ((value = value_of(token, "cwd")))
        plan->folder = value;
    else if ((value = value_of(token, "stdin")))
        plan->input = value;
    else if ((value = value_of(token, "bring")))
        bring(plan, value);
    else if ((value = value_of(token, "slice")))
        plan->slice_ms = atoi(value);
    else if ((value = value_of(token, "capture")))
        plan->capture = atoi(value);
    else if (value_of(token, "run")) {
        open_run(plan);
        *arguments = 0;
    } else if (run && (value = value_of(token, "balancing")))
        run->balancing = atoi(value);
    else if (run && (value = value_of(token, "arg")))
        add(run->arguments, arguments, value);
    else if (!run || !value_of(token, "end"))
        nw_fail("/lab/plan: unknown `%.64s`", token);
}

nw_plan *nw_plan_read(void) {
    uint64_t bytes;
    const char *text = text_of_plan(&bytes);
    nw_plan *plan = zeroed(1, sizeof *plan);
    size_t variables = 0, arguments = 0;
    plan->environment = zeroed(NW_ARGUMENTS + 4, sizeof *plan->environment);
    plan->folder = "/";
    plan->input = "/dev/null";
    for (const char *at = text; at < text + bytes; at += strlen(at) + 1)
        read_token(plan, at, &variables, &arguments);
    wait_passively(plan->environment, variables);
    return plan;
}
