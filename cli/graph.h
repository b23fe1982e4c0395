/*
 * graph: what the files of `braid graph` share.
 *
 *     graph.c           the command: steps and their times become boxes
 *     graph_draw.c      boxes become a picture: each alone, or summed by wave when there are many
 *     svg.c             rectangles and texts
 */
#ifndef GRAPH_H
#define GRAPH_H

#include "cli.h"

/* X(NAME, text, fill) */
#define GRAPH_FAMILY_MAP(X)                      \
    X(CONVOLUTION, "convolution", "#8ecae6")     \
    X(PRODUCT, "product", "#a5b4fc")             \
    X(MAP, "elementwise", "#b7e4a7")             \
    X(WINDOW, "pooling, resizing", "#ffe08a")    \
    X(ROW, "reduction, norm, sort", "#f7b6a0")   \
    X(MOVE, "movement, indexing", "#d9d4e7")     \
    X(HOST, "host step", "#f08080")

typedef enum graph_family {
#define GRAPH_FAMILY_ENUM(name, text, fill) FAMILY_##name,
    GRAPH_FAMILY_MAP(GRAPH_FAMILY_ENUM)
#undef GRAPH_FAMILY_ENUM
    FAMILIES
} graph_family;

/* A dispatch, or a host step. */
typedef struct graph_box {
    const braid_plan_step *steps; /* its rows */
    size_t rows;
    graph_family family;
    double us; /* measured or estimated */
} graph_box;

typedef struct graph_plan {
    const char *model, *device;
    uint32_t lanes;
    graph_box *boxes; /* by phase, wave and dispatch */
    size_t count, steps;
    bool measured;
} graph_plan;

/* ---- graph_draw.c */
bool graph_draw(const graph_plan *, FILE *); /* false: out of memory */

/* ---- svg.c: every text may hold any bytes; what XML or UTF-8 does not allow becomes '?'. */
void svg_begin(FILE *, double width, double height);
void svg_end(FILE *);
typedef struct svg_style {
    double size;        /* of the letters, px */
    const char *anchor; /* start, middle, end; NULL: start */
    const char *fill;   /* NULL: nearly black */
    bool bold;
} svg_style;
/* At most `room` px wide: what is too long loses its beginning (tail) or its end. The font has a fixed pitch. */
void svg_text(FILE *, double x, double y, double room, bool tail, const svg_style *, const char *text);
/* A rectangle with a tooltip (NULL: none). */
void svg_rect(FILE *, double x, double y, double width, double height, const char *fill, const char *tooltip);
/* A shade over what is there. */
void svg_bar(FILE *, double x, double y, double width, double height);
void svg_line(FILE *, double x1, double y1, double x2, double y2);

#endif
