/* input: what --input, --random and --shape say, as one tensor for each model input. */
#include "cli.h"

#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

braid_status input_form(const cli_options *o, const braid_port *port, braid_tensor *t, braid_error *err) {
    *t = (braid_tensor){.name = port->name, .type = port->type, .rank = port->rank};
    for (int i = 0; i < port->rank; i++) {
        t->dims[i] = port->dims[i];
        for (size_t k = 0; k < o->dims.count && port->dims[i] < 0 && port->symbols[i]; k++) {
            const char *item = o->dims.items[k], *equals = strrchr(item, '=');
            size_t length = strlen(port->symbols[i]);
            if (equals && (size_t)(equals - item) == length && !memcmp(item, port->symbols[i], length))
                t->dims[i] = strtoll(equals + 1, NULL, 10);
        }
    }
    for (size_t k = 0; k < o->shapes.count; k++) {
        const char *item = o->shapes.items[k], *equals = strrchr(item, '=');
        if (!equals || strlen(port->name) != (size_t)(equals - item) || memcmp(item, port->name, strlen(port->name)))
            continue;
        if (!dims_parse(equals + 1, &t->rank, t->dims))
            return cli_error(err, BRAID_ARGUMENT, "--shape: '%s' is not NAME=DIMS", item);
    }
    return BRAID_OK;
}

/* Makes `count` elements fit the wanted dims: at most one free dim takes what is left; unknown rank becomes 1. */
static bool fit_count(braid_tensor *t, int64_t count) {
    int64_t known = 1, free_dims = 0;
    if (t->rank < 0) {
        t->rank = 1;
        t->dims[0] = count;
        return true;
    }
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] < 0)
            free_dims++;
        else if (__builtin_mul_overflow(known, t->dims[i], &known))
            return false;
    }
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] >= 0) continue;
        bool takes = free_dims == 1 || known == 1; /* several free dims: the last takes all */
        if (!takes || known == 0 || count % known) return false;
        t->dims[i] = --free_dims == 0 ? count / known : 1;
    }
    return tensor_count(t->rank, t->dims, &known) && known == count;
}

static braid_status no_fit(const braid_tensor *t, int64_t count, braid_error *err) {
    char dims[128];
    dims_text(t->rank, t->dims, dims, sizeof dims);
    return cli_error(err, BRAID_SHAPE, "%lld values do not fit %s %s (--shape NAME=DIMS says otherwise)",
                     (long long)count, braid_type_name(t->type), dims);
}

static int64_t count_items(const char *text) {
    int64_t n = *text != 0;
    for (; *text; text++) n += *text == ',';
    return n;
}

static braid_status literal_strings(const char *text, braid_tensor *t, braid_error *err) {
    size_t room = strlen(text) + 1;
    char **block = realloc(t->data, t->bytes + room);
    if (!block) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    t->data = block;
    char *at = memcpy((char *)block + t->bytes, text, room);
    for (size_t i = 0; i < t->bytes / sizeof(char *); i++) {
        block[i] = at;
        at += strcspn(at, ",");
        *at++ = 0;
    }
    return BRAID_OK;
}

static braid_status literal(const char *text, braid_tensor *t, braid_error *err) {
    int64_t count = count_items(text);
    braid_tensor form = *t;
    if (!fit_count(&form, count)) return no_fit(t, count, err);
    TRY(tensor_alloc(t, form.type, form.rank, form.dims, err));
    if (t->type == BRAID_STRING) return literal_strings(text, t, err);
    for (int64_t i = 0; i < count; i++) {
        size_t length = strcspn(text, ",");
        if (!value_parse(t, i, text, length))
            return cli_error(err, BRAID_ARGUMENT, "'%.*s' is neither a file nor a value of type %s", (int)length, text,
                             braid_type_name(t->type));
        text += length + 1;
    }
    return BRAID_OK;
}

static braid_status raw_file(const char *path, braid_tensor *t, braid_error *err) {
    void *bytes;
    size_t size, span;
    TRY(file_load(path, &bytes, &size, err));
    int bits = value_bits(t->type);
    braid_tensor form = *t;
    int64_t count = bits ? (int64_t)(size * 8 / (size_t)bits) : 0;
    if (!bits || !fit_count(&form, count) || !tensor_span(t->type, count, &span) || span != size) {
        free(bytes);
        char dims[128];
        dims_text(t->rank, t->dims, dims, sizeof dims);
        return cli_error(err, BRAID_SHAPE, "%s: %zu raw bytes do not fit %s %s", path, size, braid_type_name(t->type),
                         dims);
    }
    form.data = bytes;
    form.bytes = size;
    *t = form;
    return BRAID_OK;
}

