/*
 * session.h: how a run is carried out.
 *
 *   session ── base graph (pruned, folded, symbols left) ── weights (one copy on the device)
 *         └─ stages, one per set of input shapes (small cache)
 *               stage ── graph with static shapes, fused
 *                   ├─ segments: GPU programs and host steps by turns
 *                   └─ rest: what could not be planned yet (shapes that depend on data); a graph of its own whose
 *                      stages are cached under the shapes and small integer values that reach it
 *
 * Most models are one stage with one GPU segment.
 */
#ifndef BRAID_SESSION_H
#define BRAID_SESSION_H

#include <pthread.h>

#include "api/api.h"
#include "gpu/gpu.h"
#include "ops/op.h"
#include "pass/pass.h"
#include "plan/plan.h"

struct braid_device {
    gpu *gpu; /* NULL: the host */
    logger log;
    int references;
    pthread_mutex_t lock;
};
braid_device *device_ref(braid_device *);
void device_unref(braid_device *);

/* ---- weights.c: constants on the device, one copy per session. */
typedef struct weights weights;
braid_status weights_new(braid_device *, weights **out, braid_error *err);
void weights_free(weights *);
uint64_t weights_bytes(const weights *);
/* Gives every CONST storage of the plan its address, uploading what is not there yet. What operators made for this plan
   goes to *own, which the caller frees. */
braid_status weights_place(weights *, plan *, gpu_buffer *own, braid_error *err);

/* ---- where a value is during a run */
typedef struct place {
    tensor *host;            /* content on the host, or NULL */
    const gpu_buffer *buffer; /* content on the device, or NULL */
    uint64_t offset;
    uint64_t stride; /* bytes between lanes, on either side; 0: the same for all lanes */
    const void *const *each; /* host content lane by lane instead, or NULL; stride is then merely not 0 */
} place;
/* One lane of a place that has its content on the host. */
static inline const uint8_t *place_lane(const place *p, uint32_t lane) {
    if (p->each && p->stride) return p->each[lane];
    return (const uint8_t *)p->host->data + lane * p->stride;
}

/* Where lanes are to be put: `stride` bytes apart, or each by itself. */
typedef struct lane_room {
    void *data;
    uint64_t stride;
    void *const *each; /* NULL: data and stride */
} lane_room;
static inline uint8_t *room_lane(const lane_room *to, size_t lane) {
    return to->each ? to->each[lane] : (uint8_t *)to->data + lane * to->stride;
}
/* Bytes of some lanes of one value, to be copied on the host. */
typedef struct carriage {
    lane_room to;
    const place *from;
    uint32_t lanes;
    size_t bytes; /* of each lane */
    size_t first; /* set by carry */
} carriage;
/* Copies them all, together (carry.c). */
void carry(carriage *list, size_t n);

/* ---- lanes that fail (lanes.c) */
typedef struct lane_log {
    uint32_t lanes;       /* of the run */
    uint32_t failed;      /* how many so far, */
    uint32_t failed_now;  /* and in the round under way */
    uint32_t first;       /* the lowest of them, */
    braid_error error;    /* and why */
    braid_status *status; /* of each lane */
} lane_log;

/* ---- segments (segment.c): consecutive work of one kind. */
typedef struct segment {
    bool on_host;
    uint32_t bucket; /* lanes that there is room for */
    /* host: nodes of the stage's graph, in order */
    int32_t *nodes;
    int32_t n_nodes;
    /* device: a graph of its own; *_of name its values by the stage graph's numbers */
    graph *g;
    int32_t *input_of, *output_of;
    bool *input_uploaded; /* comes from the host */
    bool *input_varies;   /* differs between lanes */
    bool *input_joinable; /* comes from the host in every run */
    bool *output_wanted;  /* goes to the host */
    plan *p;
    gpu_program *program;
    gpu_buffer rows, run, io, upload, download, constants;
    bool write_io, read_io; /* the host does, without `upload` and `download` */
    bool *wanted;           /* outputs that go to the host; by plan output number, as the next */
    bool *posted;           /* those of them that kernels write to `download`, not io */
    carriage *inward;       /* room for the list of what a run copies to the device */
    size_t copies_in, copies_out; /* that the program makes: regions side by side are one */
    gpu_buffer *blocks;
    uint64_t *input_offset, *join_offset, *output_offset; /* in io; outputs by plan output number */
    int32_t *export_of; /* graph output i: plan output number, or -1 - (graph input number), or INT32_MIN: constant */
    uint64_t io_bytes;
    bool alone; /* the stage is this segment and nothing else: rounds may overlap */
} segment;

