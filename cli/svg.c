/* svg: the few shapes that a picture of a plan needs. */
#include "cli.h"
#include "graph.h"

/* Width of a letter as part of its height. The generic font may be wider than DejaVu's 0.602. */
static const double pitch = 0.61;

void svg_begin(FILE *out, double width, double height) {
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            width, height, width, height);
}

void svg_end(FILE *out) {
    fputs("</svg>\n", out);
}

/* Writes one character and returns what follows it. */
static const unsigned char *put_character(FILE *out, const unsigned char *s) {
    int n = text_character(s);
    if (n == 0 || s[0] == 0x7f || (s[0] < 0x20 && s[0] != '\n'))
        fputc('?', out);
    else if (*s == '&')
        fputs("&amp;", out);
    else if (*s == '<')
        fputs("&lt;", out);
    else if (*s == '>')
        fputs("&gt;", out);
    else if (*s == '"')
        fputs("&quot;", out);
    else
        fwrite(s, 1, (size_t)n, out);
    return s + (n ? n : 1);
}

static const unsigned char *skip_character(const unsigned char *s) {
    int n = text_character(s);
    return s + (n ? n : 1);
}

static size_t characters(const unsigned char *s) {
    size_t n = 0;
    for (; *s; s = skip_character(s)) n++;
    return n;
}

void svg_text(FILE *out, double x, double y, double room, bool tail, const svg_style *style, const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    size_t most = (size_t)(room / (pitch * style->size)), length = characters(s);
    bool cut = length > most;
    if (most < 2) return;
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.4g\" fill=\"%s\"", x, y, style->size,
            style->fill ? style->fill : "#1c1c1c");
    if (style->anchor) fprintf(out, " text-anchor=\"%s\"", style->anchor);
    fputs(style->bold ? " font-weight=\"bold\" xml:space=\"preserve\">" : " xml:space=\"preserve\">", out);
    if (cut && tail) {
        fputs("\xe2\x80\xa6", out);
        for (size_t i = length - (most - 1); i > 0; i--) s = skip_character(s);
    }
    for (size_t i = cut && !tail ? most - 1 : length; *s && i > 0; i--) s = put_character(out, s);
    fputs(cut && !tail ? "\xe2\x80\xa6</text>\n" : "</text>\n", out);
}

void svg_rect(FILE *out, double x, double y, double width, double height, const char *fill, const char *tooltip) {
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.2f\" fill=\"%s\" stroke=\"#55585e\" "
            "stroke-width=\"0.6\"",
            x, y, width, height, fill);
    if (!tooltip) {
        fputs("/>\n", out);
        return;
    }
    fputs("><title>", out);
    for (const unsigned char *s = (const unsigned char *)tooltip; *s;) s = put_character(out, s);
    fputs("</title></rect>\n", out);
}

void svg_bar(FILE *out, double x, double y, double width, double height) {
    fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill-opacity=\"0.45\"/>\n", x, y, width,
            height);
}

void svg_line(FILE *out, double x1, double y1, double x2, double y2) {
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#b9bcc2\" stroke-width=\"0.8\"/>\n",
            x1, y1, x2, y2);
}
