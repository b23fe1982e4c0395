/*
 * cli: the `braid` program. One file per command; every file includes <braid/braid.h> only, never the library's inside.
 *
 *     main.c   the table of commands        args.c    the table of options, help
 *     CMD.c    run check info graph bench profile devices ops
 *     input.c  NAME=FILE, literals, random  engine.c  options -> device, model, session
 *     lanes.c  several lanes in one run        bench_*.c  the parts of bench, bench.h
 *     pipelines.c  what making pipelines took
 *     graph_draw.c svg.c  pictures of plans, graph.h     text.c   names for terminals and JSON
 *     tensor.c host tensors                 value.c   single elements as numbers
 *     npy.c tensor_pb.c image.c             file formats        compare.c  got against expected
 *
 * Inside, functions return a braid_status and fill a braid_error, as the library does; ARGUMENT means a usage error.
 * A command returns an exit code, after cli_fail has printed its one line.
 */
#ifndef CLI_H
#define CLI_H

#include <braid/braid.h>
#include <stdio.h>
#include <string.h>

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        braid_status try_status_ = (expression);                                                                       \
        if (try_status_ != BRAID_OK) return try_status_;                                                               \
    } while (0)

enum { CLI_OK = 0, CLI_MISMATCH = 1, CLI_USAGE = 2, CLI_UNSUPPORTED = 3, CLI_FAILURE = 4 };

typedef struct cli_list {
    const char **items;
    size_t count;
} cli_list;

/* Everything the options can say. Texts are borrowed from argv. */
typedef struct cli_options {
    const char *model, *dataset; /* positional */
    cli_list inputs, shared, lane_inputs, dims, shapes, randoms;
    const char *lanes, *outputs, *output_dir, *device, *cache_dir, *external_root, *labels, *trace, *against;
    const char *layout, *resize, *channels, *mean, *std;
    double scale, rtol, atol, seconds;
    int64_t top, warmup, runs;
    uint64_t seed;
    bool random_all, json, no_cache, no_host, no_fuse, no_reroll, free_order, verify, validation, compare;
    bool probabilities, split;
    bool graph, plan, estimate, ablate, probe, again, memory, pipelines, quiet;
    int verbose;
} cli_options;

/* A command of the table in main.c. `mask` is its bit in the option rows of args.c. */
typedef struct cli_command {
    const char *name, *synopsis, *purpose, *examples;
    int (*run)(const cli_options *);
    unsigned mask;
    int positional_min, positional_max;
} cli_command;

enum { RUN = 1, CHECK = 2, INFO = 4, BENCH = 8, PROFILE = 16, DEVICES = 32, OPS = 64, GRAPH = 128 };
enum { ALL = 255, PLANS = 31 | GRAPH };

int cmd_run(const cli_options *);
int cmd_check(const cli_options *);
int cmd_info(const cli_options *);
int cmd_graph(const cli_options *);
int cmd_bench(const cli_options *);
int cmd_profile(const cli_options *);
int cmd_devices(const cli_options *);
int cmd_ops(const cli_options *);

/* ---- args.c */
/* Parses what follows the command's name. ARGUMENT with a message on a bad option. *help is set by --help. */
braid_status args_parse(const cli_command *, int argc, char **argv, cli_options *out, bool *help, braid_error *err);
void args_free(cli_options *);
void args_help(const cli_command *, FILE *);
/* "1,2,4" as numbers of lanes, each from 1 to LANES_TOP; *count is at most `capacity`. When there may be several,
   "A,B,...,Z" goes on by factors of B/A up to Z, which is always the last. */
enum { LANES_TOP = 1000000 };
braid_status args_lanes(const char *text, uint32_t *out, size_t capacity, size_t *count, braid_error *err);

