/* args: one row per option; parsing (getopt_long) and the help text both walk the rows. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

typedef enum row_kind { TEXT, LIST, FLAG, NUMBER, COUNT, SEED, RANDOM, VERBOSE, HELP } row_kind;

typedef struct row {
    const char *name;
    int letter; /* 0: none */
    const char *argument;
    unsigned mask; /* commands that take it */
    row_kind kind;
    size_t offset; /* in cli_options */
    const char *help;
} row;

#define AT(field) offsetof(cli_options, field)
#define FEEDS (RUN | BENCH | PROFILE | GRAPH)

static const row rows[] = {
    {"input", 'i', "NAME=VALUE", FEEDS, LIST, AT(inputs),
     "an input: FILE (.npy, .npz[:KEY], .pb, .png, .jpg, else raw bytes) or numbers (1,2,3);\n"
     "NAME= may be left out when the model has one input;\n"
     "run: an input given N times, or a pattern such as 'x=*.png', has N lanes"},
    {"random", 0, "[NAME=]LO:HI", FEEDS, RANDOM, AT(randoms),
     "random values for inputs not given, or for NAME;\n"
     "default 0:1 (floats in [0,1), integers 0 or 1)"},
    {"seed", 0, "N", FEEDS, SEED, AT(seed), "seed of the random values (default 0)"},
    {"outputs", 0, "A,B", PLANS & ~CHECK, TEXT, AT(outputs), "compute only these; any value of the model can be named"},
    {"output-dir", 'o', "DIR", RUN, TEXT, AT(output_dir),
     "write DIR/NAME.npy ('/' becomes '_'); DIR is made when missing.\n"
     "bfloat16 and smaller floats are written as float32, 4- and 2-bit integers as 8-bit"},
    {"output", 'o', "FILE", GRAPH, TEXT, AT(output_dir), "write to FILE (default: standard output)"},
    {"plan", 0, NULL, GRAPH, FLAG, AT(plan), "a picture (SVG) of the plan: waves, dispatches, times"},
    {"estimate", 0, NULL, GRAPH, FLAG, AT(estimate), "with the planner's estimates instead of measured times"},
    {"split-outputs", 0, NULL, RUN, FLAG, AT(split), "write DIR/LANE/NAME.npy, a file for each lane"},
    {"top", 0, "N", RUN, COUNT, AT(top), "print the N largest values of each output with their index"},
    {"labels", 0, "FILE", RUN, TEXT, AT(labels), "one label per line, printed by --top"},
    {"probabilities", 0, NULL, RUN, FLAG, AT(probabilities), "softmax over an output's values before --top"},
    {"compare", 0, NULL, RUN, FLAG, AT(compare),
     "also run every node on the CPU reference and show where the two part;\n"
     "exit 1 when a difference exceeds --rtol or there is nothing to compare"},
    {"layout", 0, "nchw|nhwc", FEEDS, TEXT, AT(layout),
     "order of an image's axes (default: nhwc when only the last axis is 1, 3 or 4, else nchw)"},
    {"channels", 0, "rgb|bgr", FEEDS, TEXT, AT(channels),
     "order of an image's channels (default rgb; gray when the model has 1 channel)"},
    {"scale", 0, "S", FEEDS, NUMBER, AT(scale), "pixels are multiplied by S (default 1/255; integer inputs: 1)"},
    {"mean", 0, "R,G,B", FEEDS, TEXT, AT(mean), "then this is subtracted, one value or one per channel (default 0)"},
    {"std", 0, "R,G,B", FEEDS, TEXT, AT(std), "then divided by this (default 1)"},
    {"resize", 0, "auto|none|HxW", FEEDS, TEXT, AT(resize),
     "scale images bilinearly: to the model's fixed size (auto, default), never, or to HxW"},
    {"rtol", 0, "X", RUN | CHECK, NUMBER, AT(rtol), "relative tolerance (default 1e-3)"},
    {"atol", 0, "X", CHECK, NUMBER, AT(atol), "absolute tolerance (default 1e-5)"},
    {"lanes", 'n', "N", RUN, TEXT, AT(lanes),
     "N inferences in one run. An input of the model's shape is shared by all lanes; one more\n"
     "axis in front, or N where the model's first dimension is 1, or giving it N times, makes\n"
     "lanes; random values differ in each. Default: what the inputs have. Outputs get one more\n"
     "axis, N, in front"},
    {"shared", 0, "NAME", RUN | INFO, LIST, AT(shared), "this input is the same for all lanes"},
    {"lane", 0, "NAME", RUN, LIST, AT(lane_inputs), "this input's first axis is that of the lanes"},
    {"lanes", 'n', "N,...", BENCH, TEXT, AT(lanes),
     "N inferences in one run, each with its own inputs;\n"
     "several N, such as 1,8,64 or 1,2,4,...,256: a table, time(N)/time(1) included"},
    {"ablate", 0, NULL, BENCH, FLAG, AT(ablate),
     "measure serial order, waves, merged steps and re-rolled copies one after the other"},
    {"against", 0, "BATCHED", BENCH, TEXT, AT(against),
     "also the same work as one batch, through this model: its inputs have N where the\n"
     "model's first dimension is 1, or one more axis in front; N may be fixed or a symbol"},
    {"lanes", 'n', "N", INFO | PROFILE | GRAPH, TEXT, AT(lanes),
     "N inferences in one run, each with its own inputs (default 1)"},
    {"warmup", 0, "N", BENCH | PROFILE, COUNT, AT(warmup),
     "runs before measuring (default 3); bench without --runs goes on until times are steady,\n"
     "for half of --seconds at least and 2 s, or --seconds, at most; profile without --runs\n"
     "for half a second, or a second after a long first run; 0: measure at once"},
    {"runs", 0, "N", BENCH | PROFILE, COUNT, AT(runs),
     "measured runs (default: bench: as many as fit --seconds; profile: 1); profile shows the\n"
     "quickest of them"},
    {"seconds", 0, "S", BENCH, NUMBER, AT(seconds), "time to measure for (default 2)"},
    {"trace", 0, "FILE", PROFILE, TEXT, AT(trace), "write a Chrome trace"},
    {"pipelines", 0, NULL, PROFILE, FLAG, AT(pipelines),
     "instead of the steps, every pipeline that was made: how long that took and, where the\n"
     "driver tells, its registers, spills and bytes of code"},
    {"memory", 0, NULL, INFO, FLAG, AT(memory),
     "what the plan could do with less memory: waves and estimated time for each budget"},
    {"graph", 0, NULL, INFO, FLAG, AT(graph), "print the graph in braid's text form"},
    {"json", 0, NULL, ALL & ~(OPS | INFO | GRAPH), FLAG, AT(json), "print JSON"},
    {"dim", 0, "SYMBOL=V", PLANS, LIST, AT(dims), "value of a symbolic dimension"},
    {"shape", 0, "NAME=DIMS", PLANS, LIST, AT(shapes), "shape of an input, e.g. x=1,3,224,224"},
    {"probe", 0, NULL, DEVICES, FLAG, AT(probe),
     "measure what barriers, dispatches, copies and arithmetic take, once; kept in the cache\n"
     "folder, where later commands find it and plan by it"},
    {"again", 0, NULL, DEVICES, FLAG, AT(again), "measure even if there are figures"},
    {"device", 'd', "D", PLANS, TEXT, AT(device),
     "index, UUID or part of the name; host: the CPU reference, without Vulkan.\n"
     "default: the first GPU, else a software device"},
    {"no-host", 0, NULL, PLANS, FLAG, AT(no_host), "a node without a kernel is unsupported, not run on the CPU"},
    {"no-fuse", 0, NULL, PLANS, FLAG, AT(no_fuse), "keep every intermediate value apart"},
    {"no-reroll", 0, NULL, PLANS, FLAG, AT(no_reroll), "leave copies of a subgraph as they are"},
    {"free-order", 0, NULL, PLANS, FLAG, AT(free_order),
     "let the number of lanes change the order of sums (last bits)"},
    {"verify", 0, NULL, PLANS, FLAG, AT(verify), "prove every plan free of hazards"},
    {"validation", 0, NULL, PLANS, FLAG, AT(validation), "load the Khronos validation layer"},
    {"external-root", 0, "DIR", PLANS, TEXT, AT(external_root),
     "folder that external data may be read from (default: the model's)"},
    {"cache-dir", 0, "DIR", PLANS | DEVICES, TEXT, AT(cache_dir), "pipeline cache (default: $XDG_CACHE_HOME/braid)"},
    {"no-cache", 0, NULL, PLANS | DEVICES, FLAG, AT(no_cache), "neither read nor write the pipeline cache"},
    {"quiet", 'q', NULL, ALL, FLAG, AT(quiet), "no notes and no progress"},
    {"verbose", 'v', NULL, ALL, VERBOSE, AT(verbose), "more messages; twice for debugging"},
    {"help", 'h', NULL, ALL, HELP, 0, "this text"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bool list_add(cli_list *list, const char *item) {
    const char **grown = realloc(list->items, (list->count + 1) * sizeof *grown);
    if (!grown) return false;
    list->items = grown;
    list->items[list->count++] = item;
    return true;
}

static braid_status bad_value(braid_error *err, const row *r, const char *text, const char *wanted) {
    return cli_error(err, BRAID_ARGUMENT, "--%s: '%s' is not %s", r->name, text, wanted);
}

static braid_status set_number(const row *r, const char *text, cli_options *o, braid_error *err) {
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= 0) || v > 1e300) return bad_value(err, r, text, "a number of at least 0");
    *(double *)(void *)((char *)o + r->offset) = v;
    return BRAID_OK;
}

