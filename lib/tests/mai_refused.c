/* A wrong call sets a status and a message, and does nothing else. Runs on any machine. */
#include <limits.h>
#include <stdlib.h>

#include "mai_check.h"

/* Every function, while MAI is not started. */
static void not_started(const char *when) {
    unsigned long address = (unsigned long)&address;
    unsigned number = 0;
    double *p = NULL;
#define NOTHING(call)                                                                                            \
    call;                                                                                                        \
    CHECK(mai_last_status() == NW_NOT_STARTED && strstr(nw_last_error(), "mai_init"), "%s: %s: %s", when, #call, \
          nw_last_error())
    NOTHING(CHECK(mai_get_num_nodes() == NW_NOT_STARTED, "%s", when));
    NOTHING(CHECK(mai_get_num_threads() == NW_NOT_STARTED, "%s", when));
    NOTHING(CHECK(mai_get_num_cpu() == NW_NOT_STARTED, "%s", when));
    NOTHING(CHECK(!mai_get_nodes_id(), "%s", when));
    NOTHING(CHECK(!mai_get_cpus_id(), "%s", when));
    NOTHING(mai_show_nodes());
    NOTHING(mai_show_cpus());
    NOTHING(CHECK(!mai_alloc_1D(4, 8, DOUBLE), "%s", when));
    NOTHING(CHECK(!mai_alloc_2D(4, 4, 8, DOUBLE), "%s", when));
    NOTHING(CHECK(!mai_alloc_3D(4, 4, 4, 8, DOUBLE), "%s", when));
    NOTHING(CHECK(!mai_alloc_4D(4, 4, 4, 4, 8, DOUBLE), "%s", when));
    NOTHING(mai_free_array(p));
    NOTHING(mai_cyclic(p));
    NOTHING(mai_skew_mapp(p));
    NOTHING(mai_prime_mapp(p, 5));
    NOTHING(mai_cyclic_rows(p, 1));
    NOTHING(mai_skew_mapp_rows(p, 0));
    NOTHING(mai_prime_mapp_rows(p, 5, 1));
    NOTHING(mai_cyclic_columns(p, 1));
    NOTHING(mai_skew_mapp_columns(p, 1));
    NOTHING(mai_prime_mapp_columns(p, 5, 1));
    NOTHING(mai_bind_all(p));
    NOTHING(mai_bind_rows(p));
    NOTHING(mai_bind_columns(p));
    NOTHING(mai_random(p));
    NOTHING(mai_random_rows(p, 1));
    NOTHING(mai_random_columns(p, 1));
    NOTHING(mai_migrate_rows(p, 0, 1, 0));
    NOTHING(mai_migrate_columns(p, 0, 1, 0));
    NOTHING(mai_migrate_scatter(p, 1));
    NOTHING(mai_migrate_gather(p, 0));
    NOTHING(bind_threads());
    NOTHING(bind_thread_posix(0));
    NOTHING(bind_thread_omp(0));
    NOTHING(mai_migrate_thread(0, 0));
    NOTHING(mai_print_pagenodes(&address, 1));
    NOTHING(CHECK(mai_number_page_migration(&address, 1) == NW_NOT_STARTED, "%s", when));
    NOTHING(CHECK(mai_get_time_pmigration() == 0, "%s", when));
    NOTHING(mai_print_threadcpus());
    NOTHING(CHECK(mai_number_thread_migration(&number, 1) == NW_NOT_STARTED, "%s", when));
    NOTHING(CHECK(mai_get_time_tmigration() == 0, "%s", when));
    NOTHING(mai_final());
}

static void sizes(void) {
    CHECK(!mai_alloc_1D(0, 8, DOUBLE), "zero");
    REFUSED(NW_INVALID, "mai_alloc_1D: nx is 0");
    CHECK(!mai_alloc_2D(4, -1, 8, DOUBLE), "negative");
    REFUSED(NW_INVALID, "ny is -1");
    CHECK(!mai_alloc_3D(4, 4, INT_MIN, 8, DOUBLE), "negative");
    REFUSED(NW_INVALID, "nz");
    CHECK(!mai_alloc_4D(4, 4, 4, 0, 8, DOUBLE), "zero");
    REFUSED(NW_INVALID, "nk");
    CHECK(!mai_alloc_4D(INT_MAX, INT_MAX, INT_MAX, INT_MAX, 8, DOUBLE), "overflow");
    REFUSED(NW_NO_MEMORY, "memory");
    CHECK(!mai_alloc_2D(INT_MAX, INT_MAX, 8, DOUBLE), "more than there is");
    REFUSED(NW_NO_MEMORY, "memory");
    CHECK(!mai_alloc_1D(4, SIZE_MAX / 2, CHAR), "overflow");
    REFUSED(NW_NO_MEMORY, "memory");
    CHECK(!mai_alloc_1D(4, 0, STRUCT), "no item");
    REFUSED(NW_INVALID, "0 bytes");
}

