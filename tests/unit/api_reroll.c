/*
 * api_reroll.c: clone graphs in every disguise give the bits that they give without re-rolling, with one lane and with
 * seven, in poisoned memory; clones around host steps, data-dependent shapes and failing lanes.
 */
#include "ops_gpu.h"

#include "clones.h"

enum { LANES = 7, MOST = 16 };

static braid_model *wrap(const clone_spec *s) {
    braid_error err = {0};
    braid_model *model = mem_alloc(sizeof *model);
    memset(model, 0, sizeof *model);
    model->memory = arena_new();
    model->references = 1;
    model->m = arena_alloc(model->memory, sizeof *model->m);
    if (!(model->m->g = clone_graph(model->memory, s, &err))) fail_msg("%s", err.message);
    return model;
}

typedef struct outcome {
    braid_tensor out[MOST];
    braid_plan_stats stats;
    int32_t bundles;
    braid_status status;
    braid_error err;
} outcome;

static void run(const braid_model *model, bool reroll, bool any, uint32_t lanes, int poison, const braid_tensor *in,
                outcome *to) {
    braid_session_options o = {.size = sizeof o, .lanes_max = LANES, .no_reroll = !reroll, .verify = true};
    braid_device *device = ops_device(false);
    braid_session *s = NULL;
    braid_error err = {0};
    size_t n_out = (size_t)model->m->g->n_outputs;
    *to = (outcome){0};
    assert_true(n_out <= MOST);
    if (braid_session_create(&device, 1, model, &o, &s, &err) != BRAID_OK) fail_msg("%s", err.message);
    if (poison)
        s->test = (session_test){
            .redzone = true, .shuffle = poison > 1, .poison = true, .poison_byte = poison > 1 ? 0xff : 0x7f};
    s->test.reroll_any = any;
    if (poison || any) stage_cache_clear(s, &s->stages);
    to->status = braid_session_run(s, lanes, in, (size_t)model->m->g->n_inputs, to->out, n_out, &to->err);
    braid_session_stats(s, &to->stats);
    to->bundles = s->stages.first ? s->stages.first->packs.n_bundles : 0;
    braid_session_free(s);
}

static void outcome_free(outcome *o) {
    for (int i = 0; i < MOST; i++) braid_tensor_free(&o->out[i]);
}

static size_t draw(const braid_model *model, uint32_t lanes, braid_tensor *in) {
    const graph *g = model->m->g;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const value *v = g->values[g->inputs[i]];
        int64_t dims[BRAID_MAX_RANK] = {lanes};
        memcpy(dims + 1, v->type.dims, (size_t)v->type.rank * sizeof *dims);
        in[i] = ops_random(v->name, v->type.type, v->type.rank + 1, dims);
        in[i].rank = v->type.rank;
        memcpy(in[i].dims, v->type.dims, sizeof in[i].dims);
    }
    return (size_t)g->n_inputs;
}

static void compare(const outcome *got, const outcome *want, const char *what) {
    if (got->status != want->status)
        fail_msg("%s: %s, without re-rolling: %s", what, got->err.message, want->err.message);
    for (int i = 0; i < MOST && want->status == BRAID_OK && want->out[i].data; i++) {
        assert_int_equal(got->out[i].bytes, want->out[i].bytes);
        if (memcmp(got->out[i].data, want->out[i].data, want->out[i].bytes) != 0)
            fail_msg("%s: output %d differs", what, i);
    }
}

/* Returns the bundles of the run with one lane. */
static int32_t check(const braid_model *model, bool any, const char *what) {
    braid_tensor in[MOST];
    int32_t bundles = 0;
    size_t n = draw(model, LANES, in);
    for (uint32_t lanes = 1; lanes <= LANES; lanes += LANES - 1) {
        outcome plain, rolled;
        run(model, false, false, lanes, 0, in, &plain);
        for (int poison = 0; poison < 3; poison++) {
            run(model, true, any, lanes, poison, in, &rolled);
            compare(&rolled, &plain, what);
            if (rolled.stats.host_steps != plain.stats.host_steps) fail_msg("%s: other host steps", what);
            if (!any && rolled.stats.waves > plain.stats.waves + 2) fail_msg("%s: more waves", what);
            if (lanes == 1) bundles = rolled.bundles;
            outcome_free(&rolled);
        }
        outcome_free(&plain);
    }
    for (size_t i = 0; i < n; i++) free(in[i].data);
    return bundles;
}