static braid_status set_integer(const row *r, const char *text, cli_options *o, braid_error *err) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || v < 0 || errno || (r->kind == COUNT && v > 1000000000))
        return bad_value(err, r, text,
                         r->kind == COUNT ? "a whole number from 0 to 1000000000" : "a whole number of at least 0");
    *(int64_t *)(void *)((char *)o + r->offset) = v;
    return BRAID_OK;
}

static braid_status set_random(const row *r, const char *text, cli_options *o, braid_error *err) {
    if (!text) {
        o->random_all = true;
        return BRAID_OK;
    }
    if (!strchr(text, ':')) return bad_value(err, r, text, "[NAME=]LO:HI");
    if (!strchr(text, '=')) o->random_all = true;
    return list_add(&o->randoms, text) ? BRAID_OK : cli_error(err, BRAID_HOST_MEMORY, "out of memory");
}

static braid_status apply(const row *r, const char *text, cli_options *o, braid_error *err) {
    void *field = (char *)o + r->offset;
    switch (r->kind) {
    case TEXT:
        *(const char **)field = text;
        return BRAID_OK;
    case FLAG:
        *(bool *)field = true;
        return BRAID_OK;
    case VERBOSE:
        *(int *)field += 1;
        return BRAID_OK;
    case NUMBER:
        return set_number(r, text, o, err);
    case COUNT:
    case SEED:
        return set_integer(r, text, o, err);
    case RANDOM:
        return set_random(r, text, o, err);
    case LIST:
        return list_add(field, text) ? BRAID_OK : cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    case HELP:
        break;
    }
    return BRAID_OK;
}

