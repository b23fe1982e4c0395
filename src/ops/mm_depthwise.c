/*
 * mm_depthwise.c: convolutions of one channel in and one out for each group: how many rows of outputs an invocation of
 * kernel depthwise makes.
 */
#include "ops/mm_code.h"

enum {
    GROUP = 128,
    TAPS_MAX = 64,     /* they stay in registers */
    FETCHES_MAX = 256, /* elements of the image that an invocation reads: each is code of its own */
    SETUP = 60,        /* instructions that an invocation runs once, */
    FETCH = 4,         /* for an element of the image, */
    FINISH = 12,       /* and for a result beside its taps */
    PER_CYCLE = 128,   /* instructions of a core */
    LATENCY = 4        /* cycles between those of one invocation */
};

static int64_t up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static bool is_depthwise(const device_traits *device, const mm_problem *p) {
    const conv *c = p->image;
    if (device->software || !c || p->transposed || c->axes > 2 || p->s.m != 1 || c->channels != c->groups) return false;
    return type_is_float(p->type) && p->type != BRAID_FLOAT64 && p->s.k <= TAPS_MAX && p->s.c_n == 1;
}

/* Of the axis along which an invocation has several outputs: none where there is one axis. */
static int64_t down(const conv *c, const int64_t *of_axes) {
    return c->axes == 2 ? of_axes[0] : 1;
}

static int64_t across(const conv *c, const int64_t *of_axes) {
    return of_axes[c->axes - 1];
}

/* Elements of the image that so many outputs see. */
static int64_t fetches(const conv *c, int64_t rows) {
    int64_t seen = (rows - 1) * down(c, c->stride) + (down(c, c->kernel) - 1) * down(c, c->dilation) + 1;
    return seen * across(c, c->kernel);
}

/* In cycles: what the cores take for all invocations, or one of them for its own. */
static double cycles(const conv *c, int64_t taps, double invocations, int64_t rows, int64_t cores) {
    double instructions = (double)(SETUP + fetches(c, rows) * FETCH + rows * (taps + FINISH));
    double busy = invocations * instructions / (double)(cores * PER_CYCLE), alone = instructions * LATENCY;
    return busy > alone ? busy : alone;
}

bool mm_depthwise_choose(const device_traits *device, const mm_problem *p, uint32_t problems, mm_cut *out) {
    static const uint32_t rows[] = {1, 2, 4, 7};
    if (!is_depthwise(device, p)) return false;
    const conv *c = p->image;
    int64_t high = down(c, c->out), columns;
    double least = 0;
    if (!i64_mul(mm_batches(&p->s), across(c, c->out), &columns) || columns > UINT32_MAX / (high + GROUP)) return false;
    *out = (mm_cut){.depthwise = true, .group = GROUP, .splits = 1, .chunk = (uint32_t)p->s.k};
    for (size_t i = 0; i < COUNT_OF(rows) && fetches(c, rows[i]) <= FETCHES_MAX; i++) {
        double all = (double)(columns * up(high, rows[i])) * problems;
        double now = cycles(c, p->s.k, all, rows[i], device->cores ? device->cores : 1);
        if (out->tm && now >= least) continue;
        least = now;
        out->tm = rows[i];
    }
    return out->tm > 0;
}
