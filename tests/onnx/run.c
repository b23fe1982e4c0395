/*
 * onnx_run: runs conformance tests of an index and compares with what is expected of each.
 *
 *     onnx_run --data DIR --index FILE [--expected FILE] [--op OP] [--test NAME] [--results FILE]
 *              [--device D] [--no-host] [--fresh] [--timeout S] [--list]
 *
 * The parent reads the index; a child opens the device once and runs the tests in order, reporting through a pipe.
 * A child that dies or stalls costs its current test (crash, hang) and is replaced for the ones behind it.
 *
 * Outcomes: pass (all on the device), host (some step on the CPU), unsupported, refused (an invalid model was),
 * and the failures: mismatch, error, crash, hang. A failure, or less than the expectation file says, exits 1.
 */
#include "cli.h"

#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum outcome { NOT_RUN, RUNNING, PASS, HOST, UNSUPPORTED, REFUSED, MISMATCH, ERROR, CRASH, HANG } outcome;
static const char *const outcome_names[] = {"not-run", "running",  "pass",  "host",  "unsupported",
                                            "refused", "mismatch", "error", "crash", "hang"};

typedef struct test {
    char *name, *kind, *op, *inputs, *verdict;
    double rtol, atol;
    outcome expected, got;
    int ms;
    char text[256];
} test;

typedef struct settings {
    const char *data, *index, *expected, *op, *test, *results, *device;
    bool no_host, list, strict;
    int timeout_ms;
} settings;

/* What the child tells: `index` is a test; RUNNING when it starts. Smaller than PIPE_BUF, so written whole. */
typedef struct message {
    size_t index;
    outcome got;
    int ms;
    char text[256];
} message;

/* ---- one test, in the child */

static outcome outcome_of(const braid_error *err) {
    return err->status == BRAID_UNSUPPORTED ? UNSUPPORTED : ERROR;
}

/* Sequences and optionals cannot be given to a run, whatever the bytes of their files look like. */
static bool only_tensors(const test *t) { return !strchr(t->inputs, '('); }

static braid_status load_set(const char *folder, const char *side, braid_tensor *tensors, size_t count,
                             braid_error *err) {
    for (size_t i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%zu.pb", folder, side, i);
        TRY(tensor_pb_load(path, &tensors[i], err));
    }
    return BRAID_OK;
}

static bool same_form(const braid_tensor *a, const braid_tensor *b) {
    return a->type == b->type && a->rank == b->rank && !memcmp(a->dims, b->dims, sizeof a->dims[0] * (size_t)a->rank);
}

static outcome compare_all(const test *t, const braid_tensor *got, const braid_tensor *want, size_t count,
                           char text[256]) {
    for (size_t i = 0; i < count; i++) {
        comparison c;
        if (!strcmp(t->verdict, "random") && same_form(&got[i], &want[i])) continue;
        tensor_compare(&got[i], &want[i], t->rtol, t->atol, &c);
        if (c.ok) continue;
        snprintf(text, 256, "%.60s: %.190s", got[i].name ? got[i].name : "?", c.text);
        return MISMATCH;
    }
    return PASS;
}

typedef struct sides {
    braid_tensor *in, *got, *want;
    size_t n_in, n_out;
} sides;

static outcome run_session(const test *t, const char *folder, const braid_model *model, braid_session *session,
                           sides *s, char text[256], braid_error *err) {
    for (size_t i = 0; i < s->n_in; i++) s->in[i].name = braid_model_input(model, i)->name;
    if (!only_tensors(t)) return cli_error(err, BRAID_UNSUPPORTED, "an input that is no tensor"), UNSUPPORTED;
    if (load_set(folder, "input", s->in, s->n_in, err) != BRAID_OK) return outcome_of(err);
    for (size_t i = 0; i < s->n_out; i++) s->got[i].name = braid_model_output(model, i)->name;
    if (braid_session_run(session, 1, s->in, s->n_in, s->got, s->n_out, err) != BRAID_OK) return outcome_of(err);
    if (load_set(folder, "output", s->want, s->n_out, err) != BRAID_OK) return outcome_of(err);
    outcome out = compare_all(t, s->got, s->want, s->n_out, text);
    braid_plan_stats stats = {0};
    braid_session_stats(session, &stats);
    if (out != PASS || !stats.host_steps) return out;
    snprintf(text, 256, "%llu steps on the CPU", (unsigned long long)stats.host_steps);
    return HOST;
}

static outcome run_model(const settings *set, const test *t, const char *folder, braid_device *device,
                         const braid_model *model, char text[256], braid_error *err) {
    braid_session_options options = {.size = sizeof options, .no_host = set->no_host, .verify = true};
    braid_session *session = NULL;
    if (braid_session_create(&device, 1, model, &options, &session, err) != BRAID_OK) return outcome_of(err);
    sides s = {.n_in = braid_model_input_count(model), .n_out = braid_model_output_count(model)};
    s.in = calloc(s.n_in + 1, sizeof *s.in);
    s.got = calloc(s.n_out + 1, sizeof *s.got);
    s.want = calloc(s.n_out + 1, sizeof *s.want);
    outcome out = s.in && s.got && s.want ? run_session(t, folder, model, session, &s, text, err) : ERROR;
    tensors_free(s.in, s.n_in);
    tensors_free(s.got, s.n_out);
    tensors_free(s.want, s.n_out);
    braid_session_free(session);
    return out;
}