static void types(void) {
    static const int known[] = {CHAR, INT, FLOAT, DOUBLE, STRUCT};
    static const size_t bytes[] = {sizeof(char), sizeof(int), sizeof(float), sizeof(double), 3};
    for (int i = 0; i < 5; i++)
        for (size_t times = 1; times < 4; times++) {
            void *a = mai_alloc_1D(4, times * bytes[i], known[i]);
            CHECK(a != NULL, "type %d, %zu bytes: %s", known[i], times * bytes[i], nw_last_error());
            mai_free_array(a);
        }
    CHECK(!mai_alloc_1D(4, sizeof(int), DOUBLE), "an item too small for its type");
    REFUSED(NW_INVALID, "does not hold");
    CHECK(!mai_alloc_1D(4, 8, 0) && !mai_alloc_1D(4, 8, 6) && !mai_alloc_1D(4, 8, INT_MIN), "no such type");
    REFUSED(NW_INVALID, "none of CHAR");
}

static void pointers(void) {
    double here[4], *heap = malloc(4096), *other = nw_alloc_1d(10, 8);
    double **a = mai_alloc_2D(8, 1024, 8, DOUBLE);
    void *wrong[] = {NULL, here, heap, other, &a[0][1], &a[1], (void *)1, (void *)-1l};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mai_free_array(wrong[i]);
        REFUSED(NW_NO_ARRAY, "mai_free_array: ");
        mai_cyclic(wrong[i]);
        REFUSED(NW_NO_ARRAY, "mai_cyclic: ");
        mai_migrate_gather(wrong[i], 0);
        REFUSED(NW_NO_ARRAY, "mai_migrate_gather: ");
    }
    mai_cyclic(a);
    ACCEPTED();
    mai_cyclic(a[0]);
    ACCEPTED();
    mai_free_array(a[0]);
    CHECK(mai_last_status() == NW_OK, "freed by its first item: %s", nw_last_error());
    mai_free_array(a);
    REFUSED(NW_NO_ARRAY, "freed before");
    mai_bind_rows(a);
    REFUSED(NW_NO_ARRAY, "freed before");
    free(heap);
    nw_free(other);
}

/* An array that was freed by nw_free is no array of MAI's any more, even if another one is at its address. */
static void freed_behind_its_back(void) {
    enum { ITEMS = 1000000 };
    double **table = mai_alloc_2D(8, 1024, 8, DOUBLE), *old = mai_alloc_1D(ITEMS, 8, DOUBLE);
    unsigned long address = (unsigned long)old;
    nw_free(old);
    double *now = nw_alloc_1d(ITEMS / 2, 8); /* usually at the same address */
    mai_cyclic(old);
    REFUSED(NW_NO_ARRAY, "mai_cyclic: ");
    CHECK(mai_number_page_migration(&address, 1) == NW_NO_ARRAY, "its pages");
    mai_free_array(old);
    REFUSED(NW_NO_ARRAY, "mai_free_array: ");
    nw_free(table);
    double *other = nw_alloc_2d(8, 1024, 8);
    mai_final();
    CHECK(mai_last_status() == NW_OK, "mai_final");
    CHECK(nw_free(now) == NW_OK && nw_free(other) == NW_OK, "mai_final frees only what is its own");
    mai_init(NULL);
}

