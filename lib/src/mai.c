/* MAI's start, end and system functions. */
#include "mai_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Start and end ------------------------------------------------------------------------------ */

static unsigned long *numbers(const int *items, int count) {
    unsigned long *copy = malloc(sizeof *copy * (size_t)count);
    for (int i = 0; copy && i < count; i++)
        copy[i] = (unsigned long)items[i];
    return copy;
}

/* If the file is wrong, its message and status are kept, and all that this process may use is used. The message is
 * also printed, since programs written for the original MAI do not ask for a status. */
static int start(mai_state *s, const char *filename) {
    int status = mai_config_read(&s->config, filename), fatal = 0;
    if (status < 0 && filename) {
        fprintf(stderr, "mai_init: %s; all that this process may use is used\n", nw_last_error());
        fatal = mai_config_read(&s->config, NULL);
    } else {
        fatal = status;
    }
    if (fatal < 0)
        return fatal;
    s->nodes = numbers(s->config.nodes, s->config.node_count);
    s->cpus = numbers(s->config.cpus, s->config.cpu_count);
    if (!s->nodes || !s->cpus) {
        free(s->nodes);
        free(s->cpus);
        mai_config_free(&s->config);
        memset(s, 0, sizeof *s);
        return nw_fail(NW_NO_MEMORY, "no memory for MAI's configuration");
    }
    nw_set_threads(s->config.threads);
    s->started = 1;
    return status;
}

void mai_init(char filename[]) {
    mai_state *s = mai_lock();
    mai_leave(s->started ? nw_fail(NW_INVALID, "mai_init: MAI is started; mai_final ends it") : start(s, filename));
}

void mai_final(void) {
    mai_state *s = mai_enter("mai_final");
    if (!s)
        return;
    mai_arrays_free(s);
    free(s->threads);
    free(s->nodes);
    free(s->cpus);
    mai_config_free(&s->config);
    memset(s, 0, sizeof *s);
    nw_set_threads(0);
    mai_leave(NW_OK);
}

/* ---- What there is ------------------------------------------------------------------------------ */

int mai_get_num_nodes(void) {
    mai_state *s = mai_enter("mai_get_num_nodes");
    if (!s)
        return NW_NOT_STARTED;
    int count = s->config.node_count;
    mai_leave(NW_OK);
    return count;
}

int mai_get_num_threads(void) {
    mai_state *s = mai_enter("mai_get_num_threads");
    if (!s)
        return NW_NOT_STARTED;
    int count = s->config.threads;
    mai_leave(NW_OK);
    return count;
}

int mai_get_num_cpu(void) {
    mai_state *s = mai_enter("mai_get_num_cpu");
    if (!s)
        return NW_NOT_STARTED;
    int count = s->config.cpu_count;
    mai_leave(NW_OK);
    return count;
}

unsigned long *mai_get_nodes_id(void) {
    mai_state *s = mai_enter("mai_get_nodes_id");
    if (!s)
        return NULL;
    unsigned long *nodes = s->nodes;
    mai_leave(NW_OK);
    return nodes;
}

unsigned long *mai_get_cpus_id(void) {
    mai_state *s = mai_enter("mai_get_cpus_id");
    if (!s)
        return NULL;
    unsigned long *cpus = s->cpus;
    mai_leave(NW_OK);
    return cpus;
}

static void show_node(const mai_config *config, int node) {
    int shown = 0;
    printf("node %d:", node);
    for (int i = 0; i < config->cpu_count; i++)
        if (nw_cpu_node(config->cpus[i]) == node)
            printf("%s %d", shown++ ? "" : " cpus", config->cpus[i]);
    puts(shown ? "" : " no cpus");
}

void mai_show_nodes(void) {
    mai_state *s = mai_enter("mai_show_nodes");
    if (!s)
        return;
    for (int i = 0; i < s->config.node_count; i++)
        show_node(&s->config, s->config.nodes[i]);
    mai_leave(NW_OK);
}

void mai_show_cpus(void) {
    mai_state *s = mai_enter("mai_show_cpus");
    if (!s)
        return;
    for (int i = 0; i < s->config.cpu_count; i++)
        printf("cpu %d: node %d\n", s->config.cpus[i], nw_cpu_node(s->config.cpus[i]));
    mai_leave(NW_OK);
}
