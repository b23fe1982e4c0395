#include "base/traits.h"

#include <stddef.h>

/* Measured on an H200, and on lavapipe with two cores. */
static const device_figures defaults[2] = {
    {.barrier = 2000, .dispatch = 160, .bandwidth = 4300, .rate = 30000, .least = 500, .resident = 128},
    {.barrier = 8000, .dispatch = 8000, .bandwidth = 8, .rate = 6, .least = 500, .resident = 1e9},
};

static double figure(uint32_t measured, double otherwise) {
    return measured ? (double)measured : otherwise;
}

device_figures device_figures_of(const device_traits *d) {
    if (!d) return defaults[0];
    const device_figures *by = &defaults[d->software];
    return (device_figures){.barrier = figure(d->barrier_ns, by->barrier),
                            .dispatch = figure(d->dispatch_ns, by->dispatch),
                            .bandwidth = figure(d->bandwidth, by->bandwidth),
                            .rate = figure(d->flop_rate, by->rate),
                            .least = by->least,
                            .resident = figure(d->resident, by->resident)};
}
