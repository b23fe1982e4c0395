/*
 * braid: runs ONNX models on any Vulkan device.
 *
 * Three verbs: load a model, create a session for a device, run it.
 *
 *     braid_model_load -> braid_session_create -> braid_session_run
 *
 * Conventions
 *   - Every function that can fail returns a braid_status and fills the caller's braid_error (which may be NULL).
 *     After an error every object stays usable; no output is written partially and reported as success. DEVICE_LOST and
 *     TIMEOUT are the exception: the device and its sessions then only fail; free them and open the device again.
 *   - Handles are opaque; every `*_free` and `*_close` accepts NULL. A session keeps what it needs of its device and
 *     model, so they may be closed and freed in any order.
 *   - Option structs start with `.size = sizeof(struct)`; a zero in any other field asks for the default.
 *     A NULL options pointer asks for all defaults.
 *   - The library never prints, exits or aborts on bad input and keeps no mutable globals.
 *   - Threads: a device and a model may be used by any number of threads. Concurrent braid_session_run calls on one
 *     session are serialised. What a session tells is of the run or plan that ended last; arrays and times of a run
 *     are to be read while no other thread runs the session.
 */
#ifndef BRAID_BRAID_H
#define BRAID_BRAID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BRAID_API __attribute__((visibility("default")))
#else
#define BRAID_API
#endif

#define BRAID_VERSION "0.1.0"

/* status: X(name, text). BUSY and CANCELLED are not returned by this version. */
#define BRAID_STATUS_MAP(X)                                         \
    X(OK, "ok")                                                     \
    X(ARGUMENT, "invalid argument")                                 \
    X(IO, "input/output error")                                     \
    X(FORMAT, "malformed file")                                     \
    X(MODEL, "invalid model")                                       \
    X(UNSUPPORTED, "unsupported")                                   \
    X(SHAPE, "shape mismatch")                                      \
    X(TYPE, "type mismatch")                                        \
    X(INDEX, "index out of range")                                  \
    X(LIMIT, "limit exceeded")                                      \
    X(HOST_MEMORY, "out of host memory")                            \
    X(DEVICE_MEMORY, "out of device memory")                        \
    X(NO_DEVICE, "no device")                                       \
    X(DEVICE_LOST, "device lost")                                   \
    X(TIMEOUT, "timeout")                                           \
    X(BUSY, "busy")                                                 \
    X(CANCELLED, "cancelled")                                       \
    X(INTERNAL, "internal error")

typedef enum braid_status {
#define BRAID_STATUS_ENUM(name, text) BRAID_##name,
    BRAID_STATUS_MAP(BRAID_STATUS_ENUM)
#undef BRAID_STATUS_ENUM
} braid_status;

/* Caller-owned error: what failed and one line that names the node, tensor or file position. */
typedef struct braid_error {
    braid_status status;
    char message[508];
} braid_error;

/* Element types; the numbers are those of ONNX's TensorProto.DataType. X(NAME, number, bits, text) */
#define BRAID_TYPE_MAP(X)                 \
    X(FLOAT32, 1, 32, "float32")          \
    X(UINT8, 2, 8, "uint8")               \
    X(INT8, 3, 8, "int8")                 \
    X(UINT16, 4, 16, "uint16")            \
    X(INT16, 5, 16, "int16")              \
    X(INT32, 6, 32, "int32")              \
    X(INT64, 7, 64, "int64")              \
    X(STRING, 8, 0, "string")             \
    X(BOOL, 9, 8, "bool")                 \
    X(FLOAT16, 10, 16, "float16")         \
    X(FLOAT64, 11, 64, "float64")         \
    X(UINT32, 12, 32, "uint32")           \
    X(UINT64, 13, 64, "uint64")           \
    X(COMPLEX64, 14, 64, "complex64")     \
    X(COMPLEX128, 15, 128, "complex128")  \
    X(BFLOAT16, 16, 16, "bfloat16")       \
    X(FLOAT8E4M3FN, 17, 8, "float8e4m3fn")     \
    X(FLOAT8E4M3FNUZ, 18, 8, "float8e4m3fnuz") \
    X(FLOAT8E5M2, 19, 8, "float8e5m2")         \
    X(FLOAT8E5M2FNUZ, 20, 8, "float8e5m2fnuz") \
    X(UINT4, 21, 4, "uint4")              \
    X(INT4, 22, 4, "int4")                \
    X(FLOAT4E2M1, 23, 4, "float4e2m1")    \
    X(FLOAT8E8M0, 24, 8, "float8e8m0")    \
    X(UINT2, 25, 2, "uint2")              \
    X(INT2, 26, 2, "int2")

