/*
 * graph_draw: a plan as SVG. Waves are columns from left to right, wrapped into lines like a text.
 *
 * Up to DETAIL_BOXES dispatches each is a box, as high as its time but high enough for its text; the bar at its foot is
 * as long as its time. The least of a crowded wave share one. Beyond that a column is a bar: the time of each family in
 * one wave, or in several when there are too many waves.
 */
#include "graph.h"

#include <stdlib.h>

enum { DETAIL_BOXES = 700, DETAIL_WAVES = 240, TIPS = 24 };
static const double margin = 24, widest = 1872, narrowest = 900; /* px */

typedef struct canvas {
    const graph_plan *p;
    FILE *out;
    double page, y;      /* width inside the margins; where the next thing goes */
    double sum, largest; /* us: of all boxes, of one */
    size_t waves;
    bool detail;
} canvas;

static const char *const fills[] = {
#define GRAPH_FILL(name, text, fill) fill,
    GRAPH_FAMILY_MAP(GRAPH_FILL)};
static const char *const titles[] = {
#define GRAPH_TITLE(name, text, fill) text,
    GRAPH_FAMILY_MAP(GRAPH_TITLE)};

static const svg_style small = {.size = 11}, strong = {.size = 11, .bold = true},
                       faint = {.size = 10, .fill = "#6b6f76"};

/* "12.3 µs" with three digits. */
static void time_text(double us, char *out, size_t capacity) {
    if (us >= 1e6)
        snprintf(out, capacity, "%.2f s", us / 1e6);
    else if (us >= 1e3)
        snprintf(out, capacity, "%.*f ms", us >= 1e5 ? 0 : us >= 1e4 ? 1 : 2, us / 1e3);
    else
        snprintf(out, capacity, "%.*f \xc2\xb5s", us >= 100 ? 0 : us >= 10 ? 1 : 2, us);
}

static bool same_wave(const graph_box *a, const graph_box *b) {
    return a->steps->phase == b->steps->phase && a->steps->wave == b->steps->wave;
}

/* The box after the wave that starts at `first`. */
static size_t wave_end(const graph_plan *p, size_t first) {
    size_t end = first + 1;
    while (end < p->count && same_wave(&p->boxes[first], &p->boxes[end])) end++;
    return end;
}

static size_t phase_end(const graph_plan *p, size_t first) {
    size_t end = first + 1;
    while (end < p->count && p->boxes[end].steps->phase == p->boxes[first].steps->phase) end++;
    return end;
}

static double time_of(const graph_box *boxes, size_t count) {
    double us = 0;
    for (size_t i = 0; i < count; i++) us += boxes[i].us;
    return us;
}

/* ---- above: title, totals, legend */

typedef struct totals {
    size_t boxes[FAMILIES], rows[FAMILIES];
    double us[FAMILIES];
} totals;

static totals sum_families(const graph_box *boxes, size_t count) {
    totals t = {0};
    for (size_t i = 0; i < count; i++) {
        t.boxes[boxes[i].family]++;
        t.rows[boxes[i].family] += boxes[i].rows;
        t.us[boxes[i].family] += boxes[i].us;
    }
    return t;
}

static void draw_title(canvas *c) {
    const graph_plan *p = c->p;
    char line[512], time[32];
    const char *slash = strrchr(p->model, '/');
    size_t phases = p->count ? p->boxes[p->count - 1].steps->phase + 1 : 0,
           hosts = sum_families(p->boxes, p->count).boxes[FAMILY_HOST];
    time_text(c->sum, time, sizeof time);
    svg_text(c->out, margin, c->y += 20, c->page, false, &(svg_style){.size = 20, .bold = true},
             slash ? slash + 1 : p->model);
    int n = hosts < p->count || !hosts ? snprintf(line, sizeof line, "%zu step%s in %zu dispatch%s, %zu wave%s",
                                                  p->steps - hosts, text_s(p->steps - hosts), p->count - hosts,
                                                  p->count - hosts == 1 ? "" : "es", c->waves, text_s(c->waves))
                                       : 0;
    if (phases > 1) n += snprintf(line + n, sizeof line - (size_t)n, ", %zu phases", phases);
    if (hosts) n += snprintf(line + n, sizeof line - (size_t)n, "%s%zu host step%s", n ? ", " : "", hosts,
                               text_s(hosts));
    if (p->lanes > 1) n += snprintf(line + n, sizeof line - (size_t)n, "; %u lanes", p->lanes);
    snprintf(line + n, sizeof line - (size_t)n, "; %s %s", time,
             p->measured ? "in all, each dispatch measured alone" : "by estimate");
    svg_text(c->out, margin, c->y += 24, c->page, false, &(svg_style){.size = 13}, line);
    svg_text(c->out, margin, c->y += 18, c->page, false, &(svg_style){.size = 13, .fill = "#6b6f76"}, p->device);
}

