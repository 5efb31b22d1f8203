/* Checks that say which law broke, and count. */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>

static int check_passed, check_failed;

/* Each place in the source that fails speaks once; repeated checks of one law count once. */
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

/* Cases that are the same in every run. */
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
