/*
 * settings.h: the command line of the programs that run whole models: how inputs are shaped and drawn.
 *
 *     PROGRAM MODEL [--lanes 1,2,7,64] [--seconds N] [--device NAME] [--shape NAME=1,3,32,32] [--dim SYMBOL=N]
 *             [--low X] [--high X] [--ints N]
 */
#ifndef MODELS_SETTINGS_H
#define MODELS_SETTINGS_H

#include <stdlib.h>
#include <string.h>

#include <braid/braid.h>

enum { COUNTS = 16, NAMED = 16, LANES_LIMIT = 256 };

typedef struct settings {
    const char *model, *device;
    uint32_t lanes[COUNTS];
    int n_lanes;
    double seconds, low, high;
    int64_t ints;
    braid_input_shape shapes[NAMED];
    size_t n_shapes;
    braid_dim_value dims[NAMED];
    size_t n_dims;
} settings;

static inline bool read_lanes(settings *s, const char *list) {
    s->n_lanes = 0;
    for (char *end; s->n_lanes < COUNTS; list = end + 1) {
        unsigned long n = strtoul(list, &end, 10);
        if (!n || n > LANES_LIMIT) return false;
        s->lanes[s->n_lanes++] = (uint32_t)n;
        if (*end != ',') return *end == 0;
    }
    return false;
}

/* NAME=... : ends the name and gives what is behind the last '='. */
static inline char *split_name(char *argument) {
    char *at = strrchr(argument, '=');
    if (at) *at++ = 0;
    return at;
}

static inline bool read_shape(settings *s, char *argument) {
    char *list = split_name(argument);
    braid_input_shape *shape = &s->shapes[s->n_shapes++];
    if (!list || s->n_shapes > NAMED) return false;
    *shape = (braid_input_shape){.name = argument};
    for (; shape->rank < BRAID_MAX_RANK; list++) {
        shape->dims[shape->rank++] = strtoll(list, &list, 10);
        if (*list != ',') return *list == 0;
    }
    return false;
}

static inline bool read_dim(settings *s, char *argument) {
    char *number = split_name(argument);
    if (!number || s->n_dims == NAMED) return false;
    s->dims[s->n_dims++] = (braid_dim_value){argument, strtoll(number, NULL, 10)};
    return true;
}

static inline bool read_setting(settings *s, const char *name, char *argument) {
    if (strcmp(name, "--lanes") == 0) return read_lanes(s, argument);
    if (strcmp(name, "--shape") == 0) return read_shape(s, argument);
    if (strcmp(name, "--dim") == 0) return read_dim(s, argument);
    if (strcmp(name, "--device") == 0)
        s->device = argument;
    else if (strcmp(name, "--seconds") == 0)
        s->seconds = strtod(argument, NULL);
    else if (strcmp(name, "--low") == 0)
        s->low = strtod(argument, NULL);
    else if (strcmp(name, "--high") == 0)
        s->high = strtod(argument, NULL);
    else if (strcmp(name, "--ints") == 0)
        s->ints = strtoll(argument, NULL, 10);
    else
        return false;
    return true;
}

static inline bool read_settings(settings *s, int argc, char **argv) {
    *s = (settings){.lanes = {1, 2, 7, 64}, .n_lanes = 4, .seconds = 120, .low = 0, .high = 1, .ints = 1};
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-')
            s->model = argv[i];
        else if (i + 1 == argc || !read_setting(s, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    return s->model != NULL;
}

/* What a dim of an input is to be; 1 where nothing says. */
static inline int64_t dim_of(const settings *s, const braid_port *p, int k) {
    for (size_t i = 0; i < s->n_shapes; i++)
        if (strcmp(s->shapes[i].name, p->name) == 0) return s->shapes[i].dims[k];
    for (size_t i = 0; i < s->n_dims; i++)
        if (p->symbols[k] && strcmp(s->dims[i].symbol, p->symbols[k]) == 0) return s->dims[i].value;
    return p->dims[k] < 0 ? 1 : p->dims[k];
}

#endif