static void draw_legend(canvas *c) {
    totals t = sum_families(c->p->boxes, c->p->count);
    double x = margin;
    c->y += 16;
    for (int f = 0; f < FAMILIES; f++) {
        char text[96];
        if (!t.boxes[f]) continue;
        snprintf(text, sizeof text, "%s: %zu (%.1f %%)", titles[f], t.boxes[f],
                 c->sum > 0 ? 100 * t.us[f] / c->sum : 0);
        double width = 28 + 7.4 * (double)strlen(text) + 14;
        if (x + width > margin + c->page) {
            x = margin;
            c->y += 20;
        }
        svg_rect(c->out, x, c->y, 14, 14, fills[f], NULL);
        svg_text(c->out, x + 20, c->y + 11.5, width, false, &(svg_style){.size = 12}, text);
        x += width;
    }
    c->y += 30;
}

/* Only where there are several. */
static void draw_phase(canvas *c, size_t first, size_t end) {
    const graph_plan *p = c->p;
    bool host = p->boxes[first].family == FAMILY_HOST;
    char text[96], time[32];
    if (first == 0 && end == p->count) return;
    time_text(time_of(p->boxes + first, end - first), time, sizeof time);
    snprintf(text, sizeof text, "phase %u: %s, %s", p->boxes[first].steps->phase, host ? "host" : "device", time);
    svg_text(c->out, margin, c->y + 10, c->page, false, &(svg_style){.size = 13, .bold = true}, text);
    c->y += 24;
}

/* ---- each dispatch a box */

enum { COLUMNS = 10, CROWD = 14 };
static const double column = 178, gap = 10, text_height = 52, tallest = 200;

static double box_height(const canvas *c, const graph_box *b) {
    double height = c->largest > 0 ? tallest * b->us / c->largest : 0;
    return height > text_height ? height : text_height;
}

static int by_time(const void *x, const void *y) {
    const graph_box *a = *(const graph_box *const *)x, *b = *(const graph_box *const *)y;
    return (a->us < b->us) - (a->us > b->us);
}

/* The boxes of a wave that are drawn alone: all, or the longest. */
static size_t pick(const graph_box *boxes, size_t count, const graph_box **out) {
    for (size_t i = 0; i < count; i++) out[i] = &boxes[i];
    if (count <= CROWD) return count;
    qsort(out, count, sizeof *out, by_time);
    return CROWD - 1;
}

static void box_tip(const graph_box *b, const char *time, char *out, size_t capacity) {
    const braid_plan_step *s = b->steps;
    size_t n = (size_t)snprintf(out, capacity, "%.80s, kernel %.40s, %s\nwave %u, dispatch %u, %zu row%s", s->op,
                                s->kernel, time, s->wave, s->dispatch, b->rows, text_s(b->rows));
    if (s->once) n += (size_t)snprintf(out + n, capacity - n, ", once for all lanes");
    for (size_t i = 0; i < b->rows && i < TIPS && n + 100 < capacity; i++) {
        n += (size_t)snprintf(out + n, capacity - n, "\n%.70s", b->steps[i].node);
        if (b->steps[i].copies > 1) n += (size_t)snprintf(out + n, capacity - n, " x%u", b->steps[i].copies);
    }
    if (b->rows > TIPS && n < capacity) snprintf(out + n, capacity - n, "\n... %zu more", b->rows - TIPS);
}

