/*
 * npy: numpy's .npy files and members of .npz archives.
 *
 *     "\x93NUMPY" major minor | header length | {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } | data
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

static const struct {
    char kind, bytes[3];
    braid_type type;
} descrs[] = {{'f', "4", BRAID_FLOAT32},   {'f', "8", BRAID_FLOAT64},    {'f', "2", BRAID_FLOAT16},
              {'i', "1", BRAID_INT8},      {'i', "2", BRAID_INT16},      {'i', "4", BRAID_INT32},
              {'i', "8", BRAID_INT64},     {'u', "1", BRAID_UINT8},      {'u', "2", BRAID_UINT16},
              {'u', "4", BRAID_UINT32},    {'u', "8", BRAID_UINT64},     {'b', "1", BRAID_BOOL},
              {'c', "8", BRAID_COMPLEX64}, {'c', "16", BRAID_COMPLEX128}};
enum { DESCRS = sizeof descrs / sizeof descrs[0] };

typedef struct header {
    braid_type type;
    size_t text_width; /* of '<U7' (characters) or '|S7' (bytes) */
    bool wide, fortran;
    int rank;
    int64_t dims[BRAID_MAX_RANK];
} header;

braid_status file_load(const char *path, void **out, size_t *size, braid_error *err) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return cli_error(err, BRAID_IO, "%s: %s", path, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return cli_error(err, BRAID_IO, "%s: not a regular file", path);
    }
    size_t have = 0, total = (size_t)st.st_size;
    char *data = malloc(total + 1);
    while (data && have < total) {
        ssize_t n = read(fd, data + have, total - have);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        have += (size_t)n;
    }
    close(fd);
    if (!data) return cli_error(err, BRAID_HOST_MEMORY, "%s: no memory for %zu bytes", path, total);
    if (have < total) {
        free(data);
        return cli_error(err, BRAID_IO, "%s: cannot read it whole", path);
    }
    data[total] = 0;
    *out = data;
    *size = total;
    return BRAID_OK;
}

/* What follows 'key': in the header; NULL when it is missing. */
static const char *header_value(const char *text, const char *key) {
    const char *at = strstr(text, key);
    if (!at) return NULL;
    at += strlen(key);
    while (*at == ' ') at++;
    if (*at++ != ':') return NULL;
    while (*at == ' ') at++;
    return at;
}

static bool parse_descr(const char *at, header *h) {
    char quote = *at++, order = *at++, kind, bytes[12];
    size_t n = strspn(at + 1, "0123456789");
    if ((quote != '\'' && quote != '"') || !strchr("<|=", order) || n == 0 || n >= sizeof bytes) return false;
    kind = *at;
    memcpy(bytes, at + 1, n);
    bytes[n] = 0;
    if (at[n + 1] != quote) return false;
    if (kind == 'U' || kind == 'S') {
        h->type = BRAID_STRING;
        h->wide = kind == 'U';
        h->text_width = strtoul(bytes, NULL, 10);
        return h->text_width > 0 && h->text_width < 1u << 24;
    }
    for (int i = 0; i < DESCRS; i++)
        if (descrs[i].kind == kind && !strcmp(descrs[i].bytes, bytes)) h->type = descrs[i].type;
    return h->type != BRAID_TYPE_NONE;
}

static bool parse_shape(const char *at, header *h) {
    if (*at++ != '(') return false;
    for (;;) {
        char *end;
        while (*at == ' ' || *at == ',') at++;
        if (*at == ')') return true;
        if (*at < '0' || *at > '9' || h->rank == BRAID_MAX_RANK) return false;
        errno = 0;
        h->dims[h->rank++] = strtoll(at, &end, 10);
        if (errno) return false;
        at = end;
    }
}

static braid_status parse_header(const char *text, header *h, braid_error *err) {
    const char *descr = header_value(text, "'descr'"), *order = header_value(text, "'fortran_order'"),
               *shape = header_value(text, "'shape'");
    if (!descr || !order || !shape) return cli_error(err, BRAID_FORMAT, "npy header without descr, order or shape");
    if (!parse_descr(descr, h))
        return cli_error(err, BRAID_UNSUPPORTED, "npy element type %.*s", (int)strcspn(descr, ",}"), descr);
    if (strncmp(order, "True", 4) && strncmp(order, "False", 5))
        return cli_error(err, BRAID_FORMAT, "npy header: fortran_order");
    h->fortran = order[0] == 'T';
    if (!parse_shape(shape, h)) return cli_error(err, BRAID_FORMAT, "npy header: shape, or rank above 8");
    return BRAID_OK;
}

/* UTF-8 of a code point; returns its length. */
static size_t put_utf8(char *out, uint32_t c) {
    if (c < 0x80) return out[0] = (char)c, 1;
    if (c < 0x800) return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 63)), out[2] = (char)(0x80 | (c & 63)),
               3;
    return out[0] = (char)(0xf0 | (c >> 18 & 7)), out[1] = (char)(0x80 | (c >> 12 & 63)),
           out[2] = (char)(0x80 | (c >> 6 & 63)), out[3] = (char)(0x80 | (c & 63)), 4;
}

