/*
 * session.c: sessions, the public side: argument checks, base graph, run.
 */
#include "api/session.h"

#include <stdio.h>

/* ------------------------------------------------------------------------------------------------ creation */

static braid_status find_input(const braid_session *s, const char *name, int32_t *out, braid_error *err) {
    for (int32_t i = 0; i < s->base->n_inputs; i++) {
        if (strcmp(s->base->values[s->base->inputs[i]]->name, name) != 0) continue;
        *out = i;
        return BRAID_OK;
    }
    return error_set(err, BRAID_ARGUMENT, "the model has no input '%s'", name);
}

static braid_status bind_symbol(braid_session *s, const braid_dim_value *d, braid_error *err) {
    if (d->value < 0) return error_set(err, BRAID_ARGUMENT, "dim '%s': %lld is negative", d->symbol, (long long)d->value);
    bool found = false;
    for (int32_t i = 0; i < s->base->n_inputs; i++) {
        tensor_type *t = &s->input_types[i];
        for (int k = 0; k < t->rank; k++) {
            const char *name = dim_is_symbol(t->dims[k]) ? s->base->symbols[dim_symbol(t->dims[k])] : NULL;
            if (!name || strcmp(name, d->symbol) != 0) continue;
            t->dims[k] = d->value;
            found = true;
        }
    }
    return found ? BRAID_OK : error_set(err, BRAID_ARGUMENT, "no input has a dim '%s'", d->symbol);
}

static braid_status bind_shape(braid_session *s, const braid_input_shape *shape, braid_error *err) {
    int32_t i = 0;
    TRY(find_input(s, shape->name, &i, err));
    tensor_type *t = &s->input_types[i];
    if (shape->rank < 0 || shape->rank > BRAID_MAX_RANK)
        return error_set(err, BRAID_LIMIT, "input '%s': rank %d, 0 to %d are possible", shape->name, shape->rank,
                         BRAID_MAX_RANK);
    if (t->rank >= 0 && t->rank != shape->rank)
        return error_set(err, BRAID_SHAPE, "input '%s': rank %d, the model says %d", shape->name, shape->rank, t->rank);
    for (int k = 0; k < shape->rank; k++) {
        bool fixed = t->rank >= 0 && dim_known(t->dims[k]);
        if (shape->dims[k] < 0 || (fixed && t->dims[k] != shape->dims[k]))
            return error_set(err, BRAID_SHAPE, "input '%s': dim %d is %lld, the model says %lld", shape->name, k,
                             (long long)shape->dims[k], (long long)(fixed ? t->dims[k] : -1));
        t->dims[k] = shape->dims[k];
    }
    t->rank = shape->rank;
    return BRAID_OK;
}

static braid_status bind_inputs(braid_session *s, const braid_session_options *o, braid_error *err) {
    s->input_types = arena_array(s->memory, (size_t)s->base->n_inputs + 1, sizeof *s->input_types);
    if (!s->input_types) return error_memory(err);
    for (int32_t i = 0; i < s->base->n_inputs; i++) s->input_types[i] = s->base->values[s->base->inputs[i]]->type;
    for (size_t i = 0; i < o->n_dims; i++) TRY(bind_symbol(s, &o->dims[i], err));
    for (size_t i = 0; i < o->n_shapes; i++) TRY(bind_shape(s, &o->shapes[i], err));
    return BRAID_OK;
}

/* Every node that cannot run at all is refused now, by name. */
static braid_status check_support(const braid_session *s, braid_error *err) {
    for (int32_t i = 0; i < s->base->n_nodes; i++) {
        const node *n = s->base->nodes[i];
        char title[256];
        if (!n->op || (!n->op->eval && !n->op->lower))
            return error_set(err, BRAID_UNSUPPORTED, "%s, domain '%s': not supported", node_title(n, title),
                             n->domain[0] ? n->domain : "ai.onnx");
    }
    return BRAID_OK;
}