static outcome run_test(const settings *set, const test *t, braid_device *device, char text[256]) {
    char folder[2048], path[4096];
    snprintf(folder, sizeof folder, "%s/%s/%s", set->data, t->kind, t->name);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    braid_error err = {0};
    braid_model *model = NULL;
    outcome out = braid_model_load(path, NULL, &model, &err) == BRAID_OK
                      ? run_model(set, t, folder, device, model, text, &err)
                      : outcome_of(&err);
    braid_model_free(model);
    if (out == UNSUPPORTED || out == ERROR) snprintf(text, 256, "%.255s", err.message);
    if (strcmp(t->verdict, "invalid")) return out;
    if (out == ERROR) return REFUSED;
    if (out == PASS || out == HOST) {
        snprintf(text, 256, "an invalid model ran");
        return MISMATCH;
    }
    return out;
}

static int child(const settings *set, const test *tests, size_t count, size_t start, int pipe_end) {
    braid_error err = {0};
    braid_device *device = NULL;
    braid_device_options options = {.size = sizeof options, .select = set->device};
    if (braid_device_open(&options, &device, &err) != BRAID_OK) {
        fprintf(stderr, "onnx_run: %s\n", err.message);
        return 3;
    }
    for (size_t i = start; i < count; i++) {
        message m = {.index = i, .got = RUNNING};
        if (write(pipe_end, &m, sizeof m) != (ssize_t)sizeof m) return 4;
        uint64_t from = cli_clock_ns();
        m.got = run_test(set, &tests[i], device, m.text);
        m.ms = (int)((cli_clock_ns() - from) / 1000000);
        if (write(pipe_end, &m, sizeof m) != (ssize_t)sizeof m) return 4;
    }
    braid_device_close(device);
    return 0;
}

/* ---- the parent */

/* Collects messages until the child ends or stalls; returns the test that was running then, or `count`. */
static size_t collect(const settings *set, test *tests, size_t count, int pipe_end, size_t *next, bool *stalled) {
    struct pollfd p = {.fd = pipe_end, .events = POLLIN};
    size_t running = count;
    for (;;) {
        if (poll(&p, 1, set->timeout_ms) == 0) {
            *stalled = true;
            return running;
        }
        message m;
        if (read(pipe_end, &m, sizeof m) != (ssize_t)sizeof m) return running;
        running = m.got == RUNNING ? m.index : count;
        *next = m.index + 1;
        tests[m.index].got = m.got;
        tests[m.index].ms = m.ms;
        memcpy(tests[m.index].text, m.text, sizeof m.text);
    }
}

/* Runs tests from *next on in one child. False when nothing can go on. */
static bool run_child(const settings *set, test *tests, size_t count, size_t *next) {
    int ends[2], state = 0;
    if (pipe(ends) != 0) return false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        exit(child(set, tests, count, *next, ends[1]));
    }
    close(ends[1]);
    size_t before = *next;
    bool stalled = false;
    size_t running = pid > 0 ? collect(set, tests, count, ends[0], next, &stalled) : count;
    if (stalled) kill(pid, SIGKILL);
    if (pid > 0) waitpid(pid, &state, 0);
    close(ends[0]);
    if (running < count) {
        tests[running].got = stalled ? HANG : CRASH;
        snprintf(tests[running].text, sizeof tests[running].text, stalled ? "no answer in time" : "status %d", state);
        return true;
    }
    bool clean = pid > 0 && WIFEXITED(state) && WEXITSTATUS(state) == 0;
    if (!clean) fprintf(stderr, "onnx_run: the process ended with status %d after its tests\n", state);
    return clean && *next > before;
}

static bool run_all(const settings *set, test *tests, size_t count) {
    size_t next = 0;
    while (next < count)
        if (!run_child(set, tests, count, &next)) return false;
    return true;
}

/* ---- the index */

static char *next_cell(char **line) {
    char *cell = *line;
    char *tab = cell ? strchr(cell, '\t') : NULL;
    if (tab) *tab = 0;
    *line = tab ? tab + 1 : NULL;
    return cell ? cell : (char *)"";
}

/* name kind op opset inputs outputs rtol atol verdict ...; '#' lines and the line of names are skipped. */
static bool parse_test(char *line, test *t) {
    if (*line == '#' || !*line || !strncmp(line, "name\t", 5)) return false;
    char *cells[9];
    for (int i = 0; i < 9; i++) cells[i] = next_cell(&line);
    *t = (test){.name = cells[0], .kind = cells[1], .op = cells[2], .inputs = cells[4], .verdict = cells[8]};
    t->rtol = strtod(cells[6], NULL); /* "exact" counts as 0 */
    t->atol = strtod(cells[7], NULL);
    return true;
}

