/*
 * bench: what the files of `braid bench` share.
 *
 *     bench.c          the command and the clock
 *     bench_against.c  the same work as a true batch
 *     bench_ablate.c   the same under other schedules
 *     bench_print.c    text, table, JSON
 */
#ifndef BENCH_H
#define BENCH_H

#include "cli.h"

#include <jansson.h>

/* What is measured: `lanes` inferences at once on these inputs. */
typedef struct bench_work {
    braid_session *session;
    const braid_tensor *in;
    braid_tensor *out; /* owned outputs are buffers of the next run */
    size_t n_in, n_out;
    uint32_t lanes;
    double first_ms;           /* of the first run since it was set to 0 */
    size_t pipelines;          /* made before */
    uint64_t pipelines_ns;
} bench_work;

/* What the times did at the end of warming up. */
typedef enum bench_steady { BENCH_UNKNOWN, BENCH_FALLING, BENCH_STEADY } bench_steady;

typedef struct bench_figures {
    size_t runs;                              /* 0: not measured */
    double p50, p90, p99, least;              /* ms of wall time */
    double device, upload, download, compute; /* medians, ms; device 0: no timestamps; compute: device without copies */
    double rate;                              /* items per s of wall time */
    double warmup_ms;                         /* of runs before, without the first */
    bench_steady steady;
} bench_figures;

/* Pipelines made for one number of lanes. */
typedef struct bench_made {
    size_t count, cached;
    double ms;          /* that was waited for them */
    double slowest_ms;  /* of the one that took longest, */
    char slowest[200];  /* "KERNEL VARIANT" */
} bench_made;

/* One number of lanes. */
typedef struct bench_row {
    uint32_t lanes;
    bench_figures one, batch; /* by lanes; as a true batch, with --against */
    double differs;           /* largest difference of the two, relative to the largest value; below 0: unknown */
    double first_ms; /* the first run: planning, making pipelines, uploading weights included */
    bench_made made;
    braid_plan_stats stats;
    char error[256]; /* why it could not run at this number; empty: it ran */
} bench_row;

typedef struct bench_report {
    const char *model, *against, *device;
    double load_ms, plan_ms;
    size_t count;
    bench_row *rows;
} bench_report;

/* Runs and measures `items` inferences a run. The outputs of the last run stay in w->out. */
braid_status bench_measure(const cli_options *, bench_work *, uint32_t items, bench_figures *, braid_error *);
void bench_work_free(bench_work *);

/* ---- bench_against.c */
typedef struct bench_batch {
    engine e; /* the device is borrowed */
    cli_options options;
    bool used; /* some number of lanes fitted the file */
} bench_batch;
braid_status bench_batch_open(const cli_options *, const engine *, bench_batch *, braid_error *);
/* Measures the items of `lanes`, which has just been measured, as one batch. A file whose batch is fixed to another
   number: no figures. */
braid_status bench_batch_row(bench_batch *, const bench_work *lanes, bench_row *, braid_error *);
void bench_batch_close(bench_batch *);

/* ---- bench_ablate.c: measures and prints. */
braid_status bench_ablate(const cli_options *, engine *, braid_tensor *in, size_t n_in, uint32_t lanes, braid_error *);

/* ---- bench_print.c */
void bench_print(const cli_options *, const bench_report *);
json_t *bench_steady_json(bench_steady); /* true, false, null: unknown */

#endif
