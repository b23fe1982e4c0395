/*
 * timing.h: limits on the processor time of a test, so that a busy machine does not fail it. A limit is at least four
 * times what a release build takes; it is there to notice work that grows faster than its graph, not to measure.
 */
#ifndef TIMING_H
#define TIMING_H

#include <time.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TIMING_SANITIZED 1
#endif
#endif
#if defined(TIMING_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TIMING_SLOWER = 12 };
#else
enum { TIMING_SLOWER = 1 };
#endif

static inline double timing_seconds(clock_t start) {
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* Needs <cmocka.h>. */
static inline void timing_check(const char *what, double seconds, double limit) {
    if (seconds > limit * TIMING_SLOWER)
        fail_msg("%s: %.2f s of processor time, at most %.1f", what, seconds, limit * TIMING_SLOWER);
}

#endif
