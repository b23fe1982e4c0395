/*
 * thread.c: parallel loops, the clock, hashing.
 */
#include "base/base.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { THREADS_MAX = 64 };

typedef struct loop {
    atomic_size_t next;
    size_t count;
    void (*work)(void *user, size_t i);
    void *user;
} loop;

static void *loop_run(void *argument) {
    loop *l = argument;
    for (size_t i; (i = atomic_fetch_add(&l->next, 1)) < l->count;) l->work(l->user, i);
    return NULL;
}

size_t processor_count(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : (size_t)n;
}

void parallel_for(size_t count, size_t threads, void (*work)(void *user, size_t i), void *user) {
    if (threads == 0) threads = processor_count();
    if (threads > count) threads = count;
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    loop l = {.count = count, .work = work, .user = user};
    atomic_init(&l.next, 0);
    pthread_t ids[THREADS_MAX];
    size_t started = 0;
    while (started + 1 < threads && pthread_create(&ids[started], NULL, loop_run, &l) == 0) started++;
    loop_run(&l); /* the calling thread works too, alone if it must */
    for (size_t i = 0; i < started; i++) pthread_join(ids[i], NULL);
}

uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t thread_ns(void) {
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0 ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec : 0;
}

/* Each step is a bijection of the state for a given word, and of the word for a given state: two inputs of one length
   that differ in a single word never collide. */
uint64_t hash_bytes(uint64_t seed, const void *data, size_t bytes) {
    const uint64_t prime = 0x9e3779b97f4a7c15u;
    uint64_t h = (seed ^ 0xcbf29ce484222325u) + bytes * prime, word;
    const uint8_t *p = data;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        memcpy(&word, p, 8);
        h = (h ^ word) * prime;
        h ^= h >> 32;
    }
    word = 0;
    if (bytes) memcpy(&word, p, bytes);
    h = (h ^ word) * prime;
    h ^= h >> 29;
    h *= 0x94d049bb133111ebu;
    return h ^ h >> 32;
}