static braid_status make_base(braid_session *s, const braid_session_options *o, braid_error *err) {
    uint64_t budget = 64u << 20;
    if (s->model->m->bytes > budget) budget = s->model->m->bytes;
    pass_options passes = {.outputs = o->outputs, .n_outputs = o->n_outputs, .fold_budget = budget};
    TRY(pass_prune(s->model->m->g, s->memory, &passes, &s->base, err));
    TRY(check_support(s, err));
    TRY(graph_infer(s->base, err));
    for (int round = 0; round < 16; round++) {
        int32_t before = s->base->n_nodes;
        TRY(pass_run("fold", s->base, s->memory, &passes, &s->base, err));
        TRY(pass_run("simplify", s->base, s->memory, &passes, &s->base, err));
        if (s->base->n_nodes == before) break;
    }
    return bind_inputs(s, o, err);
}

/* With every input shape known the first stage is made at once, so that its errors and its time belong to creation. */
static braid_status plan_early(braid_session *s, braid_error *err) {
    size_t n = (size_t)s->base->n_inputs;
    tensor *types = arena_array(s->memory, n + 1, sizeof *types);
    place *in = arena_array(s->memory, n + 1, sizeof *in);
    if (!types || !in) return error_memory(err);
    for (size_t i = 0; i < n; i++) {
        if (s->input_types[i].type == BRAID_TYPE_NONE || !tensor_type_static(&s->input_types[i])) return BRAID_OK;
        types[i].type = s->input_types[i];
        in[i].host = &types[i];
    }
    stage *ignored;
    return stage_get(s, &s->stages, s->base, in, false, &ignored, err);
}

static braid_status session_init(braid_session *s, const braid_session_options *o, braid_error *err) {
    if (!(s->memory = arena_new())) return error_memory(err);
    if (s->device->gpu) {
        braid_device_info info;
        gpu_describe(s->device->gpu, &info);
        s->traits = gpu_traits(s->device->gpu);
        s->memory_budget = o->memory_budget ? o->memory_budget : info.memory / 4 * 3;
        TRY(weights_new(s->device, &s->weights, err));
    }
    uint64_t start = clock_ns();
    TRY(make_base(s, o, err));
    log_line(&s->log, BRAID_LOG_INFO, "base graph of %d nodes in %.1f ms", s->base->n_nodes,
             (double)(clock_ns() - start) / 1e6);
    return plan_early(s, err);
}

braid_status braid_session_create(braid_device *const *devices, size_t n_devices, const braid_model *model,
                                  const braid_session_options *options, braid_session **out, braid_error *err) {
    error_clear(err);
    if (!out) return error_set(err, BRAID_ARGUMENT, "braid_session_create: out is NULL");
    *out = NULL;
    if (!devices || n_devices != 1 || !devices[0] || !model)
        return error_set(err, BRAID_ARGUMENT, "braid_session_create: needs one device and a model");
    braid_session_options given = {.size = sizeof given};
    if (options) memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    if ((unsigned)given.schedule > BRAID_SCHEDULE_SERIAL)
        return error_set(err, BRAID_ARGUMENT, "braid_session_create: no schedule %d", (int)given.schedule);
    braid_session *s = mem_alloc(sizeof *s);
    if (!s) return error_memory(err);
    *s = (braid_session){.no_host = given.no_host, .no_fuse = given.no_fuse, .no_reroll = given.no_reroll, .free_order = given.free_order,
                         .profile = given.profile, .schedule = given.schedule,
                         .verify = given.verify, .lanes = 1,
                         .lanes_max = given.lanes_max ? given.lanes_max : 1, .log = {given.log, given.log_user}};
    s->device = device_ref(devices[0]);
    s->model = braid_model_ref(model);
    pthread_mutex_init(&s->lock, NULL);
    braid_status status = session_init(s, &given, err);
    if (status != BRAID_OK) {
        braid_session_free(s);
        return status;
    }
    *out = s;
    return BRAID_OK;
}

