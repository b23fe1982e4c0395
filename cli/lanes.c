/* lanes: the inputs of `braid run` as lanes, how many there are, and the rounds they run in. */
#include "cli.h"

#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

/* Most lanes of one round. */
enum { ROUND_LANES = 256 };

static braid_status no_memory(braid_error *err) {
    return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
}

/* ---- patterns: --input x=*.png with any of * ? [ is as many --input as there are files */

static braid_status keep_item(cli_list *list, const char *name, size_t length, const char *value, braid_error *err) {
    const char **grown = realloc(list->items, (list->count + 1) * sizeof *grown);
    if (!grown) return no_memory(err);
    list->items = grown;
    char *text = malloc(length + strlen(value) + 1);
    if (!text) return no_memory(err);
    memcpy(text, name, length);
    memcpy(text + length, value, strlen(value) + 1);
    list->items[list->count++] = text;
    return BRAID_OK;
}

braid_status inputs_expand(const cli_list *given, cli_list *out, braid_error *err) {
    for (size_t i = 0; i < given->count; i++) {
        const char *item = given->items[i], *equals = strchr(item, '='), *value = equals ? equals + 1 : item;
        size_t length = (size_t)(value - item);
        if (!strpbrk(value, "*?[") || access(value, F_OK) == 0 || access(item, F_OK) == 0) {
            TRY(keep_item(out, item, length, value, err));
            continue;
        }
        glob_t found = {0};
        int code = glob(value, 0, NULL, &found);
        braid_status status = code == GLOB_NOSPACE ? no_memory(err)
                              : code               ? cli_error(err, BRAID_IO, "--input: no file matches '%s'", value)
                                                   : BRAID_OK;
        for (size_t k = 0; k < found.gl_pathc && status == BRAID_OK; k++)
            status = keep_item(out, item, length, found.gl_pathv[k], err);
        if (!code) globfree(&found);
        TRY(status);
    }
    return BRAID_OK;
}

void inputs_release(cli_list *list) {
    for (size_t i = 0; i < list->count; i++) free((void *)(uintptr_t)list->items[i]);
    free(list->items);
}

/* ---- which inputs have lanes */

static bool listed(const cli_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->items[i], name)) return true;
    return false;
}

braid_status lanes_check_names(const braid_model *model, const cli_list *list, const char *option, braid_error *err) {
    for (size_t i = 0; i < list->count; i++) {
        bool found = false;
        char names[300];
        for (size_t k = 0; k < braid_model_input_count(model); k++)
            found |= !strcmp(braid_model_input(model, k)->name, list->items[i]);
        if (found) continue;
        inputs_names(model, names, sizeof names);
        return cli_error(err, BRAID_ARGUMENT, "%s: the model has no input '%.100s', it has %s", option, list->items[i],
                         *names ? names : "none");
    }
    return BRAID_OK;
}

static bool dims_match(int n, const int64_t *form, const int64_t *dims) {
    for (int i = 0; i < n; i++)
        if (form[i] >= 0 && form[i] != dims[i]) return false;
    return true;
}

/* Bytes of one lane; whole bytes only. */
static braid_status lane_size(const braid_tensor *t, size_t *bytes, braid_error *err) {
    int64_t count;
    if (t->type == BRAID_STRING) return cli_error(err, BRAID_UNSUPPORTED, "strings in several lanes");
    if (!tensor_count(t->rank, t->dims, &count) || !tensor_span(t->type, count, bytes))
        return cli_error(err, BRAID_LIMIT, "a tensor of this shape is too large");
    if (*bytes * 8 != (size_t)count * (size_t)value_bits(t->type))
        return cli_error(err, BRAID_UNSUPPORTED, "lanes of type %s that do not end at a byte",
                         braid_type_name(t->type));
    return BRAID_OK;
}

/* Takes the axis of lanes off a file's shape, where it has one; *lanes stays 0 where not. */
static braid_status take_axis(const braid_tensor *form, bool forced, braid_tensor *t, size_t *lanes, braid_error *err) {
    bool plain = form->rank < 0 || (form->rank == t->rank && dims_match(t->rank, form->dims, t->dims));
    bool axis =
        form->rank < 0 ? t->rank > 0 : t->rank == form->rank + 1 && dims_match(form->rank, form->dims, t->dims + 1);
    bool first = form->rank > 0 && t->rank == form->rank && (form->dims[0] == 1 || (forced && form->dims[0] < 0)) &&
                 dims_match(form->rank - 1, form->dims + 1, t->dims + 1);
    size_t one;
    char dims[128], wanted[128];
    dims_text(t->rank, t->dims, dims, sizeof dims);
    dims_text(form->rank < 0 ? 0 : form->rank, form->dims, wanted, sizeof wanted);
    if (forced && !axis && !first) return cli_error(err, BRAID_SHAPE, "--lane: %s is not several of %s", dims, wanted);
    if (!forced && (plain || !(axis || first))) return BRAID_OK;
    if (t->dims[0] < 1 || t->dims[0] > LANES_TOP)
        return cli_error(err, BRAID_SHAPE, "%s: %lld lanes, 1 to %d are possible", dims, (long long)t->dims[0],
                         LANES_TOP);
    *lanes = (size_t)t->dims[0];
    if (first)
        t->dims[0] = 1;
    else
        memmove(t->dims, t->dims + 1, (size_t)--t->rank * sizeof *t->dims);
    return lane_size(t, &one, err);
}

