#include <braid/braid.h>
#include <stdio.h>

/* look digits.onnx: where does the time of a run go, what was planned, and is the result right? */

static float pixels[64];
static const braid_tensor in = {.name = "image", .type = BRAID_FLOAT32, .rank = 4, .dims = {1, 1, 8, 8}, .data = pixels,
                                .bytes = sizeof pixels};

static void print_times(const braid_session *s) {
    const braid_step_time *steps;
    const braid_pipeline_time *made;
    braid_run_times all;
    braid_session_times(s, &all);
    printf("device %.1f us: upload %.1f us, download %.1f us\n", (double)braid_session_device_ns(s) / 1e3,
           (double)all.upload_ns / 1e3, (double)all.download_ns / 1e3);
    for (size_t i = 0, n = braid_session_profile(s, &steps); i < n; i++)
        printf("%8.1f us %-10s %s '%s'\n", (double)steps[i].time_ns / 1e3, steps[i].kernel, steps[i].op, steps[i].node);
    for (size_t i = 0, n = braid_session_pipelines(s, &made); i < n; i++)
        printf("pipeline %s %s: made in %.1f ms\n", made[i].kernel, made[i].variant, (double)made[i].create_ns / 1e6);
}

static braid_status print_plan(braid_session *s, braid_error *err) {
    const braid_memory_choice *choices;
    const braid_plan_step *steps;
    braid_plan_stats stats;
    char *text;
    size_t n;
    braid_session_stats(s, &stats);
    printf("%llu steps in %llu waves; %llu bytes of weights\n", (unsigned long long)stats.steps,
           (unsigned long long)stats.waves, (unsigned long long)stats.weight_bytes);
    if (braid_session_describe(s, &text, err)) return err->status;
    fputs(text, stdout);
    braid_text_free(text);
    if (braid_session_steps(s, &steps, &n, err)) return err->status;
    for (size_t i = 0; i < n; i++)
        printf("%s '%s': wave %u, %llu workgroups, about %.1f us\n", steps[i].op, steps[i].node, steps[i].wave,
               (unsigned long long)steps[i].tiles, (double)steps[i].cost_ns / 1e3);
    if (braid_session_memory(s, &choices, &n, err)) return err->status;
    for (size_t i = 0; i < n; i++)
        printf("with a budget of %llu bytes: %llu waves, about %.1f us\n", (unsigned long long)choices[i].bytes,
               (unsigned long long)choices[i].waves, (double)choices[i].time_ns / 1e3);
    return BRAID_OK;
}

int main(int argc, char **argv) {
    braid_device *device;
    braid_model *model;
    braid_session *session;
    braid_error err;
    braid_session_options options = {.size = sizeof options, .profile = true}; /* every step is timed */
    braid_tensor out = {.name = "logits"};
    double worst;
    char *differences;
    if (braid_device_open(NULL, &device, &err) || braid_model_load(argv[argc - 1], NULL, &model, &err) ||
        braid_session_create(&device, 1, model, &options, &session, &err) ||
        braid_session_run(session, 1, &in, 1, &out, 1, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    print_times(session);
    if (print_plan(session, &err) || braid_session_compare(session, &in, 1, &worst, &differences, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    printf("%sfrom the CPU reference at most %.1g of a tensor's largest magnitude\n", differences, worst);
    braid_text_free(differences);
    braid_tensor_free(&out);
    braid_session_free(session);
    braid_model_free(model);
    braid_device_close(device);
}