static test *read_index(const settings *set, char *text, size_t *count) {
    size_t lines = 1;
    for (char *c = text; *c; c++) lines += *c == '\n';
    test *tests = calloc(lines, sizeof *tests);
    for (char *line = strtok(text, "\n"); tests && line; line = strtok(NULL, "\n")) {
        test *t = &tests[*count];
        if (!parse_test(line, t)) continue;
        if (set->op && strcmp(set->op, t->op)) continue;
        if (set->test && strcmp(set->test, t->name)) continue;
        ++*count;
    }
    return tests;
}

/* Lines "name outcome". A test that is not listed is expected to be unsupported at worst. */
static void read_expected(char *text, test *tests, size_t count) {
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *name = next_cell(&line), *word = next_cell(&line);
        for (size_t i = 0; i < count; i++) {
            if (strcmp(tests[i].name, name)) continue;
            for (int k = PASS; k <= REFUSED; k++)
                if (!strcmp(outcome_names[k], word)) tests[i].expected = (outcome)k;
        }
    }
}

/* PASS < HOST < UNSUPPORTED: is what came as good as expected? A host step where none was is a regression only on the
   kind of device that the expectations were written for (`strict`). */
static bool acceptable(const settings *set, const test *t) {
    if (t->got > REFUSED || t->got <= RUNNING) return false;
    if (t->expected == NOT_RUN || set->no_host) return true;
    if (t->got == HOST && t->expected == PASS && !set->strict) return true;
    return t->got <= t->expected || t->got == REFUSED;
}

static int report(const settings *set, const test *tests, size_t count) {
    size_t counts[HANG + 1] = {0}, bad = 0, better = 0;
    FILE *results = set->results ? fopen(set->results, "w") : NULL;
    for (size_t i = 0; i < count; i++) {
        const test *t = &tests[i];
        counts[t->got]++;
        if (results) fprintf(results, "%s\t%s\t%s\t%d\n", t->name, outcome_names[t->got], t->text, t->ms);
        bool fine = acceptable(set, t);
        better += fine && t->expected != NOT_RUN && t->got < t->expected;
        bad += !fine;
        if (!fine || set->list)
            printf("%-11s %s%s%s%s%s\n", outcome_names[t->got], t->name, t->text[0] ? ": " : "", t->text,
                   fine ? "" : ", expected ",
                   fine          ? ""
                   : t->expected ? outcome_names[t->expected]
                                 : "no failure");
    }
    for (int k = 0; k <= HANG; k++)
        if (counts[k]) printf("%zu %s, ", counts[k], outcome_names[k]);
    printf("%zu tests%s\n", count, better ? "; some better than expected: re-bless" : "");
    if (results && fclose(results) != 0) bad++;
    return bad || !count ? 1 : 0;
}

static settings parse(int argc, char **argv) {
    settings set = {.timeout_ms = 120000, .strict = true};
    static const struct option options[] = {
        {"data", 1, NULL, 'd'},    {"index", 1, NULL, 'i'},   {"expected", 1, NULL, 'e'},   {"op", 1, NULL, 'o'},
        {"test", 1, NULL, 't'},    {"results", 1, NULL, 'r'}, {"device", 1, NULL, 'D'},     {"no-host", 0, NULL, 'n'},
        {"timeout", 1, NULL, 'T'}, {"list", 0, NULL, 'l'},    {"any-device", 0, NULL, 'a'}, {0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'd':
            set.data = optarg;
            break;
        case 'i':
            set.index = optarg;
            break;
        case 'e':
            set.expected = optarg;
            break;
        case 'o':
            set.op = optarg;
            break;
        case 't':
            set.test = optarg;
            break;
        case 'r':
            set.results = optarg;
            break;
        case 'D':
            set.device = optarg;
            break;
        case 'n':
            set.no_host = true;
            break;
        case 'T':
            set.timeout_ms = 1000 * atoi(optarg);
            break;
        case 'l':
            set.list = true;
            break;
        case 'a':
            set.strict = false;
            break;
        default:
            exit(2);
        }
    }
    if (!set.data || !set.index) {
        fputs("onnx_run: --data DIR and --index FILE are needed\n", stderr);
        exit(2);
    }
    return set;
}

int main(int argc, char **argv) {
    settings set = parse(argc, argv);
    braid_error err = {0};
    char *index = NULL, *expected = NULL;
    size_t size, count = 0;
    if (file_load(set.index, (void **)&index, &size, &err) != BRAID_OK) return cli_fail(&err);
    test *tests = read_index(&set, index, &count);
    if (!tests) return 4;
    if (set.expected && access(set.expected, R_OK) == 0) {
        if (file_load(set.expected, (void **)&expected, &size, &err) != BRAID_OK) return cli_fail(&err);
        read_expected(expected, tests, count);
    }
    bool complete = run_all(&set, tests, count);
    int code = report(&set, tests, count);
    free(tests);
    free(index);
    free(expected);
    return complete ? code : 1;
}
