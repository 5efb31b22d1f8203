/* Checks that are counted, and report what failed. */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>

static int check_passed, check_failed;

/* Each CHECK in the source counts once and reports one failure at most, however often it is evaluated. */
#define CHECK(holds, ...)                                             \
    do {                                                              \
        static int seen_, broken_;                                    \
        int holds_ = (holds);                                         \
        check_passed += !seen_ && holds_;                             \
        if (!holds_ && !broken_) {                                    \
            check_passed -= seen_;                                    \
            check_failed++;                                           \
            printf("FAILED %s:%d: %s: ", __FILE__, __LINE__, #holds); \
            printf(__VA_ARGS__);                                      \
            printf("\n");                                             \
        }                                                             \
        broken_ |= !holds_;                                           \
        seen_ = 1;                                                    \
    } while (0)

static inline int check_end(void) {
    printf("%d passed, %d failed\n", check_passed, check_failed);
    return check_failed || !check_passed;
}

/* Pseudo-random cases, the same in every run. */
static inline uint64_t check_random(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
static inline long check_between(long least, long most) {
    return least + (long)(check_random() % ((uint64_t)(most - least) + 1));
}

#endif
