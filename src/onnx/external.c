/*
 * external.c: tensors whose content lies in another file below the model's folder.
 */
#include "onnx/import.h"

/* Digits only: no sign, no space, no exponent. */
static braid_status read_digits(importer *im, const char *key, const char *s, uint64_t *out) {
    uint64_t v = 0;
    bool ok = *s != 0;
    for (const char *c = s; ok && *c; c++)
        ok = *c >= '0' && *c <= '9' && v <= ((uint64_t)INT64_MAX - (uint64_t)(*c - '0')) / 10 &&
             ((v = v * 10 + (uint64_t)(*c - '0')), true);
    if (!ok) return error_set(im->err, BRAID_MODEL, "external data: %s '%.100s' is not a number", key, s);
    *out = v;
    return BRAID_OK;
}

static braid_status read_entry(importer *im, wire w, external *out) {
    const char *key = "", *content = "";
    wire_field f;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number == 1) TRY(import_name(im, &w, &f, &key));
        if (f.number == 2) TRY(import_name(im, &w, &f, &content));
    }
    if (strcmp(key, "location") == 0) {
        out->location = content;
    } else if (strcmp(key, "offset") == 0) {
        TRY(read_digits(im, key, content, &out->offset));
    } else if (strcmp(key, "length") == 0) {
        TRY(read_digits(im, key, content, &out->length));
        out->has_length = true;
    } else if (strcmp(key, "checksum") != 0) {
        return error_set(im->err, BRAID_MODEL, "external data: unknown key '%.100s'", key);
    }
    return BRAID_OK;
}

braid_status import_external_entries(importer *im, wire w, uint32_t field, external *out) {
    wire_field f;
    wire inner;
    *out = (external){0};
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number != field) continue;
        TRY(wire_message(&w, &f, &inner));
        TRY(read_entry(im, inner, out));
    }
    return out->location ? BRAID_OK : error_set(im->err, BRAID_MODEL, "external data has no location");
}

/* Opens each location once. */
static braid_status open_location(importer *im, const char *location, file **out) {
    int32_t known = names_get(&im->locations, location);
    if (known != NAMES_NONE) {
        *out = im->files[known];
        return BRAID_OK;
    }
    if (!im->options->root)
        return error_set(im->err, BRAID_ARGUMENT, "external data '%.200s' needs a folder to look in", location);
    if (im->n_files == im->cap_files) {
        size_t larger = im->cap_files * 2 + 4;
        file **files = arena_array(im->memory, larger, sizeof(file *));
        if (!files) return error_memory(im->err);
        if (im->n_files) memcpy(files, im->files, im->n_files * sizeof(file *));
        im->files = files;
        im->cap_files = larger;
    }
    if (!names_put(&im->locations, location, (int32_t)im->n_files)) return error_memory(im->err);
    braid_status s = file_open_beneath(im->options->root, location, out, im->err);
    im->files[im->n_files] = s == BRAID_OK ? *out : NULL;
    if (s == BRAID_OK) im->n_files++;
    return s;
}

braid_status import_external(importer *im, const external *e, tensor *t) {
    file *f;
    TRY(open_location(im, e->location, &f));
    uint64_t size = file_size(f);
    if (e->has_length && e->length != t->bytes)
        return error_set(im->err, BRAID_MODEL, "external data '%.200s': length %llu, its shape asks for %zu bytes",
                         e->location, (unsigned long long)e->length, t->bytes);
    if (e->offset > size || t->bytes > size - e->offset)
        return error_set(im->err, BRAID_MODEL, "external data '%.200s': bytes %llu + %zu lie beyond its end at %llu",
                         e->location, (unsigned long long)e->offset, t->bytes, (unsigned long long)size);
    t->source = f;
    t->offset = e->offset;
    return BRAID_OK;
}
