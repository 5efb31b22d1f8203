/* Each thread starts the next and leaves, so that there are few at a time and many in all. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t over;
static long left;
static int failed;

static void *leg(void *unused) {
    pthread_attr_t detached;
    pthread_t next;
    pthread_attr_init(&detached);
    pthread_attr_setstacksize(&detached, 64 << 10);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    failed = --left > 0 && pthread_create(&next, &detached, leg, NULL) != 0;
    if (left <= 0 || failed)
        sem_post(&over);
    return unused;
}

int main(int count, char **arguments) {
    left = count > 1 ? atol(arguments[1]) : 1;
    sem_init(&over, 0, 0);
    leg(NULL);
    sem_wait(&over);
    printf("left %ld, failed %d\n", left, failed);
    return 5;
}