typedef enum lane_limit { LIMIT_NONE, LIMIT_BUDGET, LIMIT_MEMORY } lane_limit;

/* Do rounds overlap, or why not. */
typedef enum overlap { OVERLAP_OPEN /* not looked at yet */, OVERLAP_YES, OVERLAP_PARTS, OVERLAP_MEMORY, OVERLAP_PROFILE } overlap;

typedef struct stage stage;
typedef struct stage_cache {
    stage *first;
    int count;
} stage_cache;

struct stage {
    stage *next;
    uint64_t used; /* for eviction */
    arena *memory;
    graph *g;
    reroll_report packs; /* what became several copies of one body */
    uint32_t bucket; /* lanes that there is room for */
    lane_limit limit; /* why no larger bucket was made; runs of more lanes take rounds */
    overlap overlap;
    segment *twin; /* OVERLAP_YES: the one segment again, with its own share of what the host touches */
    tensor_type *key_types; /* of the inputs */
    tensor **key_values;    /* baked inputs, NULL otherwise */
    bool *key_varies;       /* inputs that differ between lanes; with room for several only */
    bool *varies;           /* by value of g */
    segment *segments;
    int32_t n_segments;
    graph *rest; /* NULL: everything is planned */
    int32_t *rest_input_of;  /* stage value of each rest input */
    int32_t *rest_output_of; /* stage graph output number of each rest output */
    stage_cache rest_stages;
};

/* What tests may ask for; holds for stages made from then on. */
typedef struct session_test {
    bool redzone;    /* storages apart from each other with guards between */
    bool least;      /* plans take as little memory as they can */
    bool shuffle;    /* steps of a wave in reversed order */
    bool reroll_any; /* re-rolls what does not pay, too */
    bool poison;     /* device memory holds poison_byte before every run; what must not change is checked after it */
    uint8_t poison_byte;
    bool staged;     /* inputs and outputs are copied as if the host could not see the device's memory, */
    bool staged_out; /* or outputs alone, as if it could not read it */
    uint64_t memory; /* the device has no more for one segment of several lanes; 0: what there is */
} session_test;

struct braid_session {
    pthread_mutex_t lock;
    braid_device *device;
    braid_model *model;
    arena *memory;
    graph *base;
    weights *weights;
    stage_cache stages;
    uint64_t clock;
    bool no_host, no_fuse, no_reroll, free_order, profile, verify;
    braid_schedule schedule;
    bool keep_all; /* stages made now export every value (compare) */
    session_test test;
    logger log;
    const device_traits *traits; /* NULL: host */
    uint64_t memory_budget; /* bytes one plan may take */
    uint32_t lanes_max;
    uint32_t lanes; /* of the round under way, mostly of the whole run, */
    uint32_t lane_base; /* and the first of them */
    uint32_t asked; /* lanes of the run made or planned last */
    uint32_t fit;   /* when a segment's memory was not to be had: so many lanes may fit; 0: lanes do not matter */
    lane_limit limit; /* and why */
    lane_log log_lanes;
    braid_status run_status; /* of the last run as a whole */
    gpu_times spent; /* of the last run */
    braid_step_time *times;
    size_t n_times, cap_times;
    braid_pipeline_time *pipelines; /* made for this session */
    size_t n_pipelines, cap_pipelines;
    uint64_t pipelines_ns;
    braid_plan_step *plan_steps; /* what braid_session_steps gave last */
    braid_memory_choice *choices; /* of braid_session_memory */
    tensor_type *input_types; /* as asked for at creation; may hold symbols */
};

/* Checks the caller's tensors against the model and makes them places, by input number. planning: without data. */
braid_status session_inputs(braid_session *, const braid_tensor *in, size_t n_in, bool planning, place *places,
                            arena *memory, braid_error *err);
/* The stage that was made or run last; NULL: none yet. */
const stage *session_stage(const braid_session *);

/* ---- lanes.c */
/* A run of s->lanes lanes begins: none has failed. */
braid_status lanes_begin(braid_session *, braid_error *err);
/* Is this lane of the round under way still in order. */
bool lane_good(const braid_session *, uint32_t lane);
/* Notes that a lane of the round under way failed. OK while others go on; a status where the round ends: it was its last
   good lane, or this status says nothing about the lane's data (memory, the device). */