/* "12.3 µs  x64  3 rows" */
static void box_facts(const graph_box *b, char *out, size_t capacity) {
    char time[32];
    time_text(b->us, time, sizeof time);
    int n = snprintf(out, capacity, "%s", time);
    if (b->steps->copies > 1) n += snprintf(out + n, capacity - (size_t)n, "  \xc3\x97%u", b->steps->copies);
    if (b->rows > 1) snprintf(out + n, capacity - (size_t)n, "  %zu rows", b->rows);
}

static void draw_box(const canvas *c, double x, double y, const graph_box *b) {
    char tip[4096], time[32], facts[96];
    double height = box_height(c, b), room = column - 16;
    time_text(b->us, time, sizeof time);
    box_tip(b, time, tip, sizeof tip);
    box_facts(b, facts, sizeof facts);
    if (b->steps->copies > 1) { /* a pack: sheets behind the box */
        svg_rect(c->out, x + 6, y - 4, column - 6, height, fills[b->family], NULL);
        svg_rect(c->out, x + 3, y - 2, column - 6, height, fills[b->family], NULL);
    }
    svg_rect(c->out, x, y, column - (b->steps->copies > 1 ? 6 : 0), height, fills[b->family], tip);
    if (c->largest > 0) svg_bar(c->out, x + 0.5, y + height - 4, (column - 7) * b->us / c->largest, 3.5);
    svg_text(c->out, x + 7, y + 15, room, false, &strong, b->steps->op);
    svg_text(c->out, x + 7, y + 28, room, true, &small, *b->steps->node ? b->steps->node : "-");
    svg_text(c->out, x + 7, y + 41, room, false, &small, facts);
}

/* What is left of a crowded wave. */
static void draw_rest(const canvas *c, double x, double y, const graph_box *const *rest, size_t count) {
    char text[96], time[32];
    double us = 0;
    for (size_t i = 0; i < count; i++) us += rest[i]->us;
    time_text(us, time, sizeof time);
    svg_rect(c->out, x, y, column, text_height, "#eceef1", NULL);
    snprintf(text, sizeof text, "%zu more dispatches", count);
    svg_text(c->out, x + 7, y + 20, column - 16, false, &strong, text);
    snprintf(text, sizeof text, "%s together", time);
    svg_text(c->out, x + 7, y + 35, column - 16, false, &small, text);
}

/* One wave; returns its lower end. */
static double draw_wave(const canvas *c, double x, size_t first, size_t end, const graph_box **room) {
    const graph_box *boxes = c->p->boxes + first;
    size_t count = end - first, alone = pick(boxes, count, room);
    char text[64], time[32];
    double y = c->y;
    bool host = boxes->family == FAMILY_HOST;
    time_text(time_of(boxes, count), time, sizeof time);
    snprintf(text, sizeof text, host ? "host step %u" : "wave %u", boxes->steps->wave);
    svg_text(c->out, x, y + 9, column, false, &strong, text);
    svg_text(c->out, x + column, y + 9, column, false, &(svg_style){.size = 10, .fill = "#6b6f76", .anchor = "end"},
             time);
    svg_line(c->out, x, y + 14, x + column, y + 14);
    y += 24;
    for (size_t i = 0; i < alone; i++) {
        draw_box(c, x, y, room[i]);
        y += box_height(c, room[i]) + 8;
    }
    if (alone == count) return y;
    draw_rest(c, x, y, room + alone, count - alone);
    return y + text_height + 8;
}

static void draw_boxes(canvas *c, size_t first, size_t end, const graph_box **room) {
    while (first < end) {
        double low = c->y;
        for (int i = 0; i < COLUMNS && first < end; i++) {
            size_t next = wave_end(c->p, first);
            double y = draw_wave(c, margin + i * (column + gap), first, next, room);
            if (y > low) low = y;
            first = next;
        }
        c->y = low + 16;
    }
}

/* ---- each wave, or several, a bar */

enum { BARS = 144, LINES = 10 };
static const double bar = 13, bar_height = 150, step_height = 24;

typedef struct column_sum {
    size_t first, end; /* boxes */
    size_t rows;
    double us;
    unsigned waves;
} column_sum;

static size_t sum_columns(const graph_plan *p, size_t first, size_t end, size_t waves, column_sum *out) {
    size_t n = 0;
    while (first < end) {
        column_sum s = {.first = first};
        for (size_t w = 0; w < waves && first < end; w++, s.waves++) first = wave_end(p, first);
        s.end = first;
        for (size_t i = s.first; i < s.end; i++) s.rows += p->boxes[i].rows;
        s.us = time_of(p->boxes + s.first, s.end - s.first);
        out[n++] = s;
    }
    return n;
}