/* The option tables of getopt_long for one command; val is the row's number + 256 so that it meets no letter. */
static void make_tables(const cli_command *command, struct option *longs, char *shorts) {
    size_t n = 0;
    *shorts++ = ':';
    for (int i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        if (!(r->mask & command->mask)) continue;
        int takes = !r->argument ? no_argument : r->kind == RANDOM ? optional_argument : required_argument;
        longs[n++] = (struct option){r->name, takes, NULL, 256 + i};
        if (!r->letter) continue;
        *shorts++ = (char)r->letter;
        if (takes == required_argument) *shorts++ = ':';
    }
    longs[n] = (struct option){0};
    *shorts = 0;
}

static const row *row_of(const cli_command *command, int code) {
    if (code >= 256) return &rows[code - 256];
    for (int i = 0; i < ROWS; i++)
        if (rows[i].letter == code && (rows[i].mask & command->mask)) return &rows[i];
    return NULL;
}

/* `--random x=0:1` with a space: getopt sees an optional argument only after '='. */
static const char *random_argument(int argc, char **argv) {
    if (optarg || optind >= argc || argv[optind][0] == '-') return optarg;
    const char *next = argv[optind], *colon = strrchr(next, ':');
    const char *low = strchr(next, '=');
    low = low ? low + 1 : next;
    if (!colon || colon < low || !strchr("-+.0123456789", *low)) return NULL;
    optind++;
    return next;
}

static braid_status take_positional(const cli_command *command, int argc, char **argv, cli_options *o,
                                    braid_error *err) {
    int given = argc - optind;
    if (given < command->positional_min) return cli_error(err, BRAID_ARGUMENT, "%s: no model given", command->name);
    if (given > command->positional_max)
        return cli_error(err, BRAID_ARGUMENT, "%s: unexpected argument '%s'", command->name,
                         argv[optind + command->positional_max]);
    if (given > 0) o->model = argv[optind];
    if (given > 1) o->dataset = argv[optind + 1];
    return BRAID_OK;
}