braid_status lane_fail(braid_session *, uint32_t lane, const braid_error *why, braid_error *err);
/* After a run that went through: OK, or the error of the first lane that failed. */
braid_status lanes_verdict(const braid_session *, braid_error *err);
/* After some lanes were run by themselves and that ended with `why`: OK when all of them have failed, each by its own
   data, so that the others may go on; else the error. */
braid_status lane_failed(braid_session *, braid_status, const braid_error *why, braid_error *err);
/* rounds.c: runs all lanes of these inputs: at once, or in rounds of as many as fit. */
braid_status session_run_lanes(braid_session *, const place *inputs, place *outputs, arena *memory, braid_error *err);
/* "1,3,?": the dims with commas, a question mark for one not known. */
void session_shape_text(const tensor_type *, char *buffer, size_t size);
/* Takes one lane's result into a place for `lanes`: the first that comes makes the room, zeros, and the others must
   have its shape. */
braid_status place_keep_lane(uint32_t lanes, uint32_t lane, const tensor *result, place *to, arena *memory,
                             braid_error *err);

/* overlap.c: ARGUMENT where two lanes of the outputs' buffers share a byte. out[] is filled in; lane_bytes[] and from[],
   where its content is, by output. After it content lies in no output buffer. */
braid_status outputs_apart(const braid_session *, const braid_tensor *out, const size_t *lane_bytes, size_t n_out,
                           place *const *from, arena *memory, braid_error *err);

/* Places that begin with this lane. */
braid_status place_take(const place *all, int32_t n, uint32_t lane, place *one, arena *memory, braid_error *err);

/* ---- rest.c */
/* Runs what stage_run could not plan; places[] by the stage's values. */
braid_status rest_run(braid_session *, stage *, place *places, arena *memory, braid_error *err);

/* ---- stage.c */
/* Finds or makes the stage of `cache` for graph g with these inputs. baked: small integer inputs count as constants. */
braid_status stage_get(braid_session *, stage_cache *, const graph *g, const place *in, bool baked, stage **out,
                       braid_error *err);
void stage_cache_clear(braid_session *, stage_cache *);
/* Runs it: in[] by graph input, out[] by graph output. Host results live in `memory`. */
braid_status stage_run(braid_session *, stage *, const place *in, place *out, arena *memory, braid_error *err);
/* The same in two halves, for a stage that has a twin: stage_begin submits the work of `seg`, the segment or its twin;
   stage_end waits for it. In between `in` and `memory` stay as they are. */
braid_status stage_begin(braid_session *, stage *, segment *seg, const place *in, place **places, arena *memory,
                         braid_error *err);
braid_status stage_end(braid_session *, stage *, segment *seg, place *places, place *out, arena *memory, braid_error *err);
/* Is this input small enough, and of a type, to be baked into a plan. */
bool stage_bakes(const tensor_type *);

/* ---- pipelines.c */
/* out[i]: the pipeline of the plan's dispatch i. */
braid_status session_pipelines(braid_session *, const graph *, const plan *, uint32_t *out, braid_error *err);

/* ---- segment.c */
plan_options segment_plan_options(const braid_session *, const segment *);
braid_status segment_compile(braid_session *, stage *, segment *, braid_error *err);
braid_status segment_run(braid_session *, stage *, segment *, place *places, arena *memory, braid_error *err);
void segment_free(braid_session *, segment *);
/* Both halves of segment_run for a device segment. */
braid_status segment_begin(braid_session *, segment *, const place *places, braid_error *err);
braid_status segment_end(braid_session *, stage *, segment *, place *places, arena *memory, braid_error *err);
/* Waits until the device is done with it. */
void segment_settle(braid_session *, const segment *);
/* A segment of the same plan, weights and device memory that has what host and device share for itself. One that does
   not fit has *twin NULL. */
braid_status segment_twin(braid_session *, stage *, const segment *, segment **twin, braid_error *err);
void segment_twin_free(braid_session *, segment *);
/* poison.c: fills the segment's memory before a run, and after it looks for writes outside every tensor. */
braid_status segment_poison(braid_session *, segment *, braid_error *err);
braid_status segment_check_poison(braid_session *, segment *, braid_error *err);
/* ---- host.c */
/* Runs node i of the stage's graph on the host, lane by lane where its inputs differ between lanes. */
braid_status host_run(braid_session *, stage *, int32_t i, place *places, arena *memory, braid_error *err);
/* Makes a value's host tensor from wherever it is. */
braid_status place_to_host(braid_session *, const tensor_type *, place *, arena *memory, braid_error *err);
braid_status session_add_time(braid_session *, braid_step_time, braid_error *err);

#endif