static void column_tip(const graph_plan *p, const column_sum *s, const totals *t, char *out, size_t capacity) {
    char time[32];
    time_text(s->us, time, sizeof time);
    size_t n = (size_t)snprintf(out, capacity, "wave %u", p->boxes[s->first].steps->wave);
    if (s->waves > 1) n += (size_t)snprintf(out + n, capacity - n, " to %u", p->boxes[s->end - 1].steps->wave);
    n += (size_t)snprintf(out + n, capacity - n, ": %zu steps in %zu dispatches, %s", s->rows, s->end - s->first, time);
    for (int f = 0; f < FAMILIES && n < capacity; f++) {
        if (!t->boxes[f]) continue;
        time_text(t->us[f], time, sizeof time);
        n += (size_t)snprintf(out + n, capacity - n, "\n%s: %zu dispatches, %zu steps, %s", titles[f], t->boxes[f],
                              t->rows[f], time);
    }
}

/* Times upward, and below the axis the number of steps. */
static void draw_column(const canvas *c, double x, double axis, const column_sum *s, double most, size_t most_rows) {
    totals t = sum_families(c->p->boxes + s->first, s->end - s->first);
    char tip[1024];
    double y = axis;
    column_tip(c->p, s, &t, tip, sizeof tip);
    for (int f = 0; f < FAMILIES; f++) {
        double height = most > 0 ? bar_height * t.us[f] / most : 0;
        if (!t.boxes[f]) continue;
        if (height < 0.4) height = 0.4;
        y -= height;
        svg_rect(c->out, x, y, bar - 2, height, fills[f], tip);
    }
    svg_rect(c->out, x, axis + 3, bar - 2, step_height * (double)s->rows / (double)most_rows, "#9aa0a8", tip);
}

static void draw_axis(const canvas *c, double axis, double most, size_t most_rows, double width) {
    char text[64], time[32];
    time_text(most, time, sizeof time);
    snprintf(text, sizeof text, "%s", time);
    svg_line(c->out, margin, axis - bar_height, margin + width, axis - bar_height);
    svg_line(c->out, margin, axis - bar_height / 2, margin + width, axis - bar_height / 2);
    svg_line(c->out, margin, axis + 1.5, margin + width, axis + 1.5);
    svg_text(c->out, margin, axis - bar_height - 4, 200, false, &faint, text);
    snprintf(text, sizeof text, "%zu steps", most_rows);
    svg_text(c->out, margin + width, axis - bar_height - 4, 200, false,
             &(svg_style){.size = 10, .fill = "#6b6f76", .anchor = "end"}, text);
}

static void draw_bars(canvas *c, size_t first, size_t end, column_sum *columns) {
    size_t waves = 0, most_rows = 1;
    double most = 0;
    for (size_t i = first; i < end; i = wave_end(c->p, i)) waves++;
    size_t count = sum_columns(c->p, first, end, (waves + BARS * LINES - 1) / (BARS * LINES), columns);
    for (size_t i = 0; i < count; i++) {
        if (columns[i].us > most) most = columns[i].us;
        if (columns[i].rows > most_rows) most_rows = columns[i].rows;
    }
    svg_text(c->out, margin, c->y + 9, c->page, false, &faint,
             columns[0].waves > 1 ? "a bar: several waves; up: time by family, to the common scale; down: steps"
                                  : "a bar: one wave; up: time by family, to the common scale; down: steps");
    c->y += 30;
    for (size_t line = 0; line < count; line += BARS) {
        size_t here = count - line < BARS ? count - line : BARS;
        double axis = c->y + bar_height;
        draw_axis(c, axis, most, most_rows, bar * (double)here);
        for (size_t i = 0; i < here; i++) {
            const column_sum *s = &columns[line + i];
            double x = margin + bar * (double)i;
            draw_column(c, x, axis, s, most, most_rows);
            if (i % 12 || here - i < 4) continue;
            char text[32];
            snprintf(text, sizeof text, "%u", c->p->boxes[s->first].steps->wave);
            svg_text(c->out, x, axis + step_height + 16, 90, false, &faint, text);
        }
        c->y = axis + step_height + 44;
    }
}