/* numpy has no bfloat16 or smaller floats: a float32 array is rounded to what the model wants. */
static braid_status adapt(braid_tensor *t, braid_type wanted, braid_error *err) {
    if (wanted != BRAID_BFLOAT16 || t->type != BRAID_FLOAT32) return BRAID_OK;
    braid_tensor out = {.name = t->name};
    TRY(tensor_alloc(&out, wanted, t->rank, t->dims, err));
    for (int64_t i = 0; i < (int64_t)(out.bytes / 2); i++) value_set(&out, i, value_get(t, i));
    tensor_drop(t);
    *t = out;
    return BRAID_OK;
}

static bool has_ending(const char *path, const char *ending) {
    size_t a = strlen(path), b = strlen(ending);
    return a > b && !strcasecmp(path + a - b, ending);
}

static bool is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

/* FILE.npz or FILE.npz:KEY */
static braid_status npz_value(const char *text, const char *colon, braid_tensor *t, braid_error *err) {
    if (!colon) return npz_load(text, t->name, t, err);
    char *path = strndup(text, (size_t)(colon - text));
    if (!path) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    braid_status status = npz_load(path, colon + 1, t, err);
    free(path);
    return status;
}

static const char *npz_colon(const char *text) {
    const char *at = strstr(text, ".npz:");
    return at ? at + 4 : NULL;
}

static braid_status read_value(const cli_options *o, const char *text, braid_tensor *t, braid_error *err) {
    braid_type wanted = t->type;
    const char *colon = npz_colon(text);
    braid_status status;
    if (colon || has_ending(text, ".npz"))
        status = npz_value(text, colon, t, err);
    else if (has_ending(text, ".npy"))
        status = npy_load(text, t, err);
    else if (has_ending(text, ".pb"))
        status = tensor_pb_load(text, t, err);
    else if (has_ending(text, ".png") || has_ending(text, ".jpg") || has_ending(text, ".jpeg"))
        status = image_load(text, o, t, err);
    else if (is_file(text))
        status = raw_file(text, t, err);
    else
        status = literal(text, t, err);
    return status == BRAID_OK ? adapt(t, wanted, err) : status;
}

/* ---- random values */

static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static braid_status random_range(const cli_options *o, const char *name, double *low, double *high, bool *named,
                                 braid_error *err) {
    *low = 0;
    *high = 1;
    *named = false;
    for (size_t i = 0; i < o->randoms.count; i++) {
        const char *item = o->randoms.items[i], *equals = strrchr(item, '=');
        bool mine = equals && strlen(name) == (size_t)(equals - item) && !memcmp(item, name, strlen(name));
        if (equals && !mine) continue;
        char rest;
        if (sscanf(equals ? equals + 1 : item, "%lf:%lf%c", low, high, &rest) != 2 || !(*low <= *high))
            return cli_error(err, BRAID_ARGUMENT, "--random: '%s' is not [NAME=]LO:HI", item);
        *named |= mine;
    }
    return BRAID_OK;
}

static braid_status random_values(const cli_options *o, size_t index, double low, double high, braid_tensor *t,
                                  braid_error *err) {
    char defaulted[256] = "";
    if (t->rank < 0) t->rank = 0;
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] >= 0) continue;
        t->dims[i] = 1;
        snprintf(defaulted, sizeof defaulted, "free dimensions are 1");
    }
    TRY(tensor_alloc(t, t->type, t->rank, t->dims, err));
    uint64_t state = o->seed * 0x2545f4914f6cdd1du + index * 0x9e3779b97f4a7c15u + 1;
    int64_t count;
    if (!tensor_count(t->rank, t->dims, &count)) return cli_error(err, BRAID_LIMIT, "a shape too large");
    bool real = value_is_float(t->type);
    for (int64_t i = 0; i < count; i++) {
        double unit = (double)(next_random(&state) >> 11) * 0x1p-53;
        double v = real ? low + unit * (high - low) : (double)(int64_t)(low + unit * (high - low + 1));
        if (t->type == BRAID_STRING || !value_set(t, i, v))
            return cli_error(err, BRAID_UNSUPPORTED, "no random values of type %s in this range",
                             braid_type_name(t->type));
    }
    char dims[128];
    dims_text(t->rank, t->dims, dims, sizeof dims);
    if (defaulted[0]) cli_note(o, "input '%s': %s, that is %s (--dim, --shape)", t->name, defaulted, dims);
    return BRAID_OK;
}