typedef enum braid_type {
    BRAID_TYPE_NONE = 0,
#define BRAID_TYPE_ENUM(name, number, bits, text) BRAID_##name = number,
    BRAID_TYPE_MAP(BRAID_TYPE_ENUM)
#undef BRAID_TYPE_ENUM
} braid_type;

#define BRAID_MAX_RANK 8

typedef struct braid_device braid_device;
typedef struct braid_model braid_model;
typedef struct braid_session braid_session;

/* Text of a status ("shape mismatch"), of its name ("SHAPE"), of a type ("float32"); static strings, never NULL. */
BRAID_API const char *braid_status_text(braid_status);
BRAID_API const char *braid_status_name(braid_status);
BRAID_API const char *braid_type_name(braid_type);
/* Bytes of one element; 0 for strings and sub-byte types. */
BRAID_API size_t braid_type_bytes(braid_type);
/* BRAID_VERSION of the library that is running. */
BRAID_API const char *braid_version(void);

typedef enum braid_log_level { BRAID_LOG_ERROR = 1, BRAID_LOG_WARN, BRAID_LOG_INFO, BRAID_LOG_DEBUG } braid_log_level;
typedef void braid_log_fn(void *user, braid_log_level, const char *line);

/* ------------------------------------------------------------------------------------------------ devices */

typedef enum braid_device_kind { BRAID_DEVICE_GPU = 0, BRAID_DEVICE_SOFTWARE = 1 } braid_device_kind;

typedef struct braid_device_info {
    int index; /* position in the list; real GPUs come first; -1: the host */
    braid_device_kind kind;
    char name[256];
    char driver[256];    /* driver name and version */
    uint8_t uuid[16];
    uint64_t memory;     /* bytes of the largest device-local heap */
    uint32_t api_version;  /* VK_MAKE_API_VERSION */
    uint32_t subgroup_size;
    bool usable;         /* meets braid's requirements */
    char reason[256];    /* why not, when not usable */
} braid_device_info;

/* Writes at most `capacity` entries; *count receives how many there are. No Vulkan driver: NO_DEVICE. */
BRAID_API braid_status braid_device_list(braid_device_info *out, size_t capacity, size_t *count, braid_error *err);

typedef struct braid_device_options {
    size_t size;
    const char *select;    /* "0" (index), a UUID in hex, or part of a name in any case; NULL: the first usable GPU,
                              else the software device; "host": no Vulkan at all, every node is computed by the CPU
                              reference */
    const char *cache_dir; /* pipeline cache folder; NULL: $XDG_CACHE_HOME/braid or ~/.cache/braid */
    bool no_cache;
    bool validation;       /* ask for the Khronos validation layer */
    bool pipeline_figures; /* ask the driver what it made of each pipeline: braid_pipeline_time.figures */
    braid_log_fn *log;
    void *log_user;
} braid_device_options;

/* To be closed with braid_device_close. Nothing matches, or nothing can be used: NO_DEVICE; what was asked for by
   index, UUID or name does not meet braid's requirements: UNSUPPORTED. */
BRAID_API braid_status braid_device_open(const braid_device_options *, braid_device **out, braid_error *err);
/* The device goes when its last session does. */
BRAID_API void braid_device_close(braid_device *);
/* The host: index -1, name "host". */
BRAID_API void braid_device_describe(const braid_device *, braid_device_info *out);

/* What a device takes for things; the best of a few tries. */
typedef struct braid_device_rates {
    double barrier_ns;               /* a barrier between two waves */
    double dispatch_ns;              /* one more dispatch in a wave */
    double submit_ns;                /* a run of one small dispatch, as the host sees it */
    double memory_gbs;               /* copying on the device: bytes read and written, GB/s */
    double upload_gbs, download_gbs; /* copies from and to host memory, GB/s */
    double gflops;                   /* float32 multiply-adds, each two operations */
} braid_device_rates;
/* Measures the device, or gives what an earlier call kept in the cache folder for this device and driver; `again`
   measures in any case. Devices opened later plan by the figures: they choose schedules and never change a result.
   Takes about a second, no dispatch longer than a few ms. *measured (may be NULL): whether this call measured. The host
   is UNSUPPORTED. */
BRAID_API braid_status braid_device_probe(braid_device *, bool again, braid_device_rates *out, bool *measured,
                                          braid_error *err);

/* ------------------------------------------------------------------------------------------------- models */