static void arguments(void) {
    double **a = mai_alloc_2D(8, 1024, 8, DOUBLE);
    unsigned long none = 1000000;
    mai_cyclic_rows(a, 0);
    REFUSED(NW_INVALID, "mai_cyclic_rows: blocks of 0");
    mai_random_columns(a, -3);
    REFUSED(NW_INVALID, "blocks of -3");
    mai_prime_mapp(a, 4);
    REFUSED(NW_INVALID, "prime");
    mai_prime_mapp(a, -7);
    REFUSED(NW_INVALID, "prime");
    mai_prime_mapp_rows(a, 0, 2);
    REFUSED(NW_INVALID, "prime");
    mai_migrate_rows(a, none, 1, 0);
    REFUSED(NW_INVALID, "node 1000000");
    mai_migrate_gather(a, ULONG_MAX);
    REFUSED(NW_INVALID, "node");
    mai_migrate_rows(a, 0, 0, 0);
    REFUSED(NW_INVALID, "0 from 0");
    mai_migrate_rows(a, 0, 1, -1);
    REFUSED(NW_INVALID, "1 from -1");
    mai_migrate_rows(a, 0, 8, 1);
    REFUSED(NW_INVALID, "rows");
    mai_migrate_columns(a, 0, 1, 1024);
    REFUSED(NW_INVALID, "columns");
    mai_migrate_columns(a, 0, INT_MAX, INT_MAX);
    REFUSED(NW_INVALID, "columns");
    mai_migrate_scatter(a, 0);
    REFUSED(NW_INVALID, "0 nodes");
    mai_migrate_scatter(a, (unsigned long)mai_get_num_nodes() + 1);
    REFUSED(NW_INVALID, "configured");
    mai_migrate_scatter(a, ULONG_MAX);
    REFUSED(NW_INVALID, "configured");
    mai_free_array(a);
}

static void threads(void) {
    unsigned numbers[] = {0, 1000000};
    bind_thread_posix(-1);
    REFUSED(NW_INVALID, "bind_thread_posix: there is no thread -1");
    bind_thread_omp(mai_get_num_threads());
    REFUSED(NW_INVALID, "bind_thread_omp: there is no thread");
    mai_migrate_thread(0, 1000000);
    REFUSED(NW_INVALID, "CPU 1000000");
    mai_migrate_thread(0, ULONG_MAX);
    REFUSED(NW_INVALID, "CPU");
    mai_migrate_thread(-1, 0);
    REFUSED(NW_INVALID, "thread -1");
    mai_migrate_thread(1, 0); /* init or a parent, not a thread of this process */
    REFUSED(NW_INVALID, "thread 1 ");
    CHECK(mai_number_thread_migration(numbers, 1) == 0, "the main thread is number 0");
    CHECK(mai_number_thread_migration(numbers, 2) == NW_INVALID, "a thread that never was");
    REFUSED(NW_INVALID, "thread 1000000");
    CHECK(mai_number_thread_migration(numbers, -1) == NW_INVALID, "a negative length");
    CHECK(mai_number_thread_migration(NULL, -1) == 0, "all of them");
}

static void statistics(void) {
    unsigned long foreign = (unsigned long)&foreign;
    char *a = mai_alloc_1D(100, 1, CHAR);
    unsigned long own[] = {(unsigned long)a, (unsigned long)a + 99};
    mai_print_pagenodes(NULL, 1);
    REFUSED(NW_INVALID, "mai_print_pagenodes");
    mai_print_pagenodes(own, -1);
    REFUSED(NW_INVALID, "mai_print_pagenodes");
    CHECK(mai_number_page_migration(own, 2) == 0, "nothing moved");
    CHECK(mai_number_page_migration(&foreign, 1) == NW_NO_ARRAY, "an address of no array");
    REFUSED(NW_NO_ARRAY, "in no array");
    CHECK(mai_number_page_migration(own, -1) == NW_INVALID, "a negative length");
    CHECK(mai_number_page_migration(NULL, 0) == 0, "all of them");
    CHECK(mai_get_time_pmigration() == 0 && mai_get_time_tmigration() == 0, "nothing moved, no time");
    mai_free_array(a);
}

static void started_twice(void) {
    mai_init(NULL);
    REFUSED(NW_INVALID, "mai_final");
    CHECK(mai_get_num_nodes() >= 1, "still started");
}

int main(void) {
    not_started("before mai_init");
    for (int round = 0; round < 2; round++) {
        mai_init(NULL);
        CHECK(mai_last_status() == NW_OK, "mai_init(NULL): %s", nw_last_error());
        sizes();
        types();
        pointers();
        freed_behind_its_back();
        arguments();
        threads();
        statistics();
        started_twice();
        CHECK(mai_alloc_3D(3, 4, 5, 8, DOUBLE) && mai_alloc_1D(1, 1, CHAR), "arrays that mai_final frees");
        mai_final();
        CHECK(mai_last_status() == NW_OK, "mai_final");
        not_started("after mai_final");
    }
    return check_end();
}
