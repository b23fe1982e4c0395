#include <braid/braid.h>
#include <stdio.h>

/* devices [NAME]: which devices are there, which one would braid take, and how fast is it? */

enum { MOST = 16 };

static int failed(const braid_error *err) {
    fprintf(stderr, "%s (%s): %s\n", braid_status_name(err->status), braid_status_text(err->status), err->message);
    return 1;
}

static void print_rates(const braid_device_rates *r, bool measured) {
    printf("%s: barrier %.2f us, dispatch %.2f us, a small run %.1f us\n", measured ? "measured" : "known",
           r->barrier_ns / 1e3, r->dispatch_ns / 1e3, r->submit_ns / 1e3);
    printf("memory %.1f GB/s, upload %.1f GB/s, download %.1f GB/s, %.1f GFLOP/s\n", r->memory_gbs, r->upload_gbs,
           r->download_gbs, r->gflops);
}

int main(int argc, char **argv) {
    braid_device_info list[MOST], info;
    braid_device *device;
    braid_device_rates rates;
    braid_error err;
    size_t count;
    bool measured;
    printf("braid %s\n", braid_version());
    if (braid_device_list(list, MOST, &count, &err)) return failed(&err);
    for (size_t i = 0; i < count && i < MOST; i++)
        printf("%d: %s, %s%s%s\n", list[i].index, list[i].name, list[i].driver, list[i].usable ? "" : ": ",
               list[i].reason);

    /* part of a name, an index or a UUID; NULL: the first GPU, else the software device */
    braid_device_options options = {.size = sizeof options, .select = argc > 1 ? argv[1] : NULL};
    if (braid_device_open(&options, &device, &err)) return failed(&err);
    braid_device_describe(device, &info);
    printf("opened %s with %.1f GiB\n", info.name, (double)info.memory / (1 << 30));

    /* once; devices opened later find the figures in the cache folder and plan by them */
    braid_status status = braid_device_probe(device, false, &rates, &measured, &err);
    if (!status) print_rates(&rates, measured);
    braid_device_close(device);
    return status ? failed(&err) : 0;
}
