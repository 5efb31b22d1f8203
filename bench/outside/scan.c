// Threads read or write parts of one array: dirtest, fio's random reads, the inverted lists of faiss and MemA-Bench's
// accesses, as bench/outside/programs.py calls it.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, PAGE = 4096 };

static size_t number(int argc, char **argv, const char *name, size_t otherwise) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return strtoull(argv[i + 1], NULL, 10);
    return otherwise;
}

static const char *word(int argc, char **argv, const char *name, const char *otherwise) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return otherwise;
}

// One store a page: placed, but hardly any traffic.
static void touch(char *array, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PAGE)
        array[at] = 1;
}

static size_t draw(size_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

// One load a line, as dirtest.
static size_t each_line(const char *from, size_t bytes) {
    size_t sum = 0;
    for (size_t at = 0; at < bytes; at += LINE)
        sum += *(const volatile size_t *)(from + at);
    return sum;
}

// All of it into a small buffer, as an engine that copies blocks out of a mapping.
static size_t copied(const char *from, size_t bytes) {
    size_t buffer[PAGE / sizeof(size_t)];
    for (size_t at = 0; at < bytes; at += PAGE) {
        size_t some = bytes - at < PAGE ? bytes - at : PAGE;
        for (size_t i = 0; i < some / sizeof(size_t); i++)
            buffer[i] = ((const size_t *)(from + at))[i];
        __asm__ volatile("" : : "r"(buffer) : "memory");
    }
    return buffer[0];
}

// The squared distance of each vector to the query, as faiss scans an inverted list.
static size_t distances(const char *from, size_t bytes, const float *query) {
    enum { DIMENSIONS = 960 };
    float nearest = 1e30f;
    for (size_t at = 0; at + DIMENSIONS * sizeof(float) <= bytes; at += DIMENSIONS * sizeof(float)) {
        const float *vector = (const float *)(from + at);
        float parts[16] = {0};
        for (int i = 0; i < DIMENSIONS; i += 16)
            for (int k = 0; k < 16; k++)
                parts[k] += (vector[i + k] - query[i + k]) * (vector[i + k] - query[i + k]);
        float sum = 0;
        for (int k = 0; k < 16; k++)
            sum += parts[k];
        if (sum < nearest)
            nearest = sum;
    }
    return (size_t)nearest;
}

static void written(char *to, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof(size_t); i++)
        ((size_t *)to)[i] = i;
}

int main(int argc, char **argv) {
    size_t bytes = number(argc, argv, "--size", 256) << 20, work = number(argc, argv, "--work", 64) << 20;
    size_t chunk = number(argc, argv, "--chunk", 4096);
    int random = strcmp(word(argc, argv, "--order", "sequential"), "random") == 0;
    const char *op = word(argc, argv, "--op", "read"), *window = word(argc, argv, "--window", "whole");
    char *array = aligned_alloc(PAGE, bytes);
    if (!array)
        return 1;
    touch(array, bytes);
    size_t sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        size_t me = omp_get_thread_num(), all = omp_get_num_threads(), span = bytes, base = 0;
        if (strcmp(window, "own") == 0)
            span = bytes / all / PAGE * PAGE, base = me * span;
        if (strcmp(window, "disjoint") == 0)
            span = bytes / 2, base = me < all / 2 ? 0 : span;
        if (strcmp(window, "shared") == 0)
            span = bytes / 2;
        size_t places = span / chunk, state = 88172645463325252u + 7919 * me;
        // Threads that read the same window begin apart.
        size_t at = strcmp(window, "own") == 0 ? 0 : places * me / all;
        float query[960];
        for (int i = 0; i < 960; i++)
            query[i] = (float)(me + i);
        for (size_t done = 0; done < work; done += chunk) {
            if (random)
                at = draw(&state) % places;
            char *here = array + base + at * chunk;
            if (op[0] == 'l')
                sum += each_line(here, chunk);
            else if (op[0] == 'd')
                sum += distances(here, chunk, query);
            else if (op[0] == 'w')
                written(here, chunk);
            else
                sum += copied(here, chunk);
            if (++at == places)
                at = 0;
        }
    }
    printf("%zu\n", sum & 1);
    free(array);
    return 0;
}