/* ---- below the bars: the dispatches that take longest */

enum { LONGEST = 20 };

static void draw_longest(canvas *c, const graph_box **room) {
    const graph_plan *p = c->p;
    char text[256], time[32];
    for (size_t i = 0; i < p->count; i++) room[i] = &p->boxes[i];
    qsort(room, p->count, sizeof *room, by_time);
    svg_text(c->out, margin, c->y + 10, c->page, false, &(svg_style){.size = 13, .bold = true},
             "the longest dispatches");
    c->y += 30;
    for (size_t i = 0; i < p->count && i < LONGEST; i++, c->y += 17) {
        const graph_box *b = room[i];
        const braid_plan_step *s = b->steps;
        time_text(b->us, time, sizeof time);
        svg_rect(c->out, margin, c->y - 9, 11, 11, fills[b->family], NULL);
        svg_text(c->out, margin + 90, c->y, 80, false, &(svg_style){.size = 11, .anchor = "end"}, time);
        int n = snprintf(text, sizeof text, "wave %-5u %-22.22s %-22.22s", s->wave, s->op, s->kernel);
        if (s->copies > 1) n += snprintf(text + n, sizeof text - (size_t)n, " \xc3\x97%u", s->copies);
        if (b->rows > 1) n += snprintf(text + n, sizeof text - (size_t)n, " %zu rows", b->rows);
        snprintf(text + n, sizeof text - (size_t)n, " %.100s", s->node);
        svg_text(c->out, margin + 106, c->y, c->page - 106, false, &small, text);
    }
}

/* ---- the whole */

static bool draw_phases(canvas *c) {
    const graph_plan *p = c->p;
    const graph_box **room = calloc(p->count + 1, sizeof *room);
    column_sum *columns = calloc(p->count + 1, sizeof *columns);
    bool enough = room && columns;
    for (size_t first = 0, end; enough && first < p->count; first = end) {
        end = phase_end(p, first);
        draw_phase(c, first, end);
        if (c->detail)
            draw_boxes(c, first, end, room);
        else
            draw_bars(c, first, end, columns);
    }
    if (enough && !c->detail) draw_longest(c, room);
    free((void *)room);
    free(columns);
    return enough;
}

/* Wide enough for the longest line of waves. */
static void measure_page(canvas *c) {
    const graph_plan *p = c->p;
    size_t longest = 0, length = 0;
    for (size_t i = 0; i < p->count; i = wave_end(p, i)) {
        bool goes_on = i > 0 && p->boxes[i].steps->phase == p->boxes[i - 1].steps->phase;
        length = goes_on ? length + 1 : 1;
        if (length > longest) longest = length;
        c->waves += p->boxes[i].family != FAMILY_HOST;
    }
    c->detail = p->count <= DETAIL_BOXES && c->waves <= DETAIL_WAVES;
    double width = c->detail ? (column + gap) * (double)(longest < COLUMNS ? longest : COLUMNS) - gap
                             : bar * (double)(longest < BARS ? longest : BARS);
    c->page = width < narrowest ? narrowest : width > widest ? widest : width;
}

/* The height is known at the end, so everything below the first line is drawn into a buffer. */
bool graph_draw(const graph_plan *p, FILE *out) {
    bool enough = true;
    char *text = NULL;
    size_t length = 0;
    canvas c = {.p = p, .out = open_memstream(&text, &length), .y = margin, .sum = time_of(p->boxes, p->count)};
    if (!c.out) return false;
    for (size_t i = 0; i < p->count; i++)
        if (p->boxes[i].us > c.largest) c.largest = p->boxes[i].us;
    measure_page(&c);
    draw_title(&c);
    draw_legend(&c);
    if (p->count)
        enough = draw_phases(&c);
    else
        svg_text(c.out, margin, c.y += 20, c.page, false, &small,
                 "nothing to do: every output is an input or a constant");
    enough = fclose(c.out) == 0 && enough;
    if (enough) {
        svg_begin(out, c.page + 2 * margin, c.y + margin);
        fwrite(text, 1, length, out);
        svg_end(out);
    }
    free(text);
    return enough;
}
