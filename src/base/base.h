/*
 * base: what every folder may use. Errors, checked size arithmetic, arenas, element types, files, threads.
 *
 * Status flow: a failing function calls error_set once, callers on the way up add their place with error_within:
 *     "yolo.onnx: node 'conv1' (Conv-11): input 1: rank 3, expected 4"
 */
#ifndef BRAID_BASE_H
#define BRAID_BASE_H

#include <braid/braid.h>
#include <string.h>

/* Propagates a failure. For functions that return braid_status. */
#define TRY(expression)                                   \
    do {                                                  \
        braid_status try_status_ = (expression);          \
        if (try_status_ != BRAID_OK) return try_status_;  \
    } while (0)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- errors (status.c). err may be NULL. Both return the status, so `return error_set(...)` reads well. */
braid_status error_set(braid_error *err, braid_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "prefix: " before the message; keeps the status. */
braid_status error_within(braid_error *err, braid_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* HOST_MEMORY with a fixed message. */
braid_status error_memory(braid_error *err);
void error_clear(braid_error *err);

/* ---- checked sizes. False on overflow; *out is then untouched. */
#define CHECKED(name, type, builtin)                         \
    static inline bool name(type a, type b, type *out) {     \
        type result;                                         \
        if (builtin(a, b, &result)) return false;            \
        *out = result;                                       \
        return true;                                         \
    }
CHECKED(size_add, size_t, __builtin_add_overflow)
CHECKED(size_mul, size_t, __builtin_mul_overflow)
CHECKED(i64_add, int64_t, __builtin_add_overflow)
CHECKED(i64_sub, int64_t, __builtin_sub_overflow)
CHECKED(i64_mul, int64_t, __builtin_mul_overflow)
#undef CHECKED
static inline bool size_align(size_t a, size_t power_of_two, size_t *out) {
    size_t sum;
    if (!size_add(a, power_of_two - 1, &sum)) return false;
    *out = sum & ~(power_of_two - 1);
    return true;
}
/* Product of dims, all >= 0, checked even when a later dim is 0; at most ELEMENTS_MAX. */
#define ELEMENTS_MAX ((int64_t)1 << 40)
bool dims_count(int rank, const int64_t *dims, int64_t *out);

/* ---- allocation (memory.c). Every allocation of the library goes through here, so that a test can fail the n-th. */
void *mem_alloc(size_t bytes);                         /* NULL on failure; 16-byte aligned, not cleared */
void *mem_realloc(void *, size_t bytes);
void mem_free(void *);
/* Test hook: the n-th allocation from now on (1 = next) fails; `forever` fails all later ones too. 0 turns it off. */
void mem_fail_after(uint64_t n, bool forever);
uint64_t mem_count(void); /* allocations so far */

/* Arena: memory that dies together. Allocations are 16-byte aligned and cleared. */
typedef struct arena arena;
arena *arena_new(void);
void arena_free(arena *);
void *arena_alloc(arena *, size_t bytes); /* NULL on failure */
void *arena_array(arena *, size_t count, size_t size); /* checked product */
void *arena_copy(arena *, const void *, size_t bytes);
char *arena_string(arena *, const char *, size_t length); /* adds a NUL; embedded NULs end the string */
char *arena_format(arena *, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t arena_bytes(const arena *); /* bytes taken from the system */

/* Growable text, for reports and printers. After a failed allocation `failed` stays set and writes are ignored. */
typedef struct text {
    char *data; /* NUL-terminated once something was written */
    size_t length, capacity;
    bool failed;
} text;
void text_add(text *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for what holds names from a model: the characters that text_one_line replaces do not reach the text. */
void text_add_shown(text *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Control characters (of UTF-8 those above 0x7f, too) become '?'. */
void text_one_line(char *);
void text_free(text *);

/* ---- element types (type.c) */
int type_bits(braid_type);                         /* 0: unknown or string */
bool type_known(int number);                       /* is this an ONNX element type */
braid_type type_from_name(const char *);           /* BRAID_TYPE_NONE when unknown */
static inline bool type_is_float(braid_type t) {
    return t == BRAID_FLOAT32 || t == BRAID_FLOAT16 || t == BRAID_FLOAT64 || t == BRAID_BFLOAT16;
}
static inline bool type_is_signed(braid_type t) {
    return t == BRAID_INT8 || t == BRAID_INT16 || t == BRAID_INT32 || t == BRAID_INT64;
}
static inline bool type_is_unsigned(braid_type t) {
    return t == BRAID_UINT8 || t == BRAID_UINT16 || t == BRAID_UINT32 || t == BRAID_UINT64;
}
static inline bool type_is_integer(braid_type t) { return type_is_signed(t) || type_is_unsigned(t); }
/* Bytes of `count` elements, sub-byte types packed; false on overflow or for types without a size. */
bool type_span(braid_type, int64_t count, size_t *bytes);

float half_to_float(uint16_t);
uint16_t float_to_half(float); /* round to nearest even */
uint16_t double_to_half(double); /* rounds once */
float bfloat_to_float(uint16_t);
uint16_t float_to_bfloat(float); /* round to nearest even, NaN kept */
uint16_t double_to_bfloat(double);

/* Reads element `i` as a double or int64 (bool as 0/1; uint64 wraps in the int64 form), and writes one:
   floats round to nearest even, integers wrap modulo 2^bits. For every type of at least 8 bits except string,
   complex and float8. Float to integer truncates and saturates; NaN gives 0. */
double element_f64(braid_type, const void *data, int64_t i);
int64_t element_i64(braid_type, const void *data, int64_t i);
void element_set_f64(braid_type, void *data, int64_t i, double v);
void element_set_i64(braid_type, void *data, int64_t i, int64_t v);

/* ---- files (file.c). A file is opened once and read with pread; no mmap anywhere. Reference counted. */
typedef struct file file;
/* Opens a regular file for reading. */
braid_status file_open(const char *path, file **out, braid_error *err);
/* Wraps borrowed bytes as a file. */
braid_status file_from_memory(const void *bytes, size_t size, file **out, braid_error *err);
/* Opens `location` below folder `root` with openat2(RESOLVE_BENEATH | NO_SYMLINKS | NO_MAGICLINKS); refuses absolute
   paths, "..", empty names, backslash and hard links with MODEL (the caller checks for NUL), what is not there or no
   regular file with IO. */
braid_status file_open_beneath(const char *root, const char *location, file **out, braid_error *err);
/* The same by walking folder by folder, for kernels without openat2; file_open_beneath falls back to it. */
braid_status file_open_walk(const char *root, const char *location, file **out, braid_error *err);
file *file_ref(file *);
void file_unref(file *);
uint64_t file_size(const file *);
/* Reads exactly `bytes` at `offset`; a short file is IO. */
braid_status file_read(file *, uint64_t offset, void *out, size_t bytes, braid_error *err);

/* ---- threads (thread.c) */
/* Calls work(user, i) for i in [0, count) from up to `threads` threads (0: one per processor). Blocks. Falls back to
   the calling thread when no thread can be made. */
void parallel_for(size_t count, size_t threads, void (*work)(void *user, size_t i), void *user);
size_t processor_count(void); /* that this thread may run on, at least 1 */
uint64_t clock_ns(void);      /* monotonic */
uint64_t thread_ns(void);     /* of a processor, spent by this thread */

/* 64-bit FNV-1a style hash of bytes, chained through seed; for caches and CSE, not for security. */
uint64_t hash_bytes(uint64_t seed, const void *, size_t);

/* Log through the owner's callback; nothing when fn is NULL. */
typedef struct logger {
    braid_log_fn *fn;
    void *user;
} logger;
void log_line(const logger *, braid_log_level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
