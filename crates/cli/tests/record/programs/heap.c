/* The contracts of the malloc family around the size where allocations become separate. */
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#undef NDEBUG
#define LARGE (64u << 10)

static int is_filled(const unsigned char *at, size_t bytes, unsigned char with) {
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != with)
            return 0;
    return 1;
}

static void resizing(void) {
    static const size_t sizes[] = {1, 100, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE, 5u << 20, LARGE, 7, 9u << 20, 0};
    unsigned char *p = NULL;
    size_t before = 0;
    for (int i = 0; sizes[i] != 0; i++) {
        p = realloc(p, sizes[i]);
        assert(p != NULL && malloc_usable_size(p) >= sizes[i]);
        assert(is_filled(p, before < sizes[i] ? before : sizes[i], 0xa5));
        memset(p, 0xa5, sizes[i]);
        before = sizes[i];
    }
    free(p);
}

static void alignment(void) {
    for (size_t align = 16; align <= 8u << 20; align *= 2)
        for (size_t bytes = 10; bytes < 4u << 20; bytes *= 50) {
            void *p = NULL;
            assert(posix_memalign(&p, align, bytes) == 0 && (uintptr_t)p % align == 0);
            memset(p, 1, bytes);
            free(p);
            p = aligned_alloc(align, bytes);
            assert(p != NULL && (uintptr_t)p % align == 0);
            free(p);
            p = memalign(align, bytes);
            assert(p != NULL && (uintptr_t)p % align == 0);
            free(p);
        }
    void *p = NULL;
    assert(posix_memalign(&p, 3, LARGE) == EINVAL && posix_memalign(&p, 24, LARGE) == EINVAL);
    p = valloc(LARGE);
    assert((uintptr_t)p % 4096 == 0);
    free(p);
}

static void limits(void) {
    volatile size_t huge = SIZE_MAX / 2, three = 3;
    void *volatile none; /* or the compiler answers itself */
    errno = 0;
    none = malloc(huge);
    assert(none == NULL && errno == ENOMEM);
    none = calloc(huge, three);
    assert(none == NULL);
    none = malloc(huge * 2 + 1);
    assert(none == NULL);
    none = reallocarray(NULL, huge, three);
    assert(none == NULL);
    unsigned char *p = calloc(LARGE, 2);
    assert(is_filled(p, 2 * LARGE, 0));
    none = realloc(p, huge);
    assert(none == NULL);
    memset(p, 3, 2 * LARGE);
    errno = 77;
    free(p);
    assert(errno == 77);
    free(NULL);
    assert(malloc_usable_size(NULL) == 0);
}

static void pages(void) {
    char *a = malloc(LARGE), *b = malloc(LARGE);
    int separate = getenv("NODEWISE_RAW") != NULL;
    if (separate)
        assert((uintptr_t)a % 4096 == 0 && (uintptr_t)b % 4096 == 0);
    uintptr_t first = (uintptr_t)a;
    free(a);
    a = malloc(LARGE);
    if (separate)
        assert((uintptr_t)a != first);
    free(a);
    free(b);
}

/* What the program gave a block's pages, it gave to that block: the next one at its addresses is like new. */
static void fresh(void) {
    for (int step = 0; step < 3; step++) {
        unsigned char *p = aligned_alloc(4096, 16 * LARGE);
        memset(p, step, 16 * LARGE);
        pid_t child = fork();
        if (child == 0)
            _exit(p[5000] != step);
        int status = -1;
        waitpid(child, &status, 0);
        assert(status == 0);
        madvise(p, 16 * LARGE, MADV_DONTFORK);
        mprotect(p, 16 * LARGE, PROT_READ);
        free(p);
    }
}

int main(void) {
    if (getenv("NODEWISE_RAW") != NULL)
        fresh(); /* the C library's own would give them again as they are */
    resizing();
    alignment();
    limits();
    pages();
    puts("kept");
    return 0;
}