/* Puts another lane behind those that `all` has; the first decides type and shape. */
static braid_status add_lane(braid_tensor *all, size_t lane, size_t lanes, const braid_tensor *t, braid_error *err) {
    size_t one, whole;
    TRY(lane_size(t, &one, err));
    if (lane == 0) {
        if (__builtin_mul_overflow(one, lanes, &whole)) return cli_error(err, BRAID_LIMIT, "too many lanes");
        *all = *t;
        all->bytes = whole;
        all->data = malloc(whole + 1);
        if (!all->data) return cli_error(err, BRAID_HOST_MEMORY, "no memory for %zu bytes", whole);
    }
    if (all->type != t->type || all->rank != t->rank || memcmp(all->dims, t->dims, (size_t)t->rank * sizeof *t->dims)) {
        char a[128], b[128];
        dims_text(t->rank, t->dims, a, sizeof a);
        dims_text(all->rank, all->dims, b, sizeof b);
        return cli_error(err, BRAID_SHAPE, "lane %zu is %s %s, lane 0 %s %s", lane, braid_type_name(t->type), a,
                         braid_type_name(all->type), b);
    }
    memcpy((char *)all->data + lane * one, t->data, one);
    return BRAID_OK;
}

/* A lane from each value given, or from random values: lane k is what --seed S + k gives. */
static braid_status load_lanes(const braid_model *model, const cli_options *o, size_t index, bool random, size_t lanes,
                               braid_tensor *all, braid_error *err) {
    cli_options mine = *o;
    for (size_t lane = 0; lane < lanes; lane++) {
        braid_tensor t = {0};
        braid_status status = input_load(model, &mine, index, random ? 0 : lane, &t, err);
        if (status == BRAID_OK) status = add_lane(all, lane, lanes, &t, err);
        tensor_drop(&t);
        if (status != BRAID_OK) return status;
        if (random) mine.seed++, mine.quiet = true; /* one note is enough */
    }
    return BRAID_OK;
}

/* Loads what is given; inputs without a value wait until the number of lanes is known. */
static braid_status load_given(const braid_model *model, const cli_options *o, size_t index, braid_tensor *t,
                               size_t *lanes, braid_error *err) {
    const braid_port *port = braid_model_input(model, index);
    size_t times = input_times(model, o, index);
    bool shared = listed(&o->shared, port->name), forced = listed(&o->lane_inputs, port->name);
    braid_tensor form;
    *lanes = 0;
    if (shared && (forced || times > 1))
        return cli_error(err, BRAID_ARGUMENT, "--shared: it has %s", forced ? "--lane too" : "a value for each lane");
    if (times == 0) return BRAID_OK;
    if (times > 1) {
        *lanes = times;
        return load_lanes(model, o, index, false, times, t, err);
    }
    TRY(input_form(o, port, &form, err));
    TRY(input_load(model, o, index, 0, t, err));
    TRY(shared ? BRAID_OK : take_axis(&form, forced, t, lanes, err));
    if (*lanes == 0) t->flags |= BRAID_TENSOR_SHARED;
    return BRAID_OK;
}

/* All inputs with lanes have the same number of them, the one that -n says. */
static braid_status agree(size_t own, const char *name, size_t *lanes, const char **who, braid_error *err) {
    if (own == 0) return BRAID_OK;
    if (*who && own != *lanes)
        return cli_error(err, BRAID_ARGUMENT, "input '%s' has %zu lane%s, %s %zu", name, own, own > 1 ? "s" : "", *who,
                         *lanes);
    *lanes = own;
    *who = "another input";
    return BRAID_OK;
}