/* Signature of one model input or output. A dim is -1 where it is symbolic; its symbol then is in `symbols`. */
typedef struct braid_port {
    const char *name;
    braid_type type;
    int rank; /* -1: unknown */
    int64_t dims[BRAID_MAX_RANK];
    const char *symbols[BRAID_MAX_RANK]; /* NULL: a number or without a name */
} braid_port;

typedef struct braid_model_options {
    size_t size;
    const char *external_root; /* folder that external data may be read from; NULL: the model's own folder */
    uint64_t max_bytes;        /* model file limit, default 2 GiB - 1 */
    braid_log_fn *log;
    void *log_user;
} braid_model_options;

/* To be freed with braid_model_free. A file that cannot be read is IO, one that is no ONNX FORMAT, a graph that
   contradicts itself MODEL; operators are judged by sessions, and by BRAID_REPORT_SUPPORT. */
BRAID_API braid_status braid_model_load(const char *path, const braid_model_options *, braid_model **out,
                                        braid_error *err);
/* The bytes are borrowed until braid_model_free. External data needs options->external_root. */
BRAID_API braid_status braid_model_load_memory(const void *bytes, size_t size, const braid_model_options *,
                                               braid_model **out, braid_error *err);
BRAID_API void braid_model_free(braid_model *);

/* Inputs are those to be given: an input that has an initializer is a constant. */
BRAID_API size_t braid_model_input_count(const braid_model *);
BRAID_API size_t braid_model_output_count(const braid_model *);
/* NULL when the index is out of range. The port lives as long as the model. */
BRAID_API const braid_port *braid_model_input(const braid_model *, size_t index);
BRAID_API const braid_port *braid_model_output(const braid_model *, size_t index);

/* Text reports, allocated; free with braid_text_free.
   INFO: versions, opsets, signature, operators with counts and attributes, parameters.
   GRAPH: the graph in braid's text form. SUPPORT: every node that cannot run, one line each; empty when all can. */
typedef enum braid_model_report { BRAID_REPORT_INFO = 0, BRAID_REPORT_GRAPH, BRAID_REPORT_SUPPORT } braid_model_report;
BRAID_API braid_status braid_model_describe(const braid_model *, braid_model_report, char **out, braid_error *err);
/* The operator table as text: a heading, then one line per operator: domain, name, first and last opset, whether it has
   a kernel and whether the CPU reference has it. Free with braid_text_free. */
BRAID_API braid_status braid_ops_describe(char **out, braid_error *err);
BRAID_API void braid_text_free(char *);

/* ----------------------------------------------------------------------------------------------- sessions */

typedef struct braid_dim_value {
    const char *symbol;
    int64_t value;
} braid_dim_value;

typedef struct braid_input_shape {
    const char *name;
    int rank;
    int64_t dims[BRAID_MAX_RANK];
} braid_input_shape;

/* How steps become dispatches. All but the default are there to measure what waves and merging save; results are the
   same, bit for bit. */
typedef enum braid_schedule {
    BRAID_SCHEDULE_DEFAULT = 0, /* waves of independent steps; those with one kernel share a dispatch */
    BRAID_SCHEDULE_UNMERGED,    /* the same waves, a dispatch for each step */
    BRAID_SCHEDULE_SERIAL       /* one step after the other, a barrier between each two */
} braid_schedule;

typedef struct braid_session_options {
    size_t size;
    const char *const *outputs; /* names of the wanted outputs, or of any other values of the model: they become the
                                   session's outputs, in this order. NULL: the model's outputs. Prunes the graph. */
    size_t n_outputs;
    const braid_dim_value *dims; /* values of symbolic dims */
    size_t n_dims;
    const braid_input_shape *shapes; /* shapes of inputs */
    size_t n_shapes;
    uint32_t lanes_max;     /* most lanes of a run; default 1. Plans are made for 1, 8, 64, 128, 256, ... lanes, at most
                               these, when first needed */
    uint64_t memory_budget; /* device bytes; default: three quarters of the device. More lanes than fit run in rounds of
                               fewer, with the same results, bit for bit */
    bool no_host;           /* a node without a kernel is UNSUPPORTED instead of a host step */
    bool no_fuse;           /* keep every intermediate value apart */
    bool no_reroll;         /* leave copies of a subgraph as they are */
    bool free_order;        /* sums may be cut to suit the number of lanes: faster with many, but a lane's results may
                               differ in their last bits from those of a run of that lane alone */
    bool profile;           /* time every step */
    bool verify;            /* run the plan verifier on every plan */
    braid_schedule schedule;
    braid_log_fn *log;
    void *log_user;
} braid_session_options;

