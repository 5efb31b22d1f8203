/* Threads allocate, grow, shrink and hand each other blocks of all sizes by the runtime's heap, whose functions
 * are called nw_… here, so that a sanitizer keeps its own: no two live blocks share a byte, what was written stays,
 * and each block is told of once at its beginning and once at its end. Ends with `N passed, M failed`. */
#define _GNU_SOURCE
#include "heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define STEPS 1500
#define HELD 24

void *nw_malloc(size_t);
void *nw_calloc(size_t, size_t);
void *nw_realloc(void *, size_t);
void nw_free(void *);
int nw_posix_memalign(void **, size_t, size_t);
size_t nw_malloc_usable_size(void *);

static _Atomic long allocated, freed, bad;
static void *_Atomic shared[HELD];

uint32_t nw_backtrace(uintptr_t caller, uintptr_t chain[NW_CHAIN]) { return chain[0] = caller, 1; }

static void note(const nw_allocation *object) {
    allocated++;
    bad += object->mapped < object->bytes || object->moved > object->mapped || object->chain[0] == 0;
}
static void forget(void *address, size_t mapped, int kept) {
    (void)kept;
    freed++;
    bad += mapped == 0 || !address;
}
static const nw_heap_hooks hooks = {.allocated = note, .freed = forget};

/* The first and the last word say how large the block is: found again whoever frees it. */
static void sign(char *block, size_t bytes) {
    memcpy(block, &bytes, sizeof bytes);
    memcpy(block + bytes - sizeof bytes, &bytes, sizeof bytes);
}
static void check(const char *block) {
    size_t bytes, last;
    memcpy(&bytes, block, sizeof bytes);
    memcpy(&last, block + bytes - sizeof bytes, sizeof last);
    bad += bytes != last || nw_malloc_usable_size((void *)block) < bytes || (bytes >= NW_LARGE) != nw_heap_owns(block);
}

static size_t draw(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (size_t)16 << ((*state >> 20) % 16) | (*state >> 8 & 0xff0);
}

static char *fresh(uint32_t *state, size_t bytes) {
    char *block = NULL;
    switch (*state >> 24 & 3) {
    case 0:
        block = nw_calloc(bytes, 1);
        bad += block && (block[0] | block[bytes - 1]) != 0;
        break;
    case 1: bad += nw_posix_memalign((void **)&block, 4096, bytes) != 0 || (uintptr_t)block % 4096 != 0; break;
    default: block = nw_malloc(bytes);
    }
    return block;
}

static char *grown(char *block, size_t bytes) {
    size_t old;
    memcpy(&old, block, sizeof old);
    char *moved = nw_realloc(block, bytes);
    size_t kept;
    memcpy(&kept, moved, sizeof kept);
    bad += kept != old;
    return moved;
}

static void *work(void *argument) {
    uint32_t state = (uint32_t)(uintptr_t)argument;
    for (int step = 0; step < STEPS; step++) {
        size_t bytes = draw(&state);
        char *block = fresh(&state, bytes);
        sign(block, bytes);
        if (state >> 28 & 1) {
            bytes = draw(&state);
            block = grown(block, bytes);
            sign(block, bytes);
        }
        char *other = atomic_exchange(&shared[state >> 10 & 15], block);
        if (other) {
            check(other);
            nw_free(other);
        }
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    int passed = 0, failed = 0;
    nw_heap_start(&hooks);
    for (uintptr_t t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, work, (void *)(t * 7919 + 1));
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int i = 0; i < HELD; i++)
        if (shared[i]) {
            check(shared[i]);
            nw_free(shared[i]);
        }
    nw_heap_stop();
#define CHECK(holds, ...) ((holds) ? (void)passed++ : (void)(failed++, printf("FAILED " __VA_ARGS__)))
    CHECK(bad == 0, "%ld blocks were not as they should be\n", (long)bad);
    CHECK(allocated > STEPS / 2, "only %ld large blocks\n", (long)allocated);
    CHECK(allocated == freed, "%ld large blocks began, %ld ended\n", (long)allocated, (long)freed);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