/* ---- message.c */
braid_status cli_error(braid_error *err, braid_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "prefix: " before the message, keeps the status. */
braid_status cli_within(braid_error *err, braid_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints "braid: message" on stderr and returns the exit code that belongs to the status. */
int cli_fail(const braid_error *err);
/* "braid: note: ..." on stderr unless -q. */
void cli_note(const cli_options *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line on stderr that the next one, or cli_progress_end, wipes; not with -q. Where stderr is no terminal: a line that
   stays, only when the command takes long, and then once every CLI_LONG_NS. */
#define CLI_LONG_NS UINT64_C(10000000000)
bool cli_terminal(void); /* is stderr one? */
void cli_progress(const cli_options *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_progress_end(void);
/* Log callback; `user` is the cli_options. */
void cli_log(void *user, braid_log_level level, const char *line);
uint64_t cli_clock_ns(void);
/* After a first run this long, in which pipelines were made, a device's clocks take so long to rise. */
enum { CLI_LONG_RUN_NS = 500000000, CLI_RISE_NS = 1000000000 };

/* ---- engine.c */
typedef struct engine {
    braid_device *device;
    braid_model *model;
    braid_session *session;
    braid_device_info info;
    uint64_t load_ns, plan_ns;
    char *names; /* the text of --outputs, cut at its commas */
} engine;

braid_status engine_load(engine *, const cli_options *, braid_error *err); /* the model */
braid_status engine_open(engine *, const cli_options *, braid_error *err); /* the device */
/* The session; `profile` times every step, `shapes` (may be NULL) are input shapes besides those of --shape. */
typedef struct engine_plan {
    bool profile;
    const braid_tensor *inputs; /* their shapes become input shapes */
    size_t n_inputs;
    uint32_t lanes_max; /* 0: 1 */
    braid_schedule schedule;
    bool no_reroll; /* as if --no-reroll were given */
} engine_plan;
braid_status engine_session(engine *, const cli_options *, const engine_plan *, braid_error *err);
void engine_free(engine *);
/* The wanted outputs (--outputs, or all): an array of tensors with names, everything else zero. The names live until
   the next call and engine_free. */
braid_status engine_outputs(engine *, const cli_options *, braid_tensor **out, size_t *count, braid_error *err);
/* "float32 [N,3,224,224]" of a port. */
void engine_port_text(const braid_port *, char *out, size_t capacity);

/* ---- pipelines.c: what making a session's pipelines took. */
/* Of those that were made from number `from` on, the one that took longest; NULL: none were. */
const braid_pipeline_time *pipelines_slowest(const braid_session *, size_t from);
size_t pipelines_cached(const braid_session *, size_t from);
/* A line of totals and the slowest few; `all`: every one, with the driver's figures. */
void pipelines_print(const engine *, bool all);
void pipelines_print_json(const engine *);

/* ---- tensor.c: host tensors. Those of the command line own `data` (one malloc block). */
/* Sets type and dims and allocates cleared data; strings: the pointer array only. LIMIT on overflow. */
braid_status tensor_alloc(braid_tensor *, braid_type, int rank, const int64_t *dims, braid_error *err);
/* Frees data whoever allocated it, and the array. */
void tensors_free(braid_tensor *, size_t count);
void tensor_drop(braid_tensor *);
bool tensor_count(int rank, const int64_t *dims, int64_t *out); /* false: negative dim or overflow */
bool tensor_span(braid_type, int64_t count, size_t *bytes);     /* sub-byte types packed; strings: pointers */
int value_bits(braid_type);
bool value_is_float(braid_type);                                           /* float8 and float4 included */
void dims_text(int rank, const int64_t *dims, char *out, size_t capacity); /* "[1,3,224,?]": below 0 is free */
/* "1,3,224,224" or "1x3x224x224"; an empty text is rank 0. */
bool dims_parse(const char *text, int *rank, int64_t *dims);
/* Whether element i of `count` is of a lane that failed: failed[index of the first axis]; NULL: none. */
bool tensor_in_failed(const braid_tensor *, const bool *failed, int64_t count, int64_t i);
/* One line about the values of the lanes that did not fail: range, mean, the first ones. Appends to `out`. */
void tensor_summary(const braid_tensor *, const bool *failed, size_t values, FILE *out);

/* ---- text.c: names from models, which may hold any bytes. */
int text_character(const unsigned char *s); /* bytes of the UTF-8 character at s, 0 when it is none */
/* Writes `from` as one line of UTF-8 and returns what follows its end; what is not shown or not UTF-8 becomes '?'.
   As long as `from`, and may be the same. */
char *text_line(char *to, const char *from);
char *text_clean(const char *from); /* the same, to be freed; NULL: no memory */
const char *text_s(size_t n);       /* what a word gets behind a number: "" for 1, else "s" */

/* ---- value.c: element i as a number. */
double value_get(const braid_tensor *, int64_t i);      /* every type but string; complex: the real part */
int64_t value_get_int(const braid_tensor *, int64_t i); /* integers and bool */
/* Floats round to nearest even; integers need 0 <= or the type's range; false when the type cannot hold it. */
bool value_set(braid_tensor *, int64_t i, double);
bool value_set_int(braid_tensor *, int64_t i, int64_t);
bool value_parse(braid_tensor *, int64_t i, const char *text, size_t length);
void value_text(const braid_tensor *, int64_t i, char *out, size_t capacity);
double half_to_double(uint16_t);

/* ---- file formats. Parsers take untrusted bytes and never read past `size`. */
braid_status file_load(const char *path, void **out, size_t *size, braid_error *err); /* out: malloc; adds a NUL */
braid_status npy_parse(const void *bytes, size_t size, braid_tensor *out, braid_error *err);
braid_status npy_load(const char *path, braid_tensor *out, braid_error *err);
braid_status npz_load(const char *path, const char *key, braid_tensor *out, braid_error *err);
braid_status npy_save(const char *path, const braid_tensor *, braid_error *err);
/* A TensorProto. */
braid_status tensor_pb_parse(const void *bytes, size_t size, braid_tensor *out, braid_error *err);
braid_status tensor_pb_load(const char *path, braid_tensor *out, braid_error *err);
/* PNG or JPEG into `out`, whose type and dims (rank 3 or 4, -1 where free) say what is wanted. */
braid_status image_load(const char *path, const cli_options *, braid_tensor *out, braid_error *err);

/* ---- input.c */
/* "'x', 'y'": the names of the model's inputs, of the first few and how many more; "" for none. */
void inputs_names(const braid_model *, char *out, size_t capacity);
/* How often --input gives an input: one given several times has a value for each lane. */
braid_status inputs_rounds(const braid_model *, const cli_options *, size_t *rounds, braid_error *err);
size_t input_times(const braid_model *, const cli_options *, size_t index);
/* What is known of an input before its value is read: type, rank (-1: unknown), dims (-1: free). */
braid_status input_form(const cli_options *, const braid_port *, braid_tensor *, braid_error *err);
/* The value given in this round, or random values where --random asks for them. */
braid_status input_load(const braid_model *, const cli_options *, size_t index, size_t round, braid_tensor *,
                        braid_error *err);
/* The values of one run: a tensor for each model input, in order. `random_missing`: inputs nobody gave are random,
   free dims 1. */
braid_status inputs_load(const braid_model *, const cli_options *, size_t round, bool random_missing,
                         braid_tensor **out, size_t *count, braid_error *err);

/* ---- lanes.c */
typedef struct lane_inputs {
    size_t lanes;
    bool several;     /* outputs get an axis of lanes */
    braid_tensor *in; /* one lane's shape, the data of all lanes; SHARED: of one */
    size_t n_in;
    bool *failed;     /* by lanes_run: lanes whose data the model could not take */
    size_t n_failed;
    braid_error why;  /* of the first of them */
} lane_inputs;

/* The items with patterns replaced by the files that match; the texts are the list's. */
braid_status inputs_expand(const cli_list *given, cli_list *out, braid_error *err);
void inputs_release(cli_list *);
/* ARGUMENT, naming the option, where the model has no input of one of these names. */
braid_status lanes_check_names(const braid_model *, const cli_list *, const char *option, braid_error *err);
/* To be freed with lanes_free, also after an error. */
braid_status lanes_load(const braid_model *, const cli_options *, lane_inputs *, braid_error *err);
void lanes_free(lane_inputs *);
/* The lanes_max that lanes_run needs of the session. */
uint32_t lanes_in_round(const lane_inputs *);
/* The inputs from lane `first` on, borrowed. */
void lanes_slice(const lane_inputs *, size_t first, braid_tensor *in);
/* Makes `lanes` lanes of the inputs that inputs_load gave: copies of what was given, random values that differ. */
braid_status lanes_spread(const braid_model *, const cli_options *, braid_tensor *in, size_t n_in, uint32_t lanes,
                          braid_error *err);
/* Runs all lanes, in rounds when there are many. OK when some lane is right: lane_inputs.failed tells of the others,
   whose outputs are zeros. */
braid_status lanes_run(engine *, const cli_options *, lane_inputs *, braid_tensor *out, size_t n_out,
                       braid_error *err);
/* One lane of an output with an axis of lanes, borrowed. */
braid_tensor lanes_view(const braid_tensor *, size_t lane);

/* ---- compare.c */
typedef struct comparison {
    bool ok;
    int64_t differing, count;
    double worst_absolute, worst_relative;
    char text[256]; /* one line: what was equal or how it differs */
} comparison;
/* |got - want| <= atol + rtol * |want|, NaN equals NaN, infinities equal their like; other types are exact. */
void tensor_compare(const braid_tensor *got, const braid_tensor *want, double rtol, double atol, comparison *out);

#endif