static void every_disguise(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(clone_disguises); i++) {
        const clone_disguise *d = &clone_disguises[i];
        braid_model *model = wrap(&d->s);
        if (check(model, false, d->name) != d->bundles) fail_msg("%s: not recognised", d->name);
        braid_model_free(model);
    }
}

static void uneven_copies(void **state) {
    (void)state;
    clone_spec s = {.copies = 12, .uneven = true, .weights = WEIGHTS_OWN};
    braid_model *model = wrap(&s);
    if (check(model, false, "uneven") == 0) fail_msg("uneven: not recognised");
    braid_model_free(model);
}

/* Own inputs lie side by side: a clone graph is no step longer than one copy. */
static void no_copies(void **state) {
    (void)state;
    clone_spec spec = {.copies = 12}, one = {.copies = 1};
    braid_model *model = wrap(&spec), *single = wrap(&one);
    braid_tensor in[MOST], in_one[MOST];
    outcome clones, alone;
    size_t n = draw(model, 1, in), n_one = draw(single, 1, in_one);
    run(model, true, false, 1, 0, in, &clones);
    run(single, true, false, 1, 0, in_one, &alone);
    assert_int_equal(clones.stats.steps, alone.stats.steps);
    assert_int_equal(clones.stats.waves, alone.stats.waves);
    outcome_free(&clones);
    outcome_free(&alone);
    for (size_t i = 0; i < n; i++) free(in[i].data);
    for (size_t i = 0; i < n_one; i++) free(in_one[i].data);
    braid_model_free(model);
    braid_model_free(single);
}

static void random_clones(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        uint64_t x = seed;
        for (int i = 0; i < 4; i++) clone_next(&x);
        clone_spec s = {.copies = 2 + (int)(clone_next(&x) % 9),
                        .weights = (clone_weights)(clone_next(&x) % 4),
                        .inputs = (clone_inputs)(clone_next(&x) % 5),
                        .outputs = (clone_outputs)(clone_next(&x) % 3),
                        .shuffle = clone_next(&x) % 2,
                        .alter = clone_next(&x) % 2,
                        .uneven = clone_next(&x) % 4 == 0,
                        .tail = clone_next(&x) % 4 == 0,
                        .body = 3 + (int)(clone_next(&x) % 30),
                        .seed = seed};
        char what[64];
        snprintf(what, sizeof what, "random clones, seed %d", (int)seed);
        braid_model *model = wrap(&s);
        check(model, true, what);
        braid_model_free(model);
    }
}

/* # is the number of a copy. */
static const struct {
    const char *body, *odd, *ends; /* odd: copy 3 instead; ends: after all of them */
} bodies[] = {
    /* a host step inside: both sides stay rolled, the step is done copy by copy */
    {.body = "t# = MatMul(x#, w) d# = Det(t#) e# = Add(t#, d#) f# = Relu(e#) g# = MatMul(f#, w) y# = Softmax(g#)"},
    /* a value that is made before a host step and read behind it */
    {.body = "t# = MatMul(x#, w) u# = Tanh(t#) d# = Det(u#) v# = Relu(d#) e# = Mul(u#, v#) y# = MatMul(e#, w)"},
    /* shapes that depend on data, behind a rolled part */
    {.body = "t# = MatMul(x#, w) u# = Relu(t#) n# = NonZero(u#) c# = Cast(n#) {to = 1} y# = ReduceSum(c#)"},
    /* views, several outputs, an input that is an output */
    {.body = "s# = Reshape(x#, shape) a#, b# = Split(s#, half) {axis = 0} m# = Mul(a#, b#) v#, i# = TopK(m#, k) {axis = 0} "
             "y# = Concat(v#, m#) {axis = 0}"},
    /* a view of an input, read on both sides of a host step */
    {.body = "s# = Reshape(x#, four) d# = Det(s#) e# = Reshape(d#, column) y# = Add(s#, e#)"},
    /* nothing but views: no step */
    {.body = "s# = Reshape(x#, shape) y# = Identity(s#)"},
    /* one copy has an operand more; its operands the other way round; the steps of the others in another order */
    {.body = "t# = MatMul(x#, w) c# = Clip(t#, lo) y# = Exp(c#)",
     .odd = "t# = MatMul(x#, w) c# = Clip(t#, lo, hi) y# = Exp(c#)"},
    {.body = "t# = Sub(x#, w) y# = MatMul(t#, x#)", .odd = "t# = Sub(w, x#) y# = MatMul(x#, t#)"},
    {.body = "a# = Tanh(x#) b# = Exp(a#) y# = Sub(a#, b#)", .odd = "b# = Exp(x#) a# = Tanh(b#) y# = Sub(a#, b#)"},
    /* a second stage whose copies read those of the first in another order */
    {.body = "a# = MatMul(x#, w) b# = Relu(a#)",
     .ends = "d0 = Sub(b0, b2) d1 = Sub(b1, b0) d2 = Sub(b2, b5) d3 = Sub(b3, b3) d4 = Sub(b4, b1) d5 = Sub(b5, b4) "
             "y0 = MatMul(d0, w) y1 = MatMul(d1, w) y2 = MatMul(d2, w) y3 = MatMul(d3, w) y4 = MatMul(d4, w) "
             "y5 = MatMul(d5, w)"},
    /* gathered in two orders, one with a copy twice, and handed out unevenly */
    {.body = "a# = MatMul(x#, w)",
     .ends = "p = Concat(a0, a1, a2, a3, a4, a5, a2) {axis = 0} q = Concat(a5, a4, a4, a3, a2, a1, a0) {axis = 0} "
             "s = Sub(p, q) n: int64[6] = constant {1, 7, 4, 4, 8, 4} y0, y1, y2, y3, y4, y5 = Split(s, n) {axis = 0}"},
};

