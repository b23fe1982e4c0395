/*
 * device.c: devices, the public side.
 */
#include "api/session.h"

braid_status braid_device_list(braid_device_info *out, size_t capacity, size_t *count, braid_error *err) {
    error_clear(err);
    if (!count || (capacity && !out)) return error_set(err, BRAID_ARGUMENT, "braid_device_list: a pointer is NULL");
    return gpu_list(out, capacity, count, err);
}

braid_status braid_device_open(const braid_device_options *options, braid_device **out, braid_error *err) {
    error_clear(err);
    if (!out) return error_set(err, BRAID_ARGUMENT, "braid_device_open: out is NULL");
    *out = NULL;
    braid_device_options given = {.size = sizeof given};
    if (options) memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    braid_device *d = mem_alloc(sizeof *d);
    if (!d) return error_memory(err);
    memset(d, 0, sizeof *d);
    d->references = 1;
    d->log = (logger){given.log, given.log_user};
    bool host = given.select && strcmp(given.select, "host") == 0;
    braid_status status = host ? BRAID_OK : gpu_open(&given, &d->gpu, err);
    if (status != BRAID_OK) {
        mem_free(d);
        return status;
    }
    pthread_mutex_init(&d->lock, NULL);
    *out = d;
    return BRAID_OK;
}

braid_device *device_ref(braid_device *d) {
    pthread_mutex_lock(&d->lock);
    d->references++;
    pthread_mutex_unlock(&d->lock);
    return d;
}

void device_unref(braid_device *d) {
    if (!d) return;
    pthread_mutex_lock(&d->lock);
    int left = --d->references;
    pthread_mutex_unlock(&d->lock);
    if (left) return;
    pthread_mutex_destroy(&d->lock);
    if (d->gpu) gpu_close(d->gpu);
    mem_free(d);
}

void braid_device_close(braid_device *d) { device_unref(d); }

void braid_device_describe(const braid_device *d, braid_device_info *out) {
    if (!d || !out) return;
    if (d->gpu) {
        gpu_describe(d->gpu, out);
        return;
    }
    *out = (braid_device_info){.index = -1, .kind = BRAID_DEVICE_SOFTWARE, .name = "host", .driver = "CPU reference",
                               .usable = true};
}

braid_status braid_device_probe(braid_device *d, bool again, braid_device_rates *out, bool *measured, braid_error *err) {
    error_clear(err);
    if (!d || !out) return error_set(err, BRAID_ARGUMENT, "braid_device_probe: a pointer is NULL");
    if (!d->gpu) return error_set(err, BRAID_UNSUPPORTED, "the host has no figures to measure");
    bool ignored;
    pthread_mutex_lock(&d->lock);
    braid_status status = gpu_probe(d->gpu, again, out, measured ? measured : &ignored, err);
    pthread_mutex_unlock(&d->lock);
    return status;
}