static braid_status load_all(const braid_model *model, const cli_options *o, lane_inputs *l, braid_error *err) {
    const char *who = o->lanes ? "-n says" : NULL;
    bool varies = false;
    for (size_t i = 0; i < l->n_in; i++) {
        size_t own;
        const char *name = braid_model_input(model, i)->name;
        braid_status status = load_given(model, o, i, &l->in[i], &own, err);
        if (status != BRAID_OK) return cli_within(err, status, "input '%s'", name);
        l->in[i].name = name;
        TRY(agree(own, name, &l->lanes, &who, err));
        l->several |= own > 0;
        varies |= own > 0 || (!l->in[i].data && !listed(&o->shared, name));
    }
    if (l->lanes > 1 && !varies) return cli_error(err, BRAID_ARGUMENT, "%zu lanes, but no input has lanes", l->lanes);
    for (size_t i = 0; i < l->n_in; i++) {
        const char *name = braid_model_input(model, i)->name;
        if (l->in[i].data) continue;
        bool shared = !l->several || listed(&o->shared, name);
        braid_status status = shared ? input_load(model, o, i, 0, &l->in[i], err)
                                     : load_lanes(model, o, i, true, l->lanes, &l->in[i], err);
        if (status != BRAID_OK) return cli_within(err, status, "input '%s'", name);
        l->in[i].name = name;
        if (shared) l->in[i].flags |= BRAID_TENSOR_SHARED;
    }
    return BRAID_OK;
}

braid_status lanes_load(const braid_model *model, const cli_options *o, lane_inputs *l, braid_error *err) {
    uint32_t number = 1;
    size_t count;
    if (o->lanes) TRY(args_lanes(o->lanes, &number, 1, &count, err));
    TRY(inputs_rounds(model, o, &count, err));
    TRY(lanes_check_names(model, &o->shared, "--shared", err));
    TRY(lanes_check_names(model, &o->lane_inputs, "--lane", err));
    *l = (lane_inputs){.lanes = number, .several = o->lanes || o->split, .n_in = braid_model_input_count(model)};
    l->in = calloc(l->n_in + 1, sizeof *l->in);
    TRY(l->in ? load_all(model, o, l, err) : no_memory(err));
    l->failed = calloc(l->lanes, sizeof *l->failed);
    return l->failed ? BRAID_OK : no_memory(err);
}

void lanes_free(lane_inputs *l) {
    tensors_free(l->in, l->n_in);
    free(l->failed);
}

uint32_t lanes_in_round(const lane_inputs *l) {
    return l->lanes < ROUND_LANES ? (uint32_t)l->lanes : ROUND_LANES;
}

void lanes_slice(const lane_inputs *l, size_t first, braid_tensor *in) {
    for (size_t i = 0; i < l->n_in; i++) {
        in[i] = l->in[i];
        if (in[i].flags & BRAID_TENSOR_SHARED) continue;
        size_t skipped = in[i].bytes / l->lanes * first;
        in[i].data = (char *)in[i].data + skipped;
        in[i].bytes -= skipped;
    }
}

/* ---- inputs of bench and profile */

/* A value that was given, in each lane. */
static braid_status copy_lane(braid_tensor *t, uint32_t lanes, braid_error *err) {
    size_t one, whole;
    TRY(lane_size(t, &one, err));
    if (__builtin_mul_overflow(one, lanes, &whole)) return cli_error(err, BRAID_LIMIT, "too many lanes");
    char *grown = realloc(t->data, whole + 1);
    if (!grown) return cli_error(err, BRAID_HOST_MEMORY, "no memory for %zu bytes", whole);
    t->data = grown;
    t->bytes = whole;
    for (uint32_t lane = 1; lane < lanes; lane++) memcpy(grown + lane * one, grown, one);
    return BRAID_OK;
}

braid_status lanes_spread(const braid_model *model, const cli_options *o, braid_tensor *in, size_t n_in, uint32_t lanes,
                          braid_error *err) {
    cli_options mine = *o;
    mine.random_all = mine.quiet = true;
    for (size_t i = 0; lanes > 1 && i < n_in; i++) {
        braid_tensor all = {0};
        bool given = input_times(model, o, i) > 0;
        braid_status status =
            given ? copy_lane(&in[i], lanes, err) : load_lanes(model, &mine, i, true, lanes, &all, err);
        if (status != BRAID_OK) {
            tensor_drop(&all);
            return cli_within(err, status, "input '%s'", in[i].name);
        }
        if (given) continue;
        all.name = in[i].name;
        tensor_drop(&in[i]);
        in[i] = all;
    }
    return BRAID_OK;
}

/* ---- rounds */