static void text_clones(void **state) {
    (void)state;
    for (size_t b = 0; b < COUNT_OF(bodies); b++) {
        char source[8192] = "graph t(", what[32];
        for (int c = 0; c < 6; c++) sprintf(source + strlen(source), "x%d: float32[4,4], ", c);
        strcat(source, "w: float32[4,4]) { shape: int64[1] = constant {16} half: int64[2] = constant {8, 8} k: "
                       "int64[1] = constant {3} four: int64[3] = constant {4, 2, 2} "
                       "column: int64[3] = constant {4, 1, 1} lo: float32[] = constant {-0.5} hi: float32[] = constant {0.75} ");
        for (int c = 0; c < 6; c++) {
            char *at = source + strlen(source);
            const char *body = c == 3 && bodies[b].odd ? bodies[b].odd : bodies[b].body;
            for (const char *p = body; *p; p++) *at++ = *p == '#' ? (char)('0' + c) : *p;
            *at++ = ' ';
            *at = 0;
        }
        if (bodies[b].ends) strcat(source, bodies[b].ends);
        strcat(source, "} -> y0, y1, y2, y3, y4, y5");
        braid_error err = {0};
        braid_model *model = ops_model(source, &err);
        if (!model) fail_msg("%s in\n%s", err.message, source);
        snprintf(what, sizeof what, "body %d", (int)b);
        check(model, true, what);
        braid_model_free(model);
    }
}

/* One copy's index is out of range: the run is refused as it is without re-rolling, and the next is right. */
static void a_copy_fails(void **state) {
    (void)state;
    braid_error err = {0};
    braid_model *model =
        ops_model("graph t(a: float32[9,4], i0: int64[3], i1: int64[3], i2: int64[3]) { "
                  "g0 = Gather(a, i0) \"first\"\n g1 = Gather(a, i1) \"second\"\n g2 = Gather(a, i2) \"third\"\n "
                  "y0 = Relu(g0) y1 = Relu(g1) y2 = Relu(g2) } -> y0, y1, y2",
                  &err);
    if (!model) fail_msg("%s", err.message);
    braid_tensor in[MOST];
    size_t n = draw(model, 1, in);
    for (size_t i = 1; i < n; i++)
        for (int k = 0; k < 3; k++) ((int64_t *)in[i].data)[k] = k;
    for (int64_t at = 3; at <= 9; at += 6) {
        outcome plain, rolled;
        ((int64_t *)in[2].data)[1] = at;
        run(model, false, false, 1, 0, in, &plain);
        run(model, true, true, 1, 0, in, &rolled);
        assert_int_equal(rolled.bundles, 1);
        assert_int_equal(plain.status, at == 9 ? BRAID_INDEX : BRAID_OK);
        compare(&rolled, &plain, "gather");
        if (at == 9) assert_string_equal(rolled.err.message, plain.err.message);
        if (at == 9) assert_non_null(strstr(rolled.err.message, "'second'"));
        outcome_free(&plain);
        outcome_free(&rolled);
    }
    for (size_t i = 0; i < n; i++) free(in[i].data);
    braid_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_disguise), cmocka_unit_test(uneven_copies),
                                       cmocka_unit_test(no_copies),      cmocka_unit_test(random_clones),
                                       cmocka_unit_test(text_clones),    cmocka_unit_test(a_copy_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