void braid_session_free(braid_session *s) {
    if (!s) return;
    stage_cache_clear(s, &s->stages);
    weights_free(s->weights);
    arena_free(s->memory);
    mem_free(s->times);
    mem_free(s->plan_steps);
    mem_free(s->pipelines);
    mem_free(s->choices);
    mem_free(s->log_lanes.status);
    braid_model_free(s->model);
    device_unref(s->device);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

/* ------------------------------------------------------------------------------------------------- inputs */

void session_shape_text(const tensor_type *t, char *buffer, size_t size) {
    size_t n = 0;
    if (size) buffer[0] = 0;
    for (int i = 0; i < t->rank && n < size; i++) {
        const char *comma = i ? "," : "";
        int add = dim_known(t->dims[i]) ? snprintf(buffer + n, size - n, "%s%lld", comma, (long long)t->dims[i])
                                        : snprintf(buffer + n, size - n, "%s?", comma);
        n += add > 0 ? (size_t)add : 0;
    }
}

/* A dim that the model names must be the same wherever the name stands. */
static braid_status bind_dim(const braid_session *s, int64_t *symbols, int32_t input, int k, int64_t d,
                             braid_error *err) {
    const value *v = s->base->values[s->base->inputs[input]];
    int64_t wanted = s->input_types[input].dims[k];
    if (dim_known(wanted)) {
        if (wanted == d) return BRAID_OK;
        char expected[160];
        session_shape_text(&s->input_types[input], expected, sizeof expected);
        return error_set(err, BRAID_SHAPE, "input '%s': dim %d is %lld, expected %lld (shape [%s])", v->name, k,
                         (long long)d, (long long)wanted, expected);
    }
    uint32_t id = dim_symbol(wanted);
    if (id >= (uint32_t)s->base->n_symbols || !s->base->symbols[id]) return BRAID_OK;
    if (symbols[id] >= 0 && symbols[id] != d)
        return error_set(err, BRAID_SHAPE, "input '%s': dim %d ('%s') is %lld here and %lld in another input", v->name,
                         k, s->base->symbols[id], (long long)d, (long long)symbols[id]);
    symbols[id] = d;
    return BRAID_OK;
}

static braid_status check_input(const braid_session *s, int64_t *symbols, int32_t i, const braid_tensor *t,
                                braid_error *err) {
    const char *name = s->base->values[s->base->inputs[i]]->name;
    const tensor_type *wanted = &s->input_types[i];
    if (wanted->type != BRAID_TYPE_NONE && t->type != wanted->type)
        return error_set(err, BRAID_TYPE, "input '%s': type %s, expected %s", name, braid_type_name(t->type),
                         braid_type_name(wanted->type));
    if (t->rank < 0 || t->rank > BRAID_MAX_RANK)
        return error_set(err, BRAID_LIMIT, "input '%s': rank %d, 0 to %d are possible", name, t->rank, BRAID_MAX_RANK);
    if (wanted->rank >= 0 && t->rank != wanted->rank)
        return error_set(err, BRAID_SHAPE, "input '%s': rank %d, expected %d", name, t->rank, wanted->rank);
    for (int k = 0; k < t->rank; k++) {
        if (t->dims[k] < 0)
            return error_set(err, BRAID_SHAPE, "input '%s': dim %d is %lld", name, k, (long long)t->dims[k]);
        if (wanted->rank >= 0) TRY(bind_dim(s, symbols, i, k, t->dims[k], err));
    }
    return BRAID_OK;
}

/* Lanes begin at whole elements. */
static braid_status check_stride(const char *what, const char *name, size_t stride, braid_type type, braid_error *err) {
    size_t element = braid_type_bytes(type);
    if (element < 2 || stride % element == 0) return BRAID_OK;
    return error_set(err, BRAID_ARGUMENT, "%s '%s': lane stride %zu is no multiple of an element's %zu bytes", what, name,
                     stride, element);
}

/* Host steps read inputs where they lie. */
static braid_status check_aligned(const braid_session *s, const char *name, const braid_tensor *t, braid_error *err) {
    bool list = t->flags & BRAID_TENSOR_LANES;
    const void *const *each = t->data;
    size_t element = t->type == BRAID_STRING ? sizeof(char *) : braid_type_bytes(t->type);
    if (element > sizeof(uint64_t)) element = sizeof(uint64_t);
    for (uint32_t lane = 0; element > 1 && lane < (list ? s->lanes : 1); lane++) {
        uintptr_t at = (uintptr_t)(list ? each[lane] : t->data);
        if (at % element == 0) continue;
        return error_set(err, BRAID_ARGUMENT, "input '%s': data at an address that is no multiple of an element's %zu bytes",
                         name, element);
    }
    return BRAID_OK;
}

/* A list of buffers, one for each lane, of the `bytes` that the tensor states. */
static braid_status check_list(const braid_session *s, const char *what, const char *name, const braid_tensor *t,
                               size_t needed, braid_error *err) {
    const void *const *each = t->data;
    if (t->flags & (BRAID_TENSOR_SHARED | BRAID_TENSOR_OWNED))
        return error_set(err, BRAID_ARGUMENT, "%s '%s': a list of lanes is not %s", what, name,
                         t->flags & BRAID_TENSOR_SHARED ? "shared by all lanes" : "one of braid's own buffers");
    if (t->lane_stride)
        return error_set(err, BRAID_ARGUMENT, "%s '%s': a list of lanes has no lane stride", what, name);
    if (!each) return error_set(err, BRAID_ARGUMENT, "%s '%s': no list of lanes", what, name);
    for (uint32_t lane = 0; needed && lane < s->lanes; lane++)
        if (!each[lane]) return error_set(err, BRAID_ARGUMENT, "%s '%s': lane %u has no buffer", what, name, lane);
    return BRAID_OK;
}

/* The bytes of all lanes from the first to the end of the last. */
static braid_status input_extent(const braid_session *s, const char *name, size_t stride, size_t lane_bytes,
                                 size_t *needed, braid_error *err) {
    if (stride && stride < lane_bytes)
        return error_set(err, BRAID_ARGUMENT, "input '%s': lane stride %zu, a lane has %zu bytes", name, stride, lane_bytes);
    if (!size_mul(stride, s->lanes - 1, needed) || !size_add(*needed, lane_bytes, needed))
        return error_set(err, BRAID_LIMIT, "input '%s': too large", name);
    return BRAID_OK;
}

static braid_status input_place(const braid_session *s, int32_t i, const braid_tensor *t, bool planning, place *out,
                                arena *memory, braid_error *err) {
    const char *name = s->base->values[s->base->inputs[i]]->name;
    tensor *h = arena_alloc(memory, sizeof *h);
    if (!h) return error_memory(err);
    h->type = (tensor_type){.type = t->type, .rank = t->rank};
    memcpy(h->type.dims, t->dims, sizeof h->type.dims);
    for (int k = t->rank; k < BRAID_MAX_RANK; k++) h->type.dims[k] = 0;
    if (!tensor_type_bytes(&h->type, &h->bytes)) return error_set(err, BRAID_LIMIT, "input '%s': too large", name);
    if (planning) {
        *out = (place){.host = h, .stride = s->lanes == 1 || (t->flags & BRAID_TENSOR_SHARED) ? 0 : h->bytes};
        return BRAID_OK;
    }
    bool list = t->flags & BRAID_TENSOR_LANES;
    if (list) TRY(check_list(s, "input", name, t, h->bytes, err));
    size_t stride = s->lanes == 1 || (t->flags & BRAID_TENSOR_SHARED) ? 0 : t->lane_stride ? t->lane_stride : h->bytes;
    size_t needed = h->bytes;
    if (!list) TRY(input_extent(s, name, stride, h->bytes, &needed, err));
    TRY(check_stride("input", name, stride, t->type, err));
    if (t->bytes < needed)
        return error_set(err, BRAID_SHAPE, "input '%s': %zu bytes, its shape needs %zu", name, t->bytes, needed);
    if (h->bytes && !t->data) return error_set(err, BRAID_ARGUMENT, "input '%s': no data", name);
    if (h->bytes) TRY(check_aligned(s, name, t, err));
    h->data = list ? ((void *const *)t->data)[0] : t->data;
    *out = (place){.host = h, .stride = stride, .each = list ? t->data : NULL};
    return BRAID_OK;
}

braid_status session_inputs(braid_session *s, const braid_tensor *in, size_t n_in, bool planning, place *places,
                            arena *memory, braid_error *err) {
    int64_t *symbols = arena_array(memory, (size_t)s->base->n_symbols + 1, sizeof *symbols);
    if (!symbols) return error_memory(err);
    for (int32_t i = 0; i < s->base->n_symbols; i++) symbols[i] = -1;
    for (size_t k = 0; k < n_in; k++) {
        int32_t i = 0;
        if (!in[k].name) return error_set(err, BRAID_ARGUMENT, "input tensor %zu has no name", k);
        TRY(find_input(s, in[k].name, &i, err));
        if (places[i].host) return error_set(err, BRAID_ARGUMENT, "input '%s' is given twice", in[k].name);
        TRY(check_input(s, symbols, i, &in[k], err));
        TRY(input_place(s, i, &in[k], planning, &places[i], memory, err));
    }
    for (int32_t i = 0; i < s->base->n_inputs; i++)
        if (!places[i].host)
            return error_set(err, BRAID_ARGUMENT, "input '%s' is missing", s->base->values[s->base->inputs[i]]->name);
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------ outputs */

static braid_status find_output(const braid_session *s, const braid_tensor *t, size_t k, int32_t *out,
                                braid_error *err) {
    if (k < (size_t)s->base->n_outputs && (!t->name || strcmp(s->base->output_names[k], t->name) == 0)) {
        *out = (int32_t)k; /* the usual order: no search */
        return BRAID_OK;
    }
    for (int32_t i = 0; t->name && i < s->base->n_outputs; i++) {
        if (strcmp(s->base->output_names[i], t->name) != 0) continue;
        *out = i;
        return BRAID_OK;
    }
    if (!t->name)
        return error_set(err, BRAID_ARGUMENT, "output tensor %zu has no name, and the session has %d outputs", k,
                         (int)s->base->n_outputs);
    return error_set(err, BRAID_ARGUMENT, "the session has no output '%s'", t->name);
}

/* One block: the pointers, then the characters. */
static braid_status copy_strings(const tensor *from, braid_tensor *to, braid_error *err) {
    int64_t count = 0;
    tensor_type_count(&from->type, &count);
    const char *const *in = from->data;
    size_t total = (size_t)count * sizeof(char *) + 1;
    for (int64_t i = 0; i < count; i++) total += strlen(in[i] ? in[i] : "") + 1;
    if (to->data) return error_set(err, BRAID_ARGUMENT, "string output '%s' must be allocated by braid", to->name);
    const char **list = mem_alloc(total);
    if (!list) return error_memory(err);
    char *at = (char *)(list + count);
    for (int64_t i = 0; i < count; i++) {
        list[i] = at;
        at = stpcpy(at, in[i] ? in[i] : "") + 1;
    }
    to->data = list;
    to->bytes = total;
    to->flags |= BRAID_TENSOR_OWNED;
    return BRAID_OK;
}

/* The caller's buffer, or one of braid's, for lanes `stride` bytes apart; of a list, for one lane. */
static braid_status make_room(const braid_session *s, braid_tensor *to, size_t needed, size_t stride, braid_error *err) {
    size_t room = to->bytes, whole = needed;
    if (to->flags & BRAID_TENSOR_LANES) {
        TRY(check_list(s, "output", to->name, to, needed, err));
    } else {
        if (stride < needed)
            return error_set(err, BRAID_ARGUMENT, "output '%s': lane stride %zu, a lane has %zu bytes", to->name, stride, needed);
        if (s->lanes > 1) TRY(check_stride("output", to->name, stride, to->type, err));
        if (!size_mul(stride, s->lanes - 1, &whole) || !size_add(whole, needed, &whole))
            return error_set(err, BRAID_LIMIT, "output '%s': too large", to->name);
    }
    if (!to->data) {
        if (!(to->data = mem_alloc(whole ? whole : 1))) return error_memory(err);
        to->flags |= BRAID_TENSOR_OWNED;
    } else if (room < whole) {
        return error_set(err, BRAID_SHAPE, "output '%s': the buffer has %zu bytes, %zu are needed", to->name, room, whole);
    }
    to->bytes = whole;
    return BRAID_OK;
}

/* Fills in what the output is and makes room for it; strings are delivered at once. */
static braid_status prepare_output(braid_session *s, int32_t i, place *from, braid_tensor *to, size_t *lane_bytes,
                                   arena *memory, braid_error *err) {
    to->name = s->base->output_names[i];
    *lane_bytes = 0;
    TRY(place_to_host(s, &from->host->type, from, memory, err));
    const tensor *t = from->host;
    to->type = t->type.type;
    to->rank = t->type.rank;
    memcpy(to->dims, t->type.dims, sizeof to->dims);
    if (t->type.type == BRAID_STRING && (s->lanes > 1 || (to->flags & BRAID_TENSOR_LANES)))
        return error_set(err, BRAID_UNSUPPORTED, "output '%s': strings in several lanes", to->name);
    if (t->type.type == BRAID_STRING) return copy_strings(t, to, err);
    *lane_bytes = t->bytes;
    tensor_type_bytes(&t->type, lane_bytes);
    size_t stride = to->data && to->lane_stride ? to->lane_stride : *lane_bytes;
    TRY(make_room(s, to, *lane_bytes, stride, err));
    to->lane_stride = s->lanes > 1 && !(to->flags & BRAID_TENSOR_LANES) ? stride : 0;
    return BRAID_OK;
}

static lane_room room_of(const braid_tensor *t) {
    bool list = t->flags & BRAID_TENSOR_LANES;
    return (lane_room){.data = t->data, .stride = t->lane_stride, .each = list ? t->data : NULL};
}

static braid_status deliver(const braid_session *s, place *const *from, const braid_tensor *to, const size_t *bytes,
                            size_t n, arena *memory, braid_error *err) {
    carriage *list = arena_array(memory, n + 1, sizeof *list);
    if (!list) return error_memory(err);
    for (size_t k = 0; k < n; k++)
        list[k] = (carriage){.to = room_of(&to[k]), .from = from[k], .lanes = s->lanes, .bytes = bytes[k]};
    carry(list, n);
    for (size_t k = 0; k < n; k++)
        for (uint32_t lane = 0; bytes[k] && lane < s->lanes; lane++)
            if (!lane_good(s, lane)) memset(room_lane(&list[k].to, lane), 0, bytes[k]);
    return BRAID_OK;
}

/* ---------------------------------------------------------------------------------------------------- run */

static braid_status run_locked(braid_session *s, const braid_tensor *in, size_t n_in, braid_tensor *out, size_t n_out,
                               arena *memory, braid_error *err) {
    place *inputs = arena_array(memory, (size_t)s->base->n_inputs + 1, sizeof *inputs);
    place *outputs = arena_array(memory, (size_t)s->base->n_outputs + 1, sizeof *outputs);
    int32_t *wanted = arena_array(memory, n_out + 1, sizeof *wanted);
    size_t *lane_bytes = arena_array(memory, n_out + 1, sizeof *lane_bytes);
    place **from = arena_array(memory, n_out + 1, sizeof *from);
    if (!inputs || !outputs || !wanted || !lane_bytes || !from) return error_memory(err);
    TRY(lanes_begin(s, err));
    TRY(session_inputs(s, in, n_in, false, inputs, memory, err));
    for (size_t k = 0; k < n_out; k++) TRY(find_output(s, &out[k], k, &wanted[k], err));
    s->spent = (gpu_times){0};
    s->n_times = 0;
    TRY(session_run_lanes(s, inputs, outputs, memory, err));
    for (size_t k = 0; k < n_out; k++) {
        from[k] = &outputs[wanted[k]];
        TRY(prepare_output(s, wanted[k], from[k], &out[k], &lane_bytes[k], memory, err));
    }
    TRY(outputs_apart(s, out, lane_bytes, n_out, from, memory, err));
    return deliver(s, from, out, lane_bytes, n_out, memory, err);
}

static braid_status check_count(const braid_session *s, size_t lanes, braid_error *err) {
    if (lanes && lanes <= s->lanes_max) return BRAID_OK;
    return error_set(err, BRAID_ARGUMENT, "%zu lanes, the session allows 1 to %u", lanes, s->lanes_max);
}

braid_status braid_session_run(braid_session *s, size_t lanes, const braid_tensor *in, size_t n_in, braid_tensor *out,
                               size_t n_out, braid_error *err) {
    error_clear(err);
    if (!s || (n_in && !in) || (n_out && !out)) return error_set(err, BRAID_ARGUMENT, "braid_session_run: a pointer is NULL");
    TRY(check_count(s, lanes, err));
    arena *memory = arena_new();
    if (!memory) return error_memory(err);
    pthread_mutex_lock(&s->lock);
    s->lanes = s->asked = (uint32_t)lanes;
    braid_status status = run_locked(s, in, n_in, out, n_out, memory, err);
    for (size_t k = 0; status != BRAID_OK && k < n_out; k++)
        if (out[k].flags & BRAID_TENSOR_OWNED) braid_tensor_free(&out[k]);
    s->run_status = status;
    if (status == BRAID_OK) status = lanes_verdict(s, err);
    s->lanes = 1;
    pthread_mutex_unlock(&s->lock);
    arena_free(memory);
    return status;
}

static braid_status plan_locked(braid_session *s, const braid_tensor *in, size_t n_in, arena *memory, braid_error *err) {
    stage *st;
    place *inputs = arena_array(memory, (size_t)s->base->n_inputs + 1, sizeof *inputs);
    if (!inputs) return error_memory(err);
    TRY(session_inputs(s, in, n_in, true, inputs, memory, err));
    return stage_get(s, &s->stages, s->base, inputs, false, &st, err);
}

braid_status braid_session_plan(braid_session *s, size_t lanes, const braid_tensor *in, size_t n_in, braid_error *err) {
    error_clear(err);
    if (!s || (n_in && !in)) return error_set(err, BRAID_ARGUMENT, "braid_session_plan: a pointer is NULL");
    TRY(check_count(s, lanes, err));
    arena *memory = arena_new();
    if (!memory) return error_memory(err);
    pthread_mutex_lock(&s->lock);
    s->lanes = s->asked = (uint32_t)lanes;
    braid_status status = plan_locked(s, in, n_in, memory, err);
    s->lanes = 1;
    pthread_mutex_unlock(&s->lock);
    arena_free(memory);
    return status;
}

braid_status braid_session_lane_status(const braid_session *s, size_t lane) {
    if (!s) return BRAID_ARGUMENT;
    pthread_mutex_lock((pthread_mutex_t *)&s->lock);
    braid_status status = lane >= s->log_lanes.lanes       ? BRAID_ARGUMENT
                          : s->run_status != BRAID_OK ? s->run_status
                                                      : s->log_lanes.status[lane];
    pthread_mutex_unlock((pthread_mutex_t *)&s->lock);
    return status;
}

/* ------------------------------------------------------------------------------------------------ reports */

braid_status session_add_time(braid_session *s, braid_step_time t, braid_error *err) {
    if (s->n_times == s->cap_times) {
        size_t wanted = s->cap_times ? s->cap_times * 2 : 256;
        braid_step_time *grown = mem_realloc(s->times, wanted * sizeof *grown);
        if (!grown) return error_memory(err);
        s->times = grown;
        s->cap_times = wanted;
    }
    s->times[s->n_times++] = t;
    return BRAID_OK;
}

uint64_t braid_session_device_ns(const braid_session *s) { return s ? s->spent.device_ns : 0; }

void braid_session_times(const braid_session *s, braid_run_times *out) {
    if (!out) return;
    *out = (braid_run_times){0};
    if (s) *out = (braid_run_times){s->spent.device_ns, s->spent.upload_ns, s->spent.download_ns};
}

size_t braid_session_profile(const braid_session *s, const braid_step_time **out) {
    if (out) *out = s ? s->times : NULL;
    return s ? s->n_times : 0;
}

static void add_stage_stats(const stage *st, braid_plan_stats *out) {
    for (int32_t i = 0; i < st->n_segments; i++) {
        const segment *seg = &st->segments[i];
        out->phases++;
        if (seg->on_host) {
            out->host_steps += (uint64_t)seg->n_nodes;
            continue;
        }
        const plan *p = seg->p;
        out->steps += (uint64_t)p->n_steps;
        out->dispatches += (uint64_t)p->n_dispatches;
        out->waves += (uint64_t)p->n_waves;
        out->barriers += p->n_waves > 0 ? (uint64_t)p->n_waves - 1 : 0;
        out->arena_bytes += p->arena_bytes;
        out->arena_bound += p->arena_bound;
    }
    if (st->rest_stages.first) add_stage_stats(st->rest_stages.first, out);
}

const stage *session_stage(const braid_session *s) {
    const stage *last = s->stages.first;
    for (const stage *st = last; st; st = st->next)
        if (st->used > last->used) last = st;
    return last;
}

void braid_session_stats(const braid_session *s, braid_plan_stats *out) {
    if (!out) return;
    *out = (braid_plan_stats){0};
    if (!s) return;
    pthread_mutex_lock((pthread_mutex_t *)&s->lock);
    const stage *last = session_stage(s);
    if (last) add_stage_stats(last, out);
    out->weight_bytes = weights_bytes(s->weights);
    if (s->device->gpu) out->pipelines = gpu_pipeline_count(s->device->gpu);
    out->pipelines_made = s->n_pipelines;
    out->pipelines_ns = s->pipelines_ns;
    pthread_mutex_unlock((pthread_mutex_t *)&s->lock);
}
