/* The guard: a write to an array that has copies is found, reported in one line, and carried out; the copies stay for
 * those who hold them; faults that are not the guard's do what they did without it. On a simulated machine of two
 * nodes, or (NODEWISE_PRETEND) where there are no copies. Each scene has a process of its own, since a process has one
 * handler. */
#define _GNU_SOURCE
#include "check.h"
#include "nodewise.h"
#include "simulated.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define THREADS 8

/* Sanitizers have handlers of their own, so that nothing ends by a signal. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HANDLED_BEFORE 1
#else
#define HANDLED_BEFORE 0
#endif

static size_t page;
static int copies_exist; /* on this machine */

/* ---- What is printed on standard error ------------------------------------------------------------ */

static int printed = -1;

static void listen(void) {
    printed = memfd_create("printed", MFD_CLOEXEC);
    /* Threads that write to it at once would overwrite each other's lines: it has no lock for its position. */
    CHECK(printed >= 0 && fcntl(printed, F_SETFL, O_APPEND) == 0, "no file for what is printed");
    CHECK(dup2(printed, STDERR_FILENO) == STDERR_FILENO, "%s", strerror(errno));
}

static const char *all_printed(void) {
    static char text[8192];
    ssize_t got = pread(printed, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = 0;
    return text;
}

static int lines(void) {
    int count = 0;
    for (const char *at = all_printed(); *at; at++)
        count += *at == '\n';
    return count;
}

static unsigned char pattern(size_t at) { return (unsigned char)(at * 2654435761u >> 24 | 1); }

static char *new_array(size_t bytes) {
    char *array = nw_alloc_1d(bytes, 1);
    for (size_t i = 0; i < bytes; i++)
        array[i] = (char)pattern(i);
    return array;
}

static int intact(const char *bytes, size_t count, size_t except) {
    for (size_t i = 0; i < count; i++)
        if (i != except && (unsigned char)bytes[i] != pattern(i))
            return 0;
    return 1;
}

static void replicate(void *array) {
    int status = nw_replicate(array);
    CHECK(status == (copies_exist ? NW_OK : NW_NOT_DONE), "%d, %s", status, nw_last_error());
    CHECK((nw_nearest(array) != array) == copies_exist, "copies are used");
}

/* ---- Scenes ---------------------------------------------------------------------------------------- */

static void a_write(void) {
    size_t bytes = 4 * page;
    char *array = new_array(bytes), wanted[128];
    nw_copies copies;
    listen();
    replicate(array);
    const char *copy = nw_nearest(array);
    CHECK(nw_check_copies(array) == (copies_exist ? NW_OK : NW_NOT_DONE) && lines() == 0, "%s%s", nw_last_error(),
          all_printed());
    errno = 77;
    ((volatile char *)array)[page + 904] = 5;
    CHECK(errno == 77 && array[page + 904] == 5 && intact(array, bytes, page + 904), "the write was not carried out");
    snprintf(wanted, sizeof wanted, "nodewise: the array at %p (%zu bytes) was written to at byte %zu (%p) after",
             (void *)array, bytes, page + 904, (void *)(array + page + 904));
    CHECK(lines() == 1 && strstr(all_printed(), wanted), "\"%s\" is not \"%s\"", all_printed(), wanted);
#if defined(__x86_64__) || defined(__aarch64__)
    CHECK(strstr(all_printed(), "by the instruction at 0x") && strstr(all_printed(), " (guard+0x"), "%s",
          all_printed());
#endif
    CHECK(nw_nearest(array) == array, "the copies are used");
    CHECK(copy == array || intact(copy, bytes, SIZE_MAX), "the copy that a thread holds");
    snprintf(wanted, sizeof wanted, "at %p was written to, first at byte %zu,", (void *)array, page + 904);
    CHECK(nw_check_copies(array) == NW_STALE && strstr(nw_last_error(), wanted), "%s", nw_last_error());
    CHECK(nw_copies_of(array, &copies, NULL, 0) == NW_OK && copies.count == 0 && copies.bytes == 0, "%d", copies.count);
    CHECK(copies.kept_bytes == (copies_exist ? 8 * page : 0), "%zu bytes kept", copies.kept_bytes);
    for (size_t i = 0; i < bytes; i++)
        array[i] = (char)pattern(i);
    CHECK(lines() == 1, "%s", all_printed());
    /* Copied anew, it is guarded anew. */
    replicate(array);
    CHECK(copy == array || nw_nearest(array) != copy, "the old copy");
    array[0] = 3;
    CHECK(lines() == 2 && array[0] == 3 && nw_nearest(array) == array, "%s", all_printed());
    replicate(array);
    CHECK(nw_drop_copies(array) == NW_OK && nw_copies_of(array, &copies, NULL, 0) == NW_OK && copies.kept_bytes == 0,
          "%s", nw_last_error());
    array[1] = 3;
    replicate(array);
    close(STDERR_FILENO);
    errno = 77;
    ((volatile char *)array)[2] = 3;
    CHECK(errno == 77 && array[2] == 3, "errno %d after a report that cannot be printed", errno);
    CHECK(lines() == 2 && nw_free(array) == NW_OK, "%s", all_printed());
}

/* Copies are made anew while entries of other arrays become free, before and after the array's own. */
static void again(void) {
    listen();
    for (int first = 0; first < 2; first++) {
        char *arrays[] = {new_array(page), new_array(page), new_array(page)};
        for (int i = 0; i < 3; i++)
            replicate(arrays[i]);
        int before = lines();
        for (int round = 0; round < 3; round++) {
            ((volatile char *)arrays[1])[round] = 1;
            CHECK(lines() == before + round + 1 && nw_nearest(arrays[1]) == arrays[1], "%s", all_printed());
            if (round < 2)
                nw_free(arrays[round == first ? 0 : 2]);
            replicate(arrays[1]);
        }
        CHECK(nw_free(arrays[1]) == NW_OK, "%s", nw_last_error());
    }
}

/* The array is written to between copying and protecting, as by another thread: the copies are not used. */
static char *meanwhile;
static void write_meanwhile(void) {
    if (meanwhile)
        *meanwhile = 1;
    meanwhile = NULL;
}

static void while_copying(void) {
    char *array = new_array(page);
    CHECK(array != NULL, "%s", nw_last_error());
    if (!copies_exist)
        return;
    listen();
    before_counting = write_meanwhile; /* the copies' pages, when they are made */
    meanwhile = array + 40;
    CHECK(nw_replicate(array) == NW_STALE && strstr(nw_last_error(), "from byte 40 on"), "%s", nw_last_error());
    CHECK(nw_nearest(array) == array && nw_check_copies(array) == NW_STALE, "%s", nw_last_error());
    array[41] = 1;
    CHECK(lines() == 0, "%s", all_printed());
    replicate(array);
    array[42] = 1;
    CHECK(lines() == 1 && nw_nearest(array) == array && nw_free(array) == NW_OK, "%s", all_printed());
}

/* Memory of others: whole pages are guarded, and can be written to after nw_forget. */
static void adopted(void) {
    size_t bytes = 4 * page;
    char *memory = aligned_alloc(page, bytes + page), *array = memory + 100, wanted[40];
    memset(memory, 1, bytes + page);
    listen();
    CHECK(nw_adopt(array, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    replicate(array);
    memory[0] = array[bytes] = 2;
    CHECK(lines() == 0 && nw_check_copies(array) == (copies_exist ? NW_OK : NW_NOT_DONE), "%s", nw_last_error());
    array[7] = 2; /* on a page that is shared with other memory */
    CHECK(lines() == 0, "%s", all_printed());
    if (copies_exist)
        CHECK(nw_check_copies(array) == NW_STALE && strstr(nw_last_error(), "from byte 7 on"), "%s", nw_last_error());
    array[page] = 2;
    snprintf(wanted, sizeof wanted, "at byte %zu (", page);
    CHECK(lines() == 1 && strstr(all_printed(), wanted), "%s", all_printed());
    CHECK(nw_forget(array) == NW_OK && nw_adopt(array, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    replicate(array);
    CHECK(nw_forget(array) == NW_OK, "%s", nw_last_error());
    for (size_t i = 0; i < bytes + page; i++)
        ((volatile char *)memory)[i] = 4;
    free(memory);
    CHECK(lines() == 1, "%s", all_printed());
    /* What cannot be written to stays so. */
    char *constant = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(nw_adopt(constant, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    replicate(constant);
    CHECK(lines() == 2 && strstr(all_printed(), "not all of its memory is for reading and writing"), "%s",
          all_printed());
    CHECK(nw_forget(constant) == NW_OK, "%s", nw_last_error());
    CHECK(pread(printed, constant, 1, 0) == -1 && errno == EFAULT, "constant memory can be written to");
}

/* What is written by the kernel, or by nw_place, is no write of the program's. */
static void not_by_instructions(void) {
    char *array = nw_alloc_1d(300 * page, 1);
    array[7] = array[100 * page] = 5;
    listen();
    replicate(array);
    CHECK(write(printed, "x\n", 2) == 2 && pread(printed, array, 2, 0) == -1 && errno == EFAULT, "read into it");
    CHECK(pwrite(printed, array + 7, 1, 0) == 1, "written from it");
    /* Placing would touch pages that are not in memory, were there mappings enough. */
    CHECK(madvise(array + 200 * page, 100 * page, MADV_DONTNEED) == 0, "no advice");
    mappings_left = 5;
    CHECK(nw_place(array, nw_random(NW_PAGES, 1)) >= 0 && nw_scatter(array, NULL, 0) >= 0, "%s", nw_last_error());
    CHECK(lines() == 1 && (nw_nearest(array) != array) == copies_exist, "%s", all_printed());
    CHECK(array[7] == 5 && array[100 * page] == 5 && nw_free(array) == NW_OK, "%s", nw_last_error());
}

static pthread_barrier_t together;
static char *shared;

/* Time for other threads to fault as well, before the first one's fault is over. */
static void linger(void) { nanosleep(&(struct timespec){0, 500000}, NULL); }

/* Each writes to a page of its own, all at once, and copies and frees arrays beside the others. */
static void *writer(void *number) {
    size_t own = (size_t)number;
    long failures = 0;
    for (int round = 0; round < 20; round++) {
        char *array = new_array(2 * page);
        failures += nw_replicate(array) < 0;
        pthread_barrier_wait(&together);
        shared[own * page + (size_t)round] = (char)round;
        failures += shared[own * page + (size_t)round] != round || nw_nearest(shared) != shared;
        array[round] = 9;
        failures += array[round] != 9 || nw_free(array) != NW_OK;
        pthread_barrier_wait(&together);
        if (own == 0)
            failures += nw_replicate(shared) < 0;
        pthread_barrier_wait(&together);
    }
    return (void *)failures;
}

static void threads(void) {
    pthread_t ids[THREADS];
    shared = new_array(THREADS * page);
    listen();
    replicate(shared);
    before_protecting = linger;
    pthread_barrier_init(&together, NULL, THREADS);
    for (size_t t = 0; t < THREADS; t++)
        pthread_create(&ids[t], NULL, writer, (void *)t);
    for (size_t t = 0; t < THREADS; t++) {
        void *failures;
        pthread_join(ids[t], &failures);
        CHECK(failures == NULL, "thread %zu: %ld failures", t, (long)failures);
    }
    char text[96];
    int count = 0;
    snprintf(text, sizeof text, "the array at %p (%zu bytes) was written", (void *)shared, THREADS * page);
    char *all = calloc(1, 1 << 20);
    CHECK(pread(printed, all, (1 << 20) - 1, 0) > 0, "nothing was printed");
    for (char *at = all; (at = strstr(at, text)); at++)
        count++;
    CHECK(count == 20, "%d reports of 20 arrays", count);
    free(all);
    CHECK(nw_free(shared) == NW_OK, "%s", nw_last_error());
}

#if !defined(__SANITIZE_THREAD__)
static _Atomic int ended;

static void *write_until_the_end(void *unused) {
    (void)unused;
    for (size_t i = 0; !atomic_load(&ended); i++)
        ((volatile char *)shared)[i * page % (4 * page)] = 1;
    return NULL;
}

/* Protections begin and end while two threads write: none of their faults is taken for another's. */
static void drops(void) {
    pthread_t writers[2];
    shared = new_array(4 * page);
    listen();
    for (int i = 0; i < 2; i++)
        pthread_create(&writers[i], NULL, write_until_the_end, NULL);
    int failures = 0;
    for (int round = 0; round < 3000; round++)
        failures += nw_replicate(shared) < 0 || nw_drop_copies(shared) != NW_OK;
    atomic_store(&ended, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(writers[i], NULL);
    CHECK(failures == 0, "%d failures", failures);
    CHECK(!strstr(all_printed(), "not reported"), "%s", all_printed());
    CHECK(nw_free(shared) == NW_OK, "%s", nw_last_error());
}
#endif

/* ---- Faults of others ------------------------------------------------------------------------------ */

static sigjmp_buf past;
static volatile int caught, caught_code, caught_errno;
static void *volatile caught_at;

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    caught++;
    caught_errno = errno;
    caught_code = info->si_code;
    caught_at = info->si_addr;
    if (info->si_code > 0)
        siglongjmp(past, 1);
}

static int faults_at(volatile char *at, int code) {
    int before = caught;
    errno = 77;
    if (sigsetjmp(past, 1) == 0)
        *at = 1;
    int kept = caught_errno == 77 || HANDLED_BEFORE; /* ThreadSanitizer gives handlers another one */
    return caught == before + 1 && caught_at == (void *)at && caught_code == code && kept;
}

static void a_handler_before(void) {
    struct sigaction action = {0};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0, "no handler");
    char *locked = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *array = new_array(3 * page);
    listen();
    replicate(array);
    for (int i = 0; i < 3; i++) {
        CHECK(faults_at(locked, SEGV_ACCERR), "a page of the program's own: %d, %p", caught_code, caught_at);
        CHECK(faults_at((char *)8, SEGV_MAPERR), "address 8: %d, %p", caught_code, caught_at);
        int before = caught;
        CHECK(raise(SIGSEGV) == 0 && caught == before + 1 && caught_code <= 0, "a signal that was sent: %d",
              caught_code);
        siginfo_t made_up = {.si_code = SI_QUEUE}; /* which has an address of the array's */
        made_up.si_addr = array + page;
        CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGSEGV, &made_up) == 0 && caught == before + 2 &&
                  caught_at == array + page,
              "a made-up signal: %d", caught_code);
    }
    int before = caught;
    if (sigsetjmp(past, 1) == 0)
        ((void (*)(void))(void *)(array + page))();
    CHECK(caught == before + 1 && lines() == 0, "a jump into the array");
    before = caught;
    array[5] = 5;
    CHECK(caught == before && lines() == 1 && array[5] == 5, "%d times", caught);
    /* The program's own protection of memory that was guarded. */
    CHECK(mprotect(array, page, PROT_READ) == 0 && faults_at(array + 9, SEGV_ACCERR), "not the program's fault");
    CHECK(mprotect(array, page, PROT_READ | PROT_WRITE) == 0 && nw_free(array) == NW_OK, "%s", nw_last_error());
    char *again = mmap(array, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(again == array && faults_at(again, SEGV_ACCERR) && lines() == 1, "%s", all_printed());
    munmap(locked, page);
}

static void a_handler_once(void) {
    struct sigaction action = {0};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | (int)SA_RESETHAND;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0, "no handler");
    replicate(new_array(page));
    raise(SIGSEGV);
    CHECK(caught == 1, "%d times", caught);
    raise(SIGSEGV);
}

static void no_handler(void) {
    replicate(new_array(page));
    *(volatile char *)8 = 1;
}

static void no_handler_page(void) {
    replicate(new_array(page));
    *(volatile char *)mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
}

static void no_handler_sent(void) {
    replicate(new_array(page));
    raise(SIGSEGV);
}

static void ignored(void) {
    signal(SIGSEGV, SIG_IGN);
    replicate(new_array(page));
    *(volatile char *)8 = 1;
}

static void ignored_sent(void) {
    signal(SIGSEGV, SIG_IGN);
    char *array = new_array(page);
    listen();
    replicate(array);
    raise(SIGSEGV);
    array[1] = 1;
    CHECK(lines() == 1 && nw_free(array) == NW_OK, "%s", all_printed());
}

static void misspelt(void) {
    setenv("NODEWISE_GUARD", "yes", 1);
    char *array = new_array(page);
    listen();
    nw_replicate(array);
    array[1] = 1;
    CHECK(strstr(all_printed(), "NODEWISE_GUARD=yes is neither 1 nor 0") && lines() == 1, "%s", all_printed());
    nw_free(array);
}

static void off(void) {
    setenv("NODEWISE_GUARD", "0", 1);
    char *array = new_array(page);
    listen();
    nw_replicate(array);
    array[1] = 1;
    CHECK(lines() == 0 && (nw_nearest(array) != array) == copies_exist, "%s", all_printed());
    nw_free(array);
}

typedef struct scene {
    const char *name;
    void (*play)(void);
    int ends_by; /* the signal, or 0 */
} scene;

static const scene scenes[] = {
    {"write", a_write, 0},
    {"again", again, 0},
    {"meanwhile", while_copying, 0},
    {"adopted", adopted, 0},
    {"kernel", not_by_instructions, 0},
    {"threads", threads, 0},
#if !defined(__SANITIZE_THREAD__) /* it writes while copies are made, which is a race of the test's own */
    {"drops", drops, 0},
#endif
    {"handler", a_handler_before, 0},
    {"once", a_handler_once, SIGSEGV},
    {"none", no_handler, SIGSEGV},
    {"none-page", no_handler_page, SIGSEGV},
    {"none-sent", no_handler_sent, SIGSEGV},
    {"ignored", ignored, SIGSEGV},
    {"ignored-sent", ignored_sent, 0},
    {"misspelt", misspelt, 0},
    {"off", off, 0},
};

static void played_apart(const scene *of) {
    char *const command[] = {"guard", (char *)of->name, NULL};
    pid_t child;
    int status = -1;
    CHECK(posix_spawn(&child, "/proc/self/exe", NULL, NULL, command, environ) == 0, "no process");
    waitpid(child, &status, 0);
    int right = of->ends_by ? WIFSIGNALED(status) && WTERMSIG(status) == of->ends_by : status == 0;
    check_passed += right;
    check_failed += !right;
    if (!right)
        printf("FAILED scene %s: status %#x\n", of->name, (unsigned)status);
}

/* All scenes, or the one that the argument names. */
int main(int count, char **arguments) {
    const char *pretended = getenv("NODEWISE_PRETEND");
    copies_exist = !pretended || !*pretended;
    setenv("NODEWISE_GUARD", "1", 1);
    page = nw_page_bytes();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (count > 1 && !strcmp(arguments[1], scenes[i].name))
            scenes[i].play();
        else if (count == 1 && !(scenes[i].ends_by && HANDLED_BEFORE))
            played_apart(&scenes[i]);
    return count > 1 ? check_failed || !check_passed : check_end();
}