/* The output of all lanes: one lane's shape with the number of lanes before it. */
static braid_status output_alloc(const braid_tensor *t, size_t lanes, braid_tensor *all, braid_error *err) {
    int64_t dims[BRAID_MAX_RANK] = {(int64_t)lanes};
    size_t one;
    if (t->rank == BRAID_MAX_RANK) return cli_error(err, BRAID_LIMIT, "rank %d leaves no room for lanes", t->rank);
    TRY(lane_size(t, &one, err));
    memcpy(dims + 1, t->dims, (size_t)t->rank * sizeof *dims);
    return tensor_alloc(all, t->type, t->rank + 1, dims, err);
}

static braid_status keep_output(const braid_tensor *t, size_t first, size_t n, size_t lanes, braid_tensor *all,
                                braid_error *err) {
    size_t one;
    if (!all->data) TRY(output_alloc(t, lanes, all, err));
    if (t->rank != all->rank - 1 || memcmp(t->dims, all->dims + 1, (size_t)t->rank * sizeof *t->dims))
        return cli_error(err, BRAID_SHAPE, "its shape differs between lanes");
    TRY(lane_size(t, &one, err));
    memcpy((char *)all->data + first * one, t->data, n * one);
    return BRAID_OK;
}

/* After a round that ended with `status`: true when some of its lanes are right; the others are noted. */
static bool note_failures(const engine *e, lane_inputs *l, size_t first, size_t n, const braid_error *why) {
    size_t before = l->n_failed, right = 0;
    for (size_t i = 0; i < n; i++) right += braid_session_lane_status(e->session, i) == BRAID_OK;
    for (size_t i = 0; right && i < n; i++) {
        l->failed[first + i] = braid_session_lane_status(e->session, i) != BRAID_OK;
        l->n_failed += l->failed[first + i];
    }
    if (before == 0 && l->n_failed) l->why = *why;
    return right > 0;
}

static braid_status run_some(engine *e, lane_inputs *l, size_t first, size_t n, braid_tensor *in, braid_tensor *part,
                             braid_tensor *out, size_t n_out, braid_error *err) {
    lanes_slice(l, first, in);
    for (size_t i = 0; i < n_out; i++) part[i] = (braid_tensor){.name = out[i].name};
    braid_status status = braid_session_run(e->session, n, in, l->n_in, part, n_out, err);
    if (status != BRAID_OK && n < l->lanes) status = cli_within(err, status, "lanes %zu to %zu", first, first + n - 1);
    if (status != BRAID_OK && note_failures(e, l, first, n, err)) status = BRAID_OK;
    for (size_t i = 0; i < n_out; i++) {
        if (status == BRAID_OK && (status = keep_output(&part[i], first, n, l->lanes, &out[i], err)) != BRAID_OK)
            status = cli_within(err, status, "output '%s'", out[i].name);
        tensor_drop(&part[i]);
    }
    return status;
}

static braid_status run_rounds(engine *e, const cli_options *o, lane_inputs *l, braid_tensor *in, braid_tensor *part,
                               braid_tensor *out, size_t n_out, braid_error *err) {
    size_t most = lanes_in_round(l);
    uint64_t start = cli_clock_ns();
    cli_progress(o, "%zu lanes", l->lanes);
    for (size_t first = 0; first < l->lanes;) {
        size_t n = l->lanes - first < most ? l->lanes - first : most;
        braid_status status = run_some(e, l, first, n, in, part, out, n_out, err);
        if (n > 1 && (status == BRAID_DEVICE_MEMORY || status == BRAID_LIMIT)) {
            most = n / 2; /* fewer at once may fit */
            continue;
        }
        TRY(status);
        first += n;
        double seconds = (double)(cli_clock_ns() - start) / 1e9;
        if (first < l->lanes)
            cli_progress(o, "%zu of %zu lanes, %.1f items/s", first, l->lanes, (double)first / seconds);
    }
    cli_progress_end();
    return BRAID_OK;
}

braid_status lanes_run(engine *e, const cli_options *o, lane_inputs *l, braid_tensor *out, size_t n_out,
                       braid_error *err) {
    if (!l->several) return braid_session_run(e->session, 1, l->in, l->n_in, out, n_out, err);
    braid_tensor *in = calloc(l->n_in + 1, sizeof *in), *part = calloc(n_out + 1, sizeof *part);
    braid_status status = in && part ? run_rounds(e, o, l, in, part, out, n_out, err) : no_memory(err);
    free(in);
    free(part);
    return status;
}

braid_tensor lanes_view(const braid_tensor *all, size_t lane) {
    braid_tensor one = *all;
    one.bytes = all->bytes / (size_t)all->dims[0];
    one.data = (char *)all->data + lane * one.bytes;
    memmove(one.dims, one.dims + 1, (size_t)--one.rank * sizeof *one.dims);
    return one;
}