/* Plans and compiles; a node that nothing can compute is UNSUPPORTED here. When some input shape is still unknown,
   planning waits for the first run with it; plans of recent shapes are kept. n_devices must be 1 in this version. */
BRAID_API braid_status braid_session_create(braid_device *const *devices, size_t n_devices, const braid_model *,
                                            const braid_session_options *, braid_session **out, braid_error *err);
BRAID_API void braid_session_free(braid_session *);

enum {
    BRAID_TENSOR_SHARED = 1, /* one buffer for all lanes */
    BRAID_TENSOR_OWNED = 2,  /* data belongs to braid */
    BRAID_TENSOR_LANES = 4   /* data is a void *const[lanes]: a buffer for each lane, each of `bytes` bytes */
};

/*
 * A tensor in host memory, dense and in C order; types of 4 and 2 bits are packed, the first element in the low bits.
 * Inputs: all fields are the caller's; `bytes` is at least what the shape needs, and data lies at a multiple of an
 * element's size.
 * Outputs: `name` is the caller's (NULL: the session's i-th output), and type, rank, dims and bytes are filled in. data
 * NULL asks braid to allocate: the tensor becomes OWNED, outlives later runs and the session, and is to be freed with
 * braid_tensor_free. Otherwise `bytes` is the size of the buffer; one that is too small gives SHAPE with the needed
 * type, rank and dims filled in. An OWNED tensor may be passed again as a buffer; when a run fails, OWNED outputs are
 * freed and their data is NULL.
 * STRING tensors hold `const char *` elements and are always allocated by braid as outputs.
 * Output buffers may lie where inputs do: the inputs are read before any output is written.
 */
typedef struct braid_tensor {
    const char *name;
    braid_type type;
    int rank;
    int64_t dims[BRAID_MAX_RANK]; /* one lane's shape */
    void *data;
    size_t bytes;
    size_t lane_stride; /* bytes between lanes; 0: dense */
    uint32_t flags;
    void *device_tensor; /* reserved, NULL */
} braid_tensor;

/* Runs `lanes` independent inferences at once, 1 <= lanes <= lanes_max: output lane i is what the model makes of input
   lane i, bit for bit what a run of that lane alone gives. A tensor's dims are those of one lane; its lanes lie
   lane_stride bytes apart (a multiple of the element's size; 0: one behind the other), or are one and the same with
   BRAID_TENSOR_SHARED, or have a buffer each with BRAID_TENSOR_LANES (outputs too; those are never allocated by braid,
   and lane_stride is 0). No two lanes of outputs may share a byte. Inputs are matched by name; every model input is
   needed. Any of the session's outputs may be asked for.

   A lane whose data the model cannot take (INDEX: an index out of range) fails alone. The call then returns the status
   of the first lane that failed, with its number in the message, and yet delivers every output, OWNED ones too: the
   failed lanes' part is zeros, the others' is what it would be without them. braid_session_lane_status tells which are
   which. Where all lanes fail, or one of one, or the error is not a lane's own, no output is delivered. */
BRAID_API braid_status braid_session_run(braid_session *, size_t lanes, const braid_tensor *in, size_t n_in,
                                         braid_tensor *out, size_t n_out, braid_error *err);
/* Makes ready what a run of `lanes` lanes needs, so that the first such run does not wait for it; of the tensors only
   name, type, rank, dims and BRAID_TENSOR_SHARED count. braid_session_describe and braid_session_stats then tell of
   it. */
BRAID_API braid_status braid_session_plan(braid_session *, size_t lanes, const braid_tensor *in, size_t n_in,
                                          braid_error *err);
/* How a lane of the last run fared; OK exactly when its outputs were delivered. ARGUMENT: that run had no such lane. */
BRAID_API braid_status braid_session_lane_status(const braid_session *, size_t lane);
BRAID_API void braid_tensor_free(braid_tensor *);

/* What the engine did with the model and why, as text: the plan that was run or made last. For several lanes it says of
   each step how it goes about them. Free with braid_text_free. */
BRAID_API braid_status braid_session_describe(const braid_session *, char **out, braid_error *err);

/* Of the plan that was run or made last, summed over its phases; arena_* are bytes of one lane. */
typedef struct braid_plan_stats {
    uint64_t phases, steps, dispatches, waves, barriers, host_steps;
    uint64_t arena_bytes, arena_bound, weight_bytes;
    uint64_t pipelines;                     /* that the device has */
    uint64_t pipelines_made, pipelines_ns; /* for this session so far, and how long it waited for them */
} braid_plan_stats;
BRAID_API void braid_session_stats(const braid_session *, braid_plan_stats *out);

