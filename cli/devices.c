/* devices: the Vulkan devices, in the order that --device counts them. */
#include "cli.h"

#include <jansson.h>
#include <stdlib.h>

static void uuid_text(const uint8_t *uuid, char *out) {
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *out++ = '-';
        out += sprintf(out, "%02x", uuid[i]);
    }
}

static const char *kind_text(const braid_device_info *d) {
    return d->kind == BRAID_DEVICE_GPU ? "gpu" : "software";
}

static void version_text(uint32_t v, char *out, size_t capacity) {
    snprintf(out, capacity, "%u.%u.%u", v >> 22 & 0x7f, v >> 12 & 0x3ff, v & 0xfff);
}

static void print_text(const braid_device_info *d) {
    char uuid[40], version[32];
    uuid_text(d->uuid, uuid);
    version_text(d->api_version, version, sizeof version);
    printf("%d  %s\n", d->index, d->name);
    printf("   %s, %.1f GiB, Vulkan %s, subgroup %u, driver %s\n", kind_text(d), (double)d->memory / (double)(1u << 30),
           version, d->subgroup_size, d->driver);
    printf("   uuid %s\n", uuid);
    if (!d->usable) printf("   not usable: %s\n", d->reason);
}

static json_t *to_json(const braid_device_info *d) {
    char uuid[40], version[32];
    uuid_text(d->uuid, uuid);
    version_text(d->api_version, version, sizeof version);
    json_t *out = json_pack("{si ss ss ss ss sI ss si sb}", "index", d->index, "name", d->name, "kind", kind_text(d),
                            "driver", d->driver, "uuid", uuid, "memory", (json_int_t)d->memory, "vulkan", version,
                            "subgroup", (int)d->subgroup_size, "usable", d->usable);
    if (!d->usable) json_object_set_new(out, "reason", json_string(d->reason));
    return out;
}

/* ---- figures */

typedef struct probed {
    braid_device_rates rates;
    bool measured;
    braid_error err; /* OK: there are figures */
} probed;

static braid_status probe(const cli_options *o, const braid_device_info *d, probed *p) {
    char uuid[40];
    uuid_text(d->uuid, uuid);
    cli_options chosen = *o;
    engine e = {0};
    chosen.device = uuid;
    if (!d->usable) return cli_error(&p->err, BRAID_UNSUPPORTED, "the device is not usable");
    cli_progress(o, "measuring %s", d->name);
    braid_status status = engine_open(&e, &chosen, &p->err);
    if (status == BRAID_OK) status = braid_device_probe(e.device, o->again, &p->rates, &p->measured, &p->err);
    cli_progress_end();
    engine_free(&e);
    return status;
}

static void print_rates(const probed *p) {
    const braid_device_rates *r = &p->rates;
    if (p->err.status != BRAID_OK) {
        printf("   no figures: %s\n", p->err.message);
        return;
    }
    printf("   barrier     %10.2f us\n   dispatch    %10.2f us\n   submission  %10.2f us\n", r->barrier_ns / 1e3,
           r->dispatch_ns / 1e3, r->submit_ns / 1e3);
    printf("   memory      %10.1f GB/s\n   upload      %10.1f GB/s\n   download    %10.1f GB/s\n   float32     %10.1f "
           "GFLOP/s\n",
           r->memory_gbs, r->upload_gbs, r->download_gbs, r->gflops);
    printf("   %s\n", p->measured ? "measured now" : "kept from an earlier measurement");
}

static json_t *rates_json(const probed *p) {
    const braid_device_rates *r = &p->rates;
    if (p->err.status != BRAID_OK) return json_pack("{ss}", "error", p->err.message);
    return json_pack("{sf sf sf sf sf sf sf sb}", "barrier_ns", r->barrier_ns, "dispatch_ns", r->dispatch_ns,
                     "submit_ns", r->submit_ns, "memory_gbs", r->memory_gbs, "upload_gbs", r->upload_gbs,
                     "download_gbs", r->download_gbs, "gflops", r->gflops, "measured", p->measured);
}

int cmd_devices(const cli_options *o) {
    braid_error err = {0};
    size_t count = 0;
    if (braid_device_list(NULL, 0, &count, &err) != BRAID_OK) return cli_fail(&err);
    braid_device_info *list = calloc(count + 1, sizeof *list);
    size_t room = count;
    if (!list) cli_error(&err, BRAID_HOST_MEMORY, "out of memory");
    if (!list || braid_device_list(list, room, &count, &err) != BRAID_OK) {
        free(list);
        return cli_fail(&err);
    }
    json_t *all = json_array();
    for (size_t i = 0; i < count && i < room; i++) {
        probed p = {0};
        json_t *object = o->json ? to_json(&list[i]) : NULL;
        if (o->probe && probe(o, &list[i], &p) != BRAID_OK && list[i].usable) err = p.err;
        if (object && o->probe) json_object_set_new(object, "rates", rates_json(&p));
        if (object)
            json_array_append_new(all, object);
        else
            print_text(&list[i]);
        if (!object && o->probe) print_rates(&p);
    }
    if (o->json) {
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(all);
    free(list);
    return err.status == BRAID_OK ? CLI_OK : cli_fail(&err);
}
