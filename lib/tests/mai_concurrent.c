/* Threads allocate, place, move, query and free arrays of their own at the same time, and are bound. */
#include <pthread.h>

#include "mai_check.h"

enum { THREADS = 4, ROUNDS = 20, PAGES = 8 };

static void *work(void *argument) {
    int id = *(int *)argument;
    bind_thread_posix(id % mai_get_num_threads());
    for (int round = 0; round < ROUNDS; round++) {
        double **a = mai_alloc_2D(PAGES, 512, sizeof(double), DOUBLE);
        if (!a)
            return NULL;
        mai_cyclic_rows(a, 1);
        for (int i = 0; i < PAGES; i++)
            a[i][id] = i;
        mai_bind_rows(a);
        mai_migrate_gather(a[0], mai_get_nodes_id()[0]);
        unsigned long address = (unsigned long)a[0];
        if (mai_number_page_migration(&address, 1) < 0 || a[PAGES - 1][id] != PAGES - 1)
            return NULL;
        if (round % 2)
            mai_free_array(a); /* else mai_final does */
        if (mai_last_status() < 0)
            return NULL;
    }
    return argument;
}

int main(void) {
    pthread_t threads[THREADS];
    int ids[THREADS];
    mai_init(NULL);
    for (int i = 0; i < THREADS; i++) {
        ids[i] = i;
        pthread_create(&threads[i], NULL, work, &ids[i]);
    }
    bind_threads();
    for (int i = 0; i < THREADS; i++) {
        void *done;
        pthread_join(threads[i], &done);
        CHECK(done != NULL, "thread %d", i);
    }
    mai_final();
    return check_end();
}
