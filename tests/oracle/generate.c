/* generate SEED: prints a C++ program (also C, where no exception is thrown) of random loop nests
 * over static arrays. It prints a checksum of everything it computed; all its accesses are in bounds
 * and nothing in it is undefined, so that every build of it must print the same.
 *
 * The kinds of loops and statements are those that a counting scheme can get wrong: bounds known and
 * unknown, zero and one trip, down-counting, triangular, wrapping inductions, early exits, calls that
 * do not return here, conditions, gathers, copies, atomics, packed and page-crossing elements, probes of hash
 * tables, chains of pointers, memory from the heap, containers of C++. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS = 20000, DEPTH = 3, SHARE = 64 };

typedef struct {
    char text[64]; /* an expression of type long */
    long low, high;
    bool steps; /* `continue` goes on with the next iteration */
} variable;

static const char *const arrays[] = {"bytes", "shorts", "words", "longs", "floats", "doubles"};
enum { ARRAYS = sizeof arrays / sizeof *arrays };

/* Of variables in an index; also known to a kernel as variables. */
static const long factors[] = {1, 1, 1, 2, 3, 7, 8, 64, 100, 512, 1000, -1, -1, -2, -8, -512};
enum { FACTORS = sizeof factors / sizeof *factors };

static uint64_t state;
static variable scope[DEPTH];
static int depth, names, indent;
static long budget;   /* iterations a kernel may still make */
static bool parallel; /* writes go to the iteration's own share of `shared` only */

/* ---- chance ---- */