/* ---- which value belongs to which input */

/* The value that an item of --input gives to input `name`, or NULL. `NAME=` may be missing when there is one input. */
static const char *value_for(const braid_model *model, const char *item, const char *name) {
    size_t length = strlen(name);
    if (!strncmp(item, name, length) && item[length] == '=') return item + length + 1;
    return braid_model_input_count(model) == 1 && (!strchr(item, '=') || is_file(item)) ? item : NULL;
}

/* The value of input `name` in a round, or NULL; *times counts how often it was given. */
static const char *given_value(const cli_options *o, const braid_model *model, const char *name, size_t round,
                               size_t *times) {
    const char *found = NULL;
    *times = 0;
    for (size_t i = 0; i < o->inputs.count; i++) {
        const char *value = value_for(model, o->inputs.items[i], name);
        if (value && (*times)++ <= round) found = value;
    }
    return found;
}

size_t input_times(const braid_model *model, const cli_options *o, size_t index) {
    size_t times;
    given_value(o, model, braid_model_input(model, index)->name, 0, &times);
    return times;
}

static bool belongs_somewhere(const braid_model *model, const char *item) {
    for (size_t i = 0; i < braid_model_input_count(model); i++)
        if (value_for(model, item, braid_model_input(model, i)->name)) return true;
    return false;
}

void inputs_names(const braid_model *model, char *out, size_t capacity) {
    enum { SHOWN = 4 };
    size_t count = braid_model_input_count(model), n = 0;
    *out = 0;
    for (size_t i = 0; i < count && i < SHOWN && n < capacity; i++)
        n += (size_t)snprintf(out + n, capacity - n, "%s'%.60s'", i ? ", " : "", braid_model_input(model, i)->name);
    if (count > SHOWN && n < capacity) snprintf(out + n, capacity - n, " and %zu more", count - SHOWN);
}

braid_status inputs_rounds(const braid_model *model, const cli_options *o, size_t *rounds, braid_error *err) {
    size_t times;
    *rounds = 1;
    for (size_t i = 0; i < o->inputs.count; i++) {
        char names[300];
        if (belongs_somewhere(model, o->inputs.items[i])) continue;
        inputs_names(model, names, sizeof names);
        return cli_error(err, BRAID_ARGUMENT, "--input: the model has no input for '%.100s', it has %s",
                         o->inputs.items[i], *names ? names : "none");
    }
    for (size_t i = 0; i < braid_model_input_count(model); i++) {
        const char *name = braid_model_input(model, i)->name;
        given_value(o, model, name, 0, &times);
        if (times > 1 && *rounds > 1 && times != *rounds)
            return cli_error(err, BRAID_ARGUMENT, "--input: '%s' is given %zu times, another input %zu times", name,
                             times, *rounds);
        if (times > *rounds) *rounds = times;
    }
    return BRAID_OK;
}

static braid_status load_one(const braid_model *model, const cli_options *o, size_t index, size_t round,
                             bool random_missing, braid_tensor *t, braid_error *err) {
    const braid_port *port = braid_model_input(model, index);
    double low, high;
    bool named;
    size_t times;
    TRY(input_form(o, port, t, err));
    const char *value = given_value(o, model, port->name, round, &times);
    if (value) return read_value(o, value, t, err);
    TRY(random_range(o, port->name, &low, &high, &named, err));
    if (named || o->random_all || random_missing) return random_values(o, index, low, high, t, err);
    char form[256];
    engine_port_text(port, form, sizeof form);
    return cli_error(err, BRAID_ARGUMENT, "%s is not given: --input %s=FILE, or --random", form, port->name);
}

braid_status input_load(const braid_model *model, const cli_options *o, size_t index, size_t round, braid_tensor *t,
                        braid_error *err) {
    return load_one(model, o, index, round, false, t, err);
}

braid_status inputs_load(const braid_model *model, const cli_options *o, size_t round, bool random_missing,
                         braid_tensor **out, size_t *count, braid_error *err) {
    size_t n = braid_model_input_count(model), rounds;
    TRY(inputs_rounds(model, o, &rounds, err));
    braid_tensor *tensors = calloc(n + 1, sizeof *tensors);
    if (!tensors) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++) {
        braid_status status = load_one(model, o, i, round, random_missing, &tensors[i], err);
        tensors[i].name = braid_model_input(model, i)->name;
        if (status == BRAID_OK) continue;
        tensors_free(tensors, n);
        return cli_within(err, status, "input '%s'", braid_model_input(model, i)->name);
    }
    *out = tensors;
    *count = n;
    return BRAID_OK;
}