/* One of the ways to plan a session's largest piece of device work: less memory, more time. */
typedef struct braid_memory_choice {
    uint64_t bytes;       /* the memory_budget that gives it: tensors of all lanes, weights, inputs, outputs */
    uint64_t arena_bytes; /* of it, tensors between steps */
    uint64_t waves, dispatches;
    uint64_t time_ns;     /* the planner's estimate */
    uint64_t in_place;    /* results that take the place of what they are made from */
} braid_memory_choice;
/* The choices for the plan that was run or made last, the fastest first, each with less memory than the one before;
   none where the device does nothing. The array lives until the session's next call of this function. */
BRAID_API braid_status braid_session_memory(braid_session *, const braid_memory_choice **out, size_t *count,
                                            braid_error *err);

/* One step of a plan: what a node asks of the device, or a node that the host computes. */
typedef struct braid_plan_step {
    const char *node, *op;
    const char *kernel;    /* or "host" */
    uint32_t phase;        /* device work and host work by turns, in order */
    uint32_t wave;         /* of the phase: a barrier stands between two */
    uint32_t dispatch;     /* of the phase; steps of one dispatch are its rows */
    uint32_t copies;       /* copies of the node that were rolled into one; else 1 */
    bool once;             /* the same for all lanes, done once */
    uint64_t tiles;        /* workgroups */
    uint64_t flops, bytes; /* of one lane and one copy */
    uint64_t cost_ns;      /* estimate for the whole dispatch; 0: none */
} braid_plan_step;
/* Steps of the latest plan, dispatch by dispatch; the array and its names live until the session's next run or call of
   this function. */
BRAID_API braid_status braid_session_steps(braid_session *, const braid_plan_step **out, size_t *count,
                                           braid_error *err);

/* Times of the last run. A device time is 0 where the device has no timestamps. */
typedef struct braid_step_time {
    const char *node;   /* name of the (first) node */
    const char *op;     /* its operator */
    const char *kernel; /* kernel name, or "host" */
    uint64_t start_ns, time_ns; /* start: on the device since its submission began, on the host by a clock of its own */
    uint64_t flops, bytes; /* of all lanes and copies; weights count once */
    uint32_t wave;
    uint32_t rows;   /* steps that share the dispatch */
    uint32_t copies; /* of the first node; as in braid_plan_step */
} braid_step_time;
/* braid_run_times.device_ns of the last run. */
BRAID_API uint64_t braid_session_device_ns(const braid_session *);
typedef struct braid_run_times {
    uint64_t device_ns;              /* first to last command, summed over device segments */
    uint64_t upload_ns, download_ns; /* part of it that copies inputs to the device and results to the host */
} braid_run_times;
BRAID_API void braid_session_times(const braid_session *, braid_run_times *out);
/* Steps of the last run of a session made with .profile; the array lives until the next run. */
BRAID_API size_t braid_session_profile(const braid_session *, const braid_step_time **out);

/* A pipeline that was made for a session: code of a kernel, with constants that are fixed in it. A device makes one of
   each: what an earlier session has is not made again. */
typedef struct braid_pipeline_time {
    const char *kernel;
    const char *variant;   /* tile, fetches and the like of a product kernel; else "" */
    const char *node, *op; /* the first node that runs it */
    uint64_t create_ns;    /* several are created at once: sums exceed what the session waited */
    uint64_t busy_ns;      /* of it, work of the thread that asked; else it waited for the driver's threads or locks */
    uint64_t module_bytes; /* SPIR-V that the driver was given */
    bool cached;           /* its code came from the cache folder, as far as the driver tells */
    const char *figures;   /* "NAME VALUE, ...", as the driver puts it: registers, bytes of code; "" without
                              braid_device_options.pipeline_figures or where the driver tells nothing */
} braid_pipeline_time;
/* Pipelines made for the session, in the order in which they were needed; the array lives until its next run or
   plan. */
BRAID_API size_t braid_session_pipelines(const braid_session *, const braid_pipeline_time **out);

/* Runs every node on the CPU reference and reports, for each value that the GPU also materialises, how far the two
   are apart. The text holds one line per differing node; *worst is the largest difference relative to the largest
   magnitude of its tensor, infinite where infinities or NaN differ, NaN where there was nothing to compare. Free the report with braid_text_free. */
BRAID_API braid_status braid_session_compare(braid_session *, const braid_tensor *in, size_t n_in, double *worst,
                                             char **report, braid_error *err);

#ifdef __cplusplus
}
#endif
#endif