braid_status args_parse(const cli_command *command, int argc, char **argv, cli_options *o, bool *help,
                        braid_error *err) {
    struct option longs[ROWS + 1];
    char shorts[2 * ROWS + 2];
    make_tables(command, longs, shorts);
    *o = (cli_options){.rtol = 1e-3, .atol = 1e-5, .scale = -1, .seconds = 2, .warmup = 3};
    opterr = 0;
    int code;
    while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (code == ':') return cli_error(err, BRAID_ARGUMENT, "option '%s' needs a value", argv[optind - 1]);
        const row *r = code == '?' ? NULL : row_of(command, code);
        if (!r) return cli_error(err, BRAID_ARGUMENT, "%s: no option '%s'", command->name, argv[optind - 1]);
        if (r->kind == HELP) {
            *help = true;
            return BRAID_OK;
        }
        TRY(apply(r, r->kind == RANDOM ? random_argument(argc, argv) : optarg, o, err));
    }
    return take_positional(command, argc, argv, o, err);
}

/* Continues the list by the factor of its last two numbers, as far as below `last`. */
static bool fill_between(uint32_t *out, size_t capacity, size_t *count, uint32_t last) {
    uint32_t a = *count > 1 ? out[*count - 2] : 0, b = *count ? out[*count - 1] : 0;
    if (a == 0 || b <= a || b % a || last <= b) return false;
    for (uint64_t n = (uint64_t)b * (b / a); n < last && *count < capacity; n *= b / a) out[(*count)++] = (uint32_t)n;
    return true;
}

static bool read_number(const char **at, uint32_t *out) {
    char *end;
    long long n = **at >= '0' && **at <= '9' ? strtoll(*at, &end, 10) : 0;
    if (n < 1 || n > LANES_TOP || (*end && *end != ',')) return false;
    *out = (uint32_t)n;
    *at = end;
    return true;
}

braid_status args_lanes(const char *text, uint32_t *out, size_t capacity, size_t *count, braid_error *err) {
    const char *at = text;
    for (*count = 0;; at++) {
        uint32_t n = 0;
        bool dots = capacity > 1 && !strncmp(at, "...,", 4);
        if (dots) at += 4;
        if (!read_number(&at, &n) || (dots && !fill_between(out, capacity, count, n)))
            return cli_error(err, BRAID_ARGUMENT, "--lanes: '%s' is not a number from 1 to %d%s", text, LANES_TOP,
                             capacity > 1 ? ", or several with commas, or such as 1,2,...,64" : "");
        if (*count == capacity)
            return cli_error(err, BRAID_ARGUMENT, "--lanes: '%s' is more than %zu number%s", text, capacity,
                             capacity > 1 ? "s" : "");
        out[(*count)++] = n;
        if (!*at) return BRAID_OK;
    }
}

void args_free(cli_options *o) {
    free(o->inputs.items);
    free(o->shared.items);
    free(o->lane_inputs.items);
    free(o->dims.items);
    free(o->shapes.items);
    free(o->randoms.items);
}

static void help_row(const row *r, FILE *out) {
    char left[64];
    int n = r->letter ? snprintf(left, sizeof left, "-%c, --%s", r->letter, r->name)
                      : snprintf(left, sizeof left, "    --%s", r->name);
    if (r->argument && n > 0 && (size_t)n < sizeof left)
        snprintf(left + n, sizeof left - (size_t)n, r->kind == RANDOM ? " [%s]" : " %s", r->argument);
    fprintf(out, "  %-28s ", left);
    for (const char *c = r->help; *c; c++) {
        fputc(*c, out);
        if (*c == '\n') fprintf(out, "%31s", "");
    }
    fputc('\n', out);
}

void args_help(const cli_command *command, FILE *out) {
    fprintf(out, "braid %s: %s\n\nusage: braid %s %s%s[options]\n\n", command->name, command->purpose, command->name,
            command->synopsis, command->synopsis[0] ? " " : "");
    for (int i = 0; i < ROWS; i++)
        if (rows[i].mask & command->mask) help_row(&rows[i], out);
    fprintf(out, "\nexamples:\n%s", command->examples);
}