static size_t copy_text(char *out, const char *in, const header *h) {
    size_t n = 0;
    for (size_t k = 0; k < h->text_width; k++) {
        uint32_t c = (uint8_t)in[k];
        if (h->wide) memcpy(&c, in + 4 * k, sizeof c);
        if (c == 0) break;
        if (h->wide)
            n += put_utf8(out + n, c);
        else
            out[n++] = (char)c;
    }
    out[n] = 0;
    return n + 1;
}

static braid_status read_strings(const char *data, int64_t count, const header *h, braid_tensor *t, braid_error *err) {
    size_t width = h->text_width * (h->wide ? 4 : 1);
    char **block = realloc(t->data, t->bytes + (size_t)count * (width + 1) + 1);
    if (!block) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    t->data = block;
    char *at = (char *)block + t->bytes;
    for (int64_t i = 0; i < count; i++) {
        block[i] = at;
        at += copy_text(at, data + (size_t)i * width, h);
    }
    return BRAID_OK;
}

/* Column order to row order. */
static void from_fortran(char *out, const char *in, size_t element, const braid_tensor *t, int64_t count) {
    int64_t index[BRAID_MAX_RANK] = {0};
    for (int64_t i = 0; i < count; i++) {
        int64_t from = 0;
        for (int d = t->rank - 1; d >= 0; d--) from = from * t->dims[d] + index[d];
        memcpy(out + (size_t)i * element, in + (size_t)from * element, element);
        for (int d = t->rank - 1; d >= 0 && ++index[d] == t->dims[d]; d--) index[d] = 0;
    }
}

static braid_status read_data(const char *data, size_t size, const header *h, braid_tensor *out, braid_error *err) {
    int64_t count;
    size_t element = h->type == BRAID_STRING ? h->text_width * (h->wide ? 4 : 1) : (size_t)value_bits(h->type) / 8;
    size_t wanted;
    if (!tensor_count(h->rank, h->dims, &count) || __builtin_mul_overflow((size_t)count, element, &wanted))
        return cli_error(err, BRAID_LIMIT, "npy shape too large");
    if (wanted != size) return cli_error(err, BRAID_FORMAT, "%zu bytes of data, the shape needs %zu", size, wanted);
    TRY(tensor_alloc(out, h->type, h->rank, h->dims, err));
    if (h->type == BRAID_STRING && h->fortran && h->rank > 1)
        return cli_error(err, BRAID_UNSUPPORTED, "npy strings in Fortran order");
    if (h->type == BRAID_STRING) return read_strings(data, count, h, out, err);
    if (h->fortran)
        from_fortran(out->data, data, element, out, count);
    else if (wanted)
        memcpy(out->data, data, wanted);
    return BRAID_OK;
}

braid_status npy_parse(const void *bytes, size_t size, braid_tensor *out, braid_error *err) {
    const uint8_t *b = bytes;
    if (size < 12 || memcmp(b, "\x93NUMPY", 6) || b[6] < 1 || b[6] > 3)
        return cli_error(err, BRAID_FORMAT, "not a npy file");
    size_t prefix = b[6] == 1 ? 10 : 12, length = (size_t)b[8] | (size_t)b[9] << 8;
    if (b[6] > 1) length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    char text[4096];
    if (length > size - prefix || length >= sizeof text) return cli_error(err, BRAID_FORMAT, "npy header too long");
    memcpy(text, b + prefix, length);
    text[length] = 0;
    header h = {0};
    TRY(parse_header(text, &h, err));
    out->data = NULL;
    braid_status status = read_data((const char *)b + prefix + length, size - prefix - length, &h, out, err);
    if (status != BRAID_OK) tensor_drop(out);
    return status;
}

braid_status npy_load(const char *path, braid_tensor *out, braid_error *err) {
    void *bytes;
    size_t size;
    TRY(file_load(path, &bytes, &size, err));
    braid_status status = npy_parse(bytes, size, out, err);
    free(bytes);
    return status == BRAID_OK ? status : cli_within(err, status, "%s", path);
}

/* A member's content; memory grows with what is really there, since the archive's own word for the size may be a lie.
 */
static braid_status unpack(zip_file_t *f, uint64_t promised, char **out, braid_error *err) {
    size_t have = 0, capacity = promised < 1 << 20 ? (size_t)promised + 1 : 1 << 20;
    char *data = malloc(capacity);
    for (zip_int64_t n = 1; data && n > 0;) {
        if (have == capacity) {
            char *grown = capacity > SIZE_MAX / 2 ? NULL : realloc(data, capacity * 2);
            if (!grown) break;
            data = grown;
            capacity *= 2;
        }
        n = zip_fread(f, data + have, capacity - have);
        if (n > 0) have += (size_t)n;
        if (n == 0 && have == promised) {
            *out = data;
            return BRAID_OK;
        }
    }
    bool full = !data || have == capacity;
    free(data);
    return full ? cli_error(err, BRAID_HOST_MEMORY, "no memory for %zu bytes", capacity)
                : cli_error(err, BRAID_IO, "cannot read it whole");
}

