/* text: names from models, which may hold any bytes, for terminals and JSON. */
#include "cli.h"

#include <stdlib.h>

int text_character(const unsigned char *s) {
    static const unsigned char least[] = {0, 0, 0xc2, 0xe0, 0xf0};
    int n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (n > 1 && (s[0] < least[n] || s[0] > 0xf4)) return 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    bool surrogate = s[0] == 0xed && s[1] >= 0xa0, noncharacter = s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool beyond = s[0] == 0xf4 && s[1] > 0x8f;
    return surrogate || noncharacter || overlong || beyond ? 0 : n;
}

char *text_line(char *to, const char *from) {
    const unsigned char *s = (const unsigned char *)from;
    while (*s) {
        int n = text_character(s);
        bool control = n == 2 ? s[0] == 0xc2 && s[1] < 0xa0 : *s < 0x20 || *s == 0x7f; /* U+0080 to U+009F, too */
        bool shown = n > 0 && !control;
        for (int i = 0; i < (n ? n : 1); i++) *to++ = shown ? (char)*s : '?', s++;
    }
    *to++ = 0;
    return to;
}

char *text_clean(const char *from) {
    char *to = malloc(strlen(from) + 1);
    if (to) text_line(to, from);
    return to;
}

const char *text_s(size_t n) { return n == 1 ? "" : "s"; }