static uint64_t next(void) {
    state += 0x9e3779b97f4a7c15ull;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static long below(long n) { return (long)(next() % (uint64_t)n); }

static bool chance(int percent) { return below(100) < percent; }

/* ---- writing ---- */

__attribute__((format(printf, 1, 2))) static void line(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%*s", 4 * indent, "");
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

/* A bound, known to the compiler or not: declared before the loop that has it. */
static const char *bound(char *into, int name, long value) {
    if (chance(60)) {
        sprintf(into, "n%d", name);
        line("const long n%d = opaque(%ld);", name, value);
    } else {
        sprintf(into, "%ldL", value);
    }
    return into;
}

/* An affine expression of the variables in scope, from 0 to `size` - 1. */
static const char *index_of(char *into, long size) {
    long low = 0, high = 0;
    char *at = into;
    for (int i = 0; i < depth; i++) {
        int which = (int)below(FACTORS);
        long factor = factors[which];
        long a = factor * scope[i].low, b = factor * scope[i].high;
        long lowest = a < b ? a : b, highest = a < b ? b : a;
        if (chance(25) || high + highest - low - lowest >= size)
            continue;
        low += lowest, high += highest;
        at += chance(85) ? sprintf(at, "%s * %ldL + ", scope[i].text, factor)
                         : sprintf(at, "%s * factor%d + ", scope[i].text, which);
    }
    sprintf(at, "%ldL", -low + below(size - (high - low)));
    return into;
}

/* Something to read. */
static const char *value(char *into) {
    char index[256];
    index_of(index, ELEMENTS);
    switch (below(6)) {
    case 0: sprintf(into, "%s[indices[%s]]", arrays[below(ARRAYS)], index); break;
    case 1: {
        bool big = chance(50);
        sprintf(into, "%s[%s].%s", big ? "wide" : "packed", index, big ? "at[1]" : chance(50) ? "a" : "b");
        break;
    }
    default: sprintf(into, "%s[%s]", arrays[below(ARRAYS)], index);
    }
    return into;
}

/* Something to write. */
static const char *target(char *into) {
    char index[256];
    if (parallel) {
        index_of(index, SHARE);
        sprintf(into, "shared[%s * %d + (%s) %% %d]", scope[0].text, SHARE, index, SHARE);
        return into;
    }
    index_of(index, ELEMENTS);
    switch (below(8)) {
    case 0: sprintf(into, "%s[indices[%s]]", arrays[below(ARRAYS)], index); break;
    case 1: sprintf(into, "packed[%s].%s", index, chance(50) ? "a" : "b"); break;
    case 2: sprintf(into, "wide[%s].at[%ld]", index, below(5)); break;
    case 3: sprintf(into, "*(volatile unsigned *)&words[%s]", index); break;
    default: sprintf(into, "%s[%s]", arrays[below(ARRAYS)], index);
    }
    return into;
}

/* ---- statements ---- */

static void assign(void) {
    char a[512], b[512], c[512];
    switch (below(4)) {
    case 0: line("%s = (unsigned char)7;", target(a)); break;
    case 1:
        line("{ double v = (double)%s + 0.5 * (double)%s; %s = (unsigned char)(long)clamp(v); }", value(a), value(b),
             target(c));
        break;
    default: line("%s += (unsigned char)(long)clamp((double)%s);", target(a), value(b));
    }
}

/* Easily vectorised. */
static void arithmetic(void) {
    static const char *const integers[] = {"bytes", "shorts", "words", "longs"};
    char a[512], b[256], c[256];
    const char *type = integers[below(4)];
    if (parallel)
        line("%s += doubles[%s] * 0.25;", target(a), index_of(b, ELEMENTS));
    else
        line("%s[%s] += %s[%s];", type, index_of(b, ELEMENTS), type, index_of(c, ELEMENTS));
}

static void condition(void) {
    char a[512];
    line("if ((long)clamp((double)%s) %% %ld == %ld) {", value(a), 2 + below(5), below(2));
    indent++;
    assign();
    indent--;
    line("}");
}

static void copy(void) {
    static const long lengths[] = {0, 1, 7, 8, 9, 16, 40, 128, 129, 1000, 5000};
    char a[256], b[256], n[64] = "";
    long bytes = lengths[below(sizeof lengths / sizeof *lengths)];
    if (parallel)
        return assign();
    sprintf(n, chance(50) ? "%ld" : "opaque(%ld)", bytes);
    index_of(a, ELEMENTS - 5000);
    switch (below(3)) {
    case 0:
        line("memcpy((char *)doubles + (%s), (char *)longs + (%s), (size_t)%s);", a, index_of(b, ELEMENTS - 5000), n);
        break;
    case 1: line("memmove(bytes + (%s), bytes + (%s), (size_t)%s);", a, index_of(b, ELEMENTS - 5000), n); break;
    default: line("memset((char *)words + (%s), 3, (size_t)%s);", a, n);
    }
}

static void atomic(void) {
    char a[256];
    index_of(a, ELEMENTS);
    if (chance(50))
        line("__atomic_fetch_add(&tallies[%s], 3u, __ATOMIC_RELAXED);", a);
    else
        line("{ unsigned long none = 0; __atomic_compare_exchange_n(&marks[%s], &none, 1ul, false, __ATOMIC_RELAXED, "
             "__ATOMIC_RELAXED); }",
             a);
}

static void local(void) {
    char a[512], b[256], c[256];
    long length = 1 + below(40);
    int name = names++;
    line("double local%d[%ld];", name, length);
    line("for (long k = 0; k < %ld; k++) local%d[k] = (double)k;", length, name);
    line("local%d[(%s)] += (double)%s;", name, index_of(b, length), value(a));
    line("%s += (unsigned char)(long)clamp(local%d[%s]);", target(a), name, index_of(c, length));
}

static void pointer_walk(void) {
    char a[256], n[64];
    long length = below(300), step = 1 + below(5);
    int name = names++;
    if (parallel || budget < length)
        return assign();
    budget -= length;
    index_of(a, ELEMENTS - length * step - 5);
    bound(n, name, length);
    line("for (unsigned *p%d = words + (%s), *end = p%d + %s * %ld; p%d != end; p%d += %ld)", name, a, name, n, step,
         name, name, step);
    line("    p%d[0] += p%d[%ld] * 3u + p%d[1];", name, name, below(5), name);
}

/* Out of the innermost loop, of the kernel, or of the program's control. */
static void leave(void) {
    char a[512];
    long rarely = 50 + below(200);
    if (depth == 0 || (parallel && depth == 1))
        return assign();
    line("if ((long)clamp((double)%s) %% %ld == 1)", value(a), rarely);
    if (scope[depth - 1].steps && chance(40))
        line("    continue;");
    else if (parallel || chance(50))
        line("    break;");
    else
        line("    %s;", chance(50) ? "return" : "goto out");
}

static void call(void) {
    char a[256];
    if (parallel)
        return assign();
    index_of(a, ELEMENTS - 1);
    switch (below(3)) {
    case 0:
        line("longs[%s] += 1;", a);
        line("may_leave();");
        line("longs[%s + 1] += 1;", a);
        break;
    case 1: line("longs[%s] += helper(%ld);", a, below(30)); break;
    default: line("guarded(%s);", a);
    }
}

/* Looks a key up in a hash table with open addressing, and adds it if it is not there. */
static void probe(void) {
    char a[256], b[512];
    int name = names++;
    if (parallel)
        return assign();
    index_of(a, ELEMENTS);
    line("{");
    line("    unsigned long key%d = longs[%s] %% 3000 + 1, slot%d = key%d * 2654435761u %% TABLE;", name, a, name,
         name);
    line("    while (keys[slot%d] != 0 && keys[slot%d] != key%d)", name, name, name);
    line("        slot%d = (slot%d + 1) %% TABLE;", name, name);
    line("    keys[slot%d] = key%d;", name, name);
    line("    counts[slot%d] += (unsigned char)(long)clamp((double)%s);", name, value(b));
    line("}");
}

/* Follows pointers, for a number of steps or until a node says so. */
static void chase(void) {
    char a[256], n[64];
    long length = below(200);
    int name = names++;
    if (parallel || budget < length)
        return assign();
    budget -= length;
    index_of(a, ELEMENTS);
    line("{");
    bound(n, name, length);
    line("long left%d = %s;", name, n);
    line("for (node *at%d = &nodes[%s], *first%d = at%d; at%d != NULL; at%d = at%d->%s) {", name, a, name, name, name,
         name, name, chance(60) ? "next" : "other");
    line("    at%d->seen += %ld;", name, 1 + below(3));
    line("    if (at%d->seen %% %ld == 0 || at%d - first%d == 77)", name, 50 + below(200), name, name);
    line("        break;");
    line("    if (--left%d < 0)", name);
    line("        break;");
    line("}");
    line("}");
}

/* An array on the heap, small or larger than a page, read and written by index and by pointer. */
static void on_the_heap(void) {
    static const long lengths[] = {1, 3, 17, 200, 600, 5000, 20000};
    char a[256], b[512];
    long length = lengths[below(sizeof lengths / sizeof *lengths)], step = 1 + below(7);
    int name = names++;
    if (parallel || budget < length / step)
        return assign();
    budget -= length / step;
    line("{");
    line("    unsigned *heap%d = (unsigned *)calloc((size_t)opaque(%ld), sizeof *heap%d);", name, length, name);
    line("    for (long k = 0; k < %ld; k += %ld)", length, step);
    line("        heap%d[k] += (unsigned)k + heap%d[(k * 7) %% %ld];", name, name, length);
    line("    heap%d[%s] += (unsigned char)(long)clamp((double)%s);", name, index_of(a, length), value(b));
    if (chance(40))
        line("    heap%d = (unsigned *)realloc(heap%d, (size_t)opaque(%ld) * sizeof *heap%d);", name, name, 2 * length,
             name);
    line("    longs[%ld] += heap%d[%ld];", below(ELEMENTS), name, below(length));
    line("    free(heap%d);", name);
    line("}");
}

/* What C++ programs are made of; nothing in C. */
static void container(void) {
    char a[256], b[512];
    int name = names++;
    long length = 1 + below(60);
    if (parallel || budget < 8 * length)
        return assign();
    budget -= 8 * length;
    printf("#ifdef __cplusplus\n");
    switch (below(5)) {
    case 0:
        line("{ std::vector<double> some%d; for (long k = 0; k < %ld; k++) some%d.push_back((double)k + floats[k]);",
             name, length, name);
        line("  doubles[%s] += some%d[%ld] + some%d.at(%ld); }", index_of(a, ELEMENTS), name, below(length), name,
             below(length));
        break;
    case 1:
        line("{ std::unordered_map<unsigned, long> some%d; for (long k = 0; k < %ld; k++) some%d[words[k] %% 97] += k;",
             name, length, name);
        line("  for (const auto &each : some%d) longs[%s] += (unsigned long)each.second; }", name,
             index_of(a, ELEMENTS));
        break;
    case 2:
        line("{ std::map<long, unsigned> some%d; for (long k = 0; k < %ld; k++) some%d[indices[k] %% 50] += words[k];",
             name, length, name);
        line("  words[%s] += some%d.begin()->second; }", index_of(a, ELEMENTS), name);
        break;
    case 3: {
        long from = below(ELEMENTS - length);
        line("std::sort(words + %ld, words + %ld);", from, from + length);
        line(
            "std::stable_sort(shorts + %ld, shorts + %ld, [](unsigned short x, unsigned short y) { return x %% 16 < y %% 16; });",
            from, from + length);
        break;
    }
    default:
        line(
            "{ std::unique_ptr<shape> some%d(make_shape(words[%s])); longs[%ld] += (unsigned long)(long)clamp(some%d->area((double)%s)); }",
            name, index_of(a, ELEMENTS), below(ELEMENTS), name, value(b));
    }
    printf("#endif\n");
}

static void loop(void);

static void statement(void) {
    static void (*const kinds[])(void) = {assign, assign, arithmetic, arithmetic,   arithmetic,  condition, condition,
                                          copy,   atomic, local,      pointer_walk, leave,       call,      call,
                                          probe,  probe,  chase,      chase,        on_the_heap, container, container};
    if (depth < DEPTH && chance(25))
        loop();
    else
        kinds[below(sizeof kinds / sizeof *kinds)]();
}

static void body(void) {
    indent++;
    if (depth < DEPTH && chance(50))
        loop();
    for (long n = 1 + below(3); n > 0; n--)
        statement();
    indent--;
}

/* ---- loops ---- */

static variable *declare(const char *text, long low, long high, bool steps) {
    variable *v = &scope[depth++];
    snprintf(v->text, sizeof v->text, "%s", text);
    v->low = low, v->high = high < low ? low : high, v->steps = steps;
    return v;
}

static void ascending(int name, long trips) {
    char v[64], n[64];
    long step = chance(70) ? 1 : 1 + below(9), from = below(20);
    const char *type = chance(70) ? "long" : "int";
    sprintf(v, "(long)i%d", name);
    bound(n, name, from + trips * step);
    line("for (%s i%d = %ld; i%d < %s; i%d += %ld) {", type, name, from, name, n, name, step);
    declare(v, from, from + (trips - 1) * step, true);
    body();
    line("}");
}

static void descending(int name, long trips) {
    char v[64], n[64];
    sprintf(v, "i%d", name);
    line("for (long i%d = %s - 1; i%d >= 0; i%d--) {", name, bound(n, name, trips), name, name);
    declare(v, 0, trips - 1, true);
    body();
    line("}");
}

static void triangular(int name, long trips) {
    char v[64], n[64];
    if (depth == 0 || scope[depth - 1].low < 0 || scope[depth - 1].high > 60)
        return ascending(name, trips);
    variable outer = scope[depth - 1];
    sprintf(v, "i%d", name);
    if (chance(50)) {
        line("for (long i%d = 0; i%d < %s; i%d++) {", name, name, outer.text, name);
        declare(v, 0, outer.high - 1, true);
    } else {
        bound(n, name, trips);
        line("for (long i%d = %s; i%d < %s; i%d++) {", name, outer.text, name, n, name);
        declare(v, outer.low, trips > outer.high ? trips - 1 : outer.high, true);
    }
    body();
    line("}");
}

/* The induction variable wraps on its way. */
static void wrapping(int name, long trips) {
    static const struct {
        const char *type;
        uint64_t top;
    } types[] = {{"unsigned char", 0xff}, {"unsigned short", 0xffff}, {"unsigned", 0xffffffff}};
    char v[64];
    int t = (int)below(3);
    long step = 1 + below(3);
    if (trips * step > 200)
        trips = 200 / step;
    uint64_t from = (types[t].top - (uint64_t)below(2 * trips * step + 1)) & types[t].top;
    uint64_t to = (from + (uint64_t)(trips * step)) & types[t].top;
    sprintf(v, "(long)(%s)(i%d - %luu)", types[t].type, name, (unsigned long)from);
    line("for (%s i%d = %luu; i%d != %luu; i%d = (%s)(i%d + %ld)) {", types[t].type, name, (unsigned long)from, name,
         (unsigned long)to, name, types[t].type, name, step);
    declare(v, 0, (trips - 1) * step, true);
    body();
    line("}");
}

static void at_the_end(int name, long trips) {
    char v[64], n[64];
    sprintf(v, "i%d", name);
    bound(n, name, trips);
    line("long i%d = 0;", name);
    line("do {");
    declare(v, 0, trips, false);
    body();
    line("} while (++i%d < %s);", name, n);
}

static void in_the_middle(int name, long trips) {
    char v[64], n[64];
    sprintf(v, "i%d", name);
    bound(n, name, trips);
    line("for (long i%d = 0;; i%d++) {", name, name);
    declare(v, 0, trips, true);
    indent++;
    assign();
    line("if (i%d >= %s)", name, n);
    line("    break;");
    indent--;
    body();
    line("}");
}

static void loop(void) {
    static void (*const kinds[])(int, long) = {ascending,  ascending, ascending,  descending,
                                               triangular, wrapping,  at_the_end, in_the_middle};
    static const long trips[] = {0, 1, 2, 3, 4, 5, 8, 13, 16, 33, 64, 100, 300, 1000};
    long n = trips[below(sizeof trips / sizeof *trips)];
    long saved = budget;
    if (n > budget)
        n = budget > 0 ? budget : 0;
    budget /= n + 1;
    line("{");
    indent++;
    kinds[below(sizeof kinds / sizeof *kinds)](names++, n);
    depth--;
    indent--;
    line("}");
    budget = saved / 2;
}

/* ---- kernels ---- */

static void kernel(int number) {
    parallel = chance(25);
    budget = 20000;
    line("%sstatic void kernel%d(void) {", chance(70) ? "__attribute__((noinline)) " : "", number);
    indent++;
    for (int i = 0; i < FACTORS; i++)
        line("const long factor%d = opaque(%ld);", i, factors[i]);
    if (parallel) {
        line("#pragma omp parallel for schedule(%s)", chance(50) ? "static" : "dynamic");
        line("for (long share = 0; share < %ld; share++) {", 1 + below(40));
        declare("share", 0, 40, true);
        budget /= 40;
        body();
        depth--;
        line("}");
    } else {
        loop();
        for (long n = below(3); n > 0; n--)
            statement();
    }
    indent--;
    if (!parallel) {
        line("    goto out;");
        line("out:");
        line("    return;");
    }
    line("}\n");
}

static const char prelude[] =
    "#ifdef __cplusplus\n#include <algorithm>\n#include <map>\n#include <memory>\n#include <unordered_map>\n#include <vector>\n#endif\n"
    "#include <math.h>\n#include <setjmp.h>\n#include <stdbool.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n"
    "#define N 20000\n"
    "typedef struct __attribute__((packed)) { char tag; double a; short c; unsigned b; } odd;\n"
    "typedef struct { unsigned at[5]; } five;\n"
    "static unsigned char bytes[N]; static unsigned short shorts[N]; static unsigned words[N];\n"
    "static unsigned long longs[N]; static float floats[N]; static double doubles[N];\n"
    "static odd packed[N]; static five wide[N];\n"
    "static int indices[N]; static unsigned tallies[N]; static unsigned long marks[N]; static double shared[64 * 64];\n"
    "enum { TABLE = 8192 };\n"
    "typedef struct node { struct node *next, *other; unsigned seen; char rest[44]; } node;\n"
    "static unsigned long keys[TABLE]; static unsigned counts[TABLE]; static node nodes[N];\n"
    "static volatile long zero;\n"
    "static jmp_buf back;\n"
    "static long fuse;\n\n"
    "static inline long opaque(long x) { return x + zero; }\n"
    "static inline double clamp(double x) { return x > 0 && x < 1e6 ? x : 0.0; }\n"
    "__attribute__((noinline)) static unsigned long helper(long n) {\n"
    "    unsigned long sum = 0;\n"
    "    for (long i = 0; i < n; i++) sum += longs[i * 3] + shorts[i];\n"
    "    return sum;\n}\n"
    "#ifdef __cplusplus\n"
    "__attribute__((noinline)) static void leave(void) { throw 1; }\n"
    "struct shape { virtual ~shape() {} virtual double area(double x) { return x; } };\n"
    "struct square : shape { double side = 2; double area(double x) override { side += 1; return side * x; } };\n"
    "struct many : shape { double at[600]; many() { for (double &each : at) each = 1; }\n"
    "    double area(double x) override { double sum = x; for (double each : at) sum += each; return sum; } };\n"
    "__attribute__((noinline)) static shape *make_shape(unsigned which) {\n"
    "    switch (which % 3) { case 0: return new shape; case 1: return new square; default: return new many; }\n}\n"
    "__attribute__((noinline)) static void guarded(long i) {\n"
    "    try { words[i] += 1; if (words[i] % 3 == 1) throw 2.0; words[i] += 2; }\n"
    "    catch (double) { words[i] += 5; }\n}\n"
    "#else\n"
    "__attribute__((noinline)) static void leave(void) { longjmp(back, 1); }\n"
    "__attribute__((noinline)) static void guarded(long i) { words[i] += 1; }\n"
    "#endif\n"
    "__attribute__((noinline)) static void may_leave(void) { if (--fuse == 0) leave(); }\n\n";

static const char check_sum[] =
    "static void print(void) {\n"
    "    unsigned long sum = 0;\n"
    "#define ADD(a) for (size_t i = 0; i < sizeof a; i++) sum = sum * 31 + ((unsigned char *)a)[i];\n"
    "    ADD(bytes) ADD(shorts) ADD(words) ADD(longs) ADD(floats) ADD(doubles) ADD(packed) ADD(wide)\n"
    "    ADD(tallies) ADD(marks) ADD(shared) ADD(keys) ADD(counts)\n"
    "    for (long i = 0; i < N; i++) sum = sum * 31 + nodes[i].seen;\n"
    "    printf(\"%lx\\n\", sum);\n}\n\n"
    "static void fill(void) {\n"
    "    for (long i = 0; i < N; i++) {\n"
    "        unsigned long r = (unsigned long)i * 2654435761u;\n"
    "        bytes[i] = (unsigned char)(r >> 3); shorts[i] = (unsigned short)(r >> 5); words[i] = (unsigned)r;\n"
    "        longs[i] = r; floats[i] = (float)(r % 1000); doubles[i] = (double)(r % 777); packed[i].a = (double)(r % 99);\n"
    "        packed[i].b = (unsigned)r; wide[i].at[1] = (unsigned)r; indices[i] = (int)(r % N);\n"
    "        nodes[i].next = &nodes[r % N]; nodes[i].other = i % 97 == 96 ? NULL : &nodes[i + 1 < N ? i + 1 : 0];\n"
    "    }\n}\n\n";

static void run_kernels(int kernels) {
    line("int main(void) {");
    line("    atexit(print);");
    line("    fill();");
    for (int k = 0; k < kernels; k++) {
        line("    fuse = %ld;", 1 + below(chance(50) ? 5 : 400));
        line("#ifdef __cplusplus");
        line("    try { kernel%d(); } catch (int) { puts(\"caught\"); }", k);
        line("#else");
        line("    if (setjmp(back) == 0) kernel%d(); else puts(\"back\");", k);
        line("#endif");
    }
    line("    %s(%ld);", chance(80) ? "exit" : "print(), fflush(stdout), _Exit", below(3));
    line("}");
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: generate SEED\n");
        return 2;
    }
    state = strtoull(argv[1], NULL, 10);
    int kernels = 4 + (int)below(5);
    fputs(prelude, stdout);
    for (int k = 0; k < kernels; k++)
        kernel(k);
    fputs(check_sum, stdout);
    run_kernels(kernels);
}
