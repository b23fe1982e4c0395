/*
 * status.c: the caller's braid_error, filled once and given context on the way up; names of statuses; log lines.
 * A message is always one line: control characters, which names in a hostile file may hold, become '?'.
 */
#include "base/base.h"
#include <stdarg.h>
#include <stdio.h>

braid_status error_set(braid_error *err, braid_status status, const char *format, ...) {
    if (!err) return status;
    char line[sizeof err->message]; /* an argument may point into err->message */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_one_line(line);
    err->status = status;
    memcpy(err->message, line, sizeof line);
    return status;
}

braid_status error_within(braid_error *err, braid_status status, const char *format, ...) {
    if (!err) return status;
    char line[sizeof err->message];
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    size_t length = written < 0 ? 0 : (size_t)written;
    char *end = line + (length < sizeof line ? length : sizeof line - 1), *last = line + sizeof line - 1;
    for (const char *s = ": "; *s && end < last;) *end++ = *s++;
    for (const char *s = err->message; *s && end < last;) *end++ = *s++;
    *end = 0;
    text_one_line(line);
    err->status = status;
    memcpy(err->message, line, sizeof line);
    return status;
}

braid_status error_memory(braid_error *err) {
    return error_set(err, BRAID_HOST_MEMORY, "out of host memory");
}

void error_clear(braid_error *err) {
    if (err) *err = (braid_error){0};
}

static const struct {
    const char *name, *text;
} statuses[] = {
#define STATUS_ROW(name, text) {#name, text},
    BRAID_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

const char *braid_status_text(braid_status s) {
    return (size_t)s < COUNT_OF(statuses) ? statuses[s].text : "unknown status";
}

const char *braid_status_name(braid_status s) {
    return (size_t)s < COUNT_OF(statuses) ? statuses[s].name : "UNKNOWN";
}

const char *braid_version(void) {
    return BRAID_VERSION;
}

void log_line(const logger *log, braid_log_level level, const char *format, ...) {
    if (!log || !log->fn) return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_one_line(line);
    log->fn(log->user, level, line);
}
