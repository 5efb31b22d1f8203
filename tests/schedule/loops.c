/* Loops of each kind, and who did which iteration: a line for each with its name, in how many runs of consecutive iterations
 * it was dealt, and a sum that must not depend on that. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4000 };
static int who[N];

/* Work that differs, so that dynamic schedules give out pieces in turn. */
static double work(long i) {
    volatile double x = (double)i;
    for (long j = 0; j < 200 + i % 7 * 300; j++)
        x = x * 0.5 + 1;
    return x;
}

static int done(long i) {
    who[i] = omp_get_thread_num();
    work(i);
    return (int)i;
}

static void say(const char *name, long sum) {
    int runs = 1;
    for (int i = 1; i < N; i++)
        runs += who[i] != who[i - 1];
    printf("%s %d %ld\n", name, runs, sum);
}

int main(void) {
    long sum = 0, last = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
    for (int i = 0; i < N; i++)
        sum += done(i);
    say("dynamic", sum), sum = 0;
#pragma omp parallel for schedule(dynamic, 7) reduction(+ : sum) lastprivate(last)
    for (long i = N - 1; i >= 0; i--)
        sum += done(i), last = i;
    say("backwards", sum + last), sum = 0;
#pragma omp parallel for schedule(guided, 3) reduction(+ : sum)
    for (unsigned i = 0; i < N; i++)
        sum += done(i);
    say("guided", sum), sum = 0;
#pragma omp parallel reduction(+ : sum)
    for (int round = 0; round < 3; round++) {
#pragma omp for schedule(monotonic : dynamic, 2)
        for (unsigned long long i = 0; i < N; i++)
            sum += done((long)i);
#pragma omp for schedule(nonmonotonic : guided) nowait
        for (unsigned long long i = N; i > 0; i--)
            sum += done((long)i - 1);
#pragma omp barrier
    }
    say("in-a-team", sum), sum = 0;
#pragma omp parallel for schedule(dynamic) collapse(2) reduction(+ : sum)
    for (int a = 0; a < N / 50; a++)
        for (int b = 0; b < 50; b++)
            sum += done(a * 50 + b);
    say("collapsed", sum), sum = 0;
#pragma omp parallel for schedule(runtime) reduction(+ : sum)
    for (int i = 0; i < N; i++)
        sum += done(i);
    say("runtime", sum), sum = 0;
#pragma omp parallel for schedule(static, 8) reduction(+ : sum)
    for (int i = 0; i < N; i++)
        sum += done(i);
    say("static-8", sum), sum = 0;
#pragma omp parallel for schedule(dynamic, 4) ordered
    for (int i = 0; i < N; i++) {
        done(i);
#pragma omp ordered
        sum = sum * 31 % 1000003 + i;
    }
    say("ordered", sum), sum = 0;
#pragma omp parallel for schedule(dynamic, 4) ordered(1)
    for (int i = 0; i < N; i++) {
        done(i);
#pragma omp ordered depend(sink : i - 1)
        sum = sum * 31 % 1000003 + i;
#pragma omp ordered depend(source)
    }
    say("doacross", sum), sum = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < N; i += 10)
#pragma omp task
        for (int j = i; j < i + 10; j++)
            done(j);
    say("tasks", sum);
}