static braid_status read_member(zip_t *archive, const char *member, braid_tensor *out, braid_error *err) {
    zip_stat_t st;
    if (zip_stat(archive, member, 0, &st) != 0 || !(st.valid & ZIP_STAT_SIZE))
        return cli_error(err, BRAID_IO, "no member '%s'", member);
    zip_file_t *f = zip_fopen(archive, member, 0);
    if (!f) return cli_error(err, BRAID_IO, "cannot read member '%s'", member);
    char *bytes = NULL;
    braid_status status = unpack(f, st.size, &bytes, err);
    zip_fclose(f);
    if (status != BRAID_OK) return cli_within(err, status, "member '%s'", member);
    status = npy_parse(bytes, (size_t)st.size, out, err);
    free(bytes);
    return status;
}

braid_status npz_load(const char *path, const char *key, braid_tensor *out, braid_error *err) {
    int code;
    zip_t *archive = zip_open(path, ZIP_RDONLY, &code);
    if (!archive) return cli_error(err, BRAID_IO, "%s: not a readable zip archive", path);
    char member[512];
    int n = snprintf(member, sizeof member, "%s.npy", key);
    braid_status status = n > 0 && (size_t)n < sizeof member ? read_member(archive, member, out, err)
                                                             : cli_error(err, BRAID_ARGUMENT, "key too long");
    zip_discard(archive);
    return status == BRAID_OK ? status : cli_within(err, status, "%s", path);
}

/* ---- writing */

static size_t longest_string(const braid_tensor *t, int64_t count) {
    size_t longest = 1;
    for (int64_t i = 0; i < count; i++) {
        const char *s = ((const char *const *)t->data)[i];
        size_t n = 0;
        for (; s && *s; s++) n += ((uint8_t)*s & 0xc0) != 0x80;
        if (n > longest) longest = n;
    }
    return longest;
}

static void write_strings(const braid_tensor *t, int64_t count, size_t width, FILE *f) {
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *s = ((const uint8_t *const *)t->data)[i];
        for (size_t k = 0; k < width; k++) {
            uint32_t c = 0;
            if (s && *s) {
                c = *s < 0x80 ? *s : *s < 0xe0 ? *s & 31u : *s < 0xf0 ? *s & 15u : *s & 7u;
                for (s++; (*s & 0xc0) == 0x80; s++) c = c << 6 | (*s & 63u);
            }
            fwrite(&c, sizeof c, 1, f);
        }
    }
}

/* Elements that numpy has no type for, widened: floats to float32 (exact), small integers to 8 bits. */
static void write_widened(const braid_tensor *t, int64_t count, FILE *f) {
    for (int64_t i = 0; i < count; i++) {
        if (value_is_float(t->type)) {
            float v = (float)value_get(t, i);
            fwrite(&v, sizeof v, 1, f);
        } else {
            fputc((int)(uint8_t)value_get_int(t, i), f);
        }
    }
}

static void write_header(const braid_tensor *t, const char *descr, FILE *f) {
    char text[256], dims[128] = "";
    size_t n = 0;
    for (int i = 0; i < t->rank; i++)
        n += (size_t)snprintf(dims + n, sizeof dims - n, i ? ", %lld" : "%lld", (long long)t->dims[i]);
    int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }", descr, dims,
                          t->rank == 1 ? "," : "");
    int padded = (10 + length + 1 + 63) / 64 * 64 - 10;
    fputs("\x93NUMPY\x01", f);
    fputc(0, f);
    fputc(padded & 255, f);
    fputc(padded >> 8, f);
    fprintf(f, "%s%*s\n", text, padded - length - 1, "");
}

static void write_values(const braid_tensor *t, int64_t count, FILE *f) {
    char descr[24] = "";
    for (int i = 0; i < DESCRS; i++)
        if (descrs[i].type == t->type)
            snprintf(descr, sizeof descr, "%c%c%s", value_bits(t->type) == 8 ? '|' : '<', descrs[i].kind,
                     descrs[i].bytes);
    if (t->type == BRAID_STRING) {
        size_t width = longest_string(t, count);
        snprintf(descr, sizeof descr, "<U%zu", width);
        write_header(t, descr, f);
        write_strings(t, count, width, f);
    } else if (descr[0]) {
        write_header(t, descr, f);
        fwrite(t->data, 1, (size_t)count * (size_t)value_bits(t->type) / 8, f);
    } else {
        bool is_signed = t->type == BRAID_INT4 || t->type == BRAID_INT2;
        write_header(t, value_is_float(t->type) ? "<f4" : is_signed ? "|i1" : "|u1", f);
        write_widened(t, count, f);
    }
}

braid_status npy_save(const char *path, const braid_tensor *t, braid_error *err) {
    int64_t count;
    if (!tensor_count(t->rank, t->dims, &count)) return cli_error(err, BRAID_LIMIT, "%s: shape too large", path);
    FILE *f = fopen(path, "wb");
    if (!f) return cli_error(err, BRAID_IO, "%s: %s", path, strerror(errno));
    write_values(t, count, f);
    bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) return cli_error(err, BRAID_IO, "%s: cannot write it whole", path);
    return BRAID_OK;
}
