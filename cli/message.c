/* message: errors, notes and progress; everything the program says on stderr. */
#include "cli.h"

#include <stdarg.h>
#include <time.h>
#include <unistd.h>

static bool progress_shown;

braid_status cli_error(braid_error *err, braid_status status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (err) {
        err->status = status;
        vsnprintf(err->message, sizeof err->message, format, list);
        text_line(err->message, err->message);
    }
    va_end(list);
    return status;
}

braid_status cli_within(braid_error *err, braid_status status, const char *format, ...) {
    if (!err) return status;
    char prefix[sizeof err->message], whole[2 * sizeof err->message + 2];
    va_list list;
    va_start(list, format);
    vsnprintf(prefix, sizeof prefix, format, list);
    va_end(list);
    snprintf(whole, sizeof whole, "%s: %s", prefix, err->message);
    memcpy(err->message, whole, sizeof err->message - 1);
    err->message[sizeof err->message - 1] = 0;
    text_line(err->message, err->message);
    return status;
}

int cli_fail(const braid_error *err) {
    cli_progress_end();
    const char *text = err->message[0] ? err->message : braid_status_text(err->status);
    fflush(stdout);
    fprintf(stderr, "braid: %s\n", text);
    switch (err->status) {
    case BRAID_ARGUMENT:
        return CLI_USAGE;
    case BRAID_UNSUPPORTED:
        return CLI_UNSUPPORTED;
    default:
        return CLI_FAILURE;
    }
}

void cli_note(const cli_options *o, const char *format, ...) {
    if (o->quiet) return;
    cli_progress_end();
    char line[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    text_line(line, line);
    fprintf(stderr, "braid: note: %s\n", line);
}

bool cli_terminal(void) { return isatty(STDERR_FILENO); }

/* Not on a terminal: a whole line, when this much time has passed since the last one or the first call. */
static bool line_is_due(void) {
    static uint64_t last;
    uint64_t now = cli_clock_ns();
    if (last && now - last < CLI_LONG_NS) return false;
    bool first = last == 0;
    last = now;
    return !first;
}

void cli_progress(const cli_options *o, const char *format, ...) {
    bool terminal = cli_terminal();
    if (o->quiet || (!terminal && !line_is_due())) return;
    va_list list;
    va_start(list, format);
    fputs(terminal ? "\r\033[K" : "braid: ", stderr);
    vfprintf(stderr, format, list);
    if (!terminal) fputc('\n', stderr);
    fflush(stderr);
    va_end(list);
    progress_shown = terminal;
}

void cli_progress_end(void) {
    if (progress_shown) fputs("\r\033[K", stderr);
    progress_shown = false;
}

void cli_log(void *user, braid_log_level level, const char *line) {
    const cli_options *o = user;
    if (o->quiet || (int)level > (int)BRAID_LOG_WARN + o->verbose) return;
    cli_progress_end();
    fprintf(stderr, "braid: %s%s\n", level == BRAID_LOG_WARN ? "warning: " : "", line);
}

uint64_t cli_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
