/*
 * memory.c: the one door to the system's allocator, arenas, growable text.
 *
 *   arena ─► chunk ─► chunk ─► ...      newest first; each chunk is cleared memory, handed out front to back
 *            [header | used ........ | free .....]
 *
 * An allocation larger than a quarter of a chunk gets a chunk of its own behind the newest one, so that the newest
 * one's free end is not lost. Under AddressSanitizer every allocation is followed by 16 poisoned bytes.
 */
#include "base/base.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISON 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ARENA_POISON 1
#endif
#ifdef ARENA_POISON
#include <sanitizer/asan_interface.h>
enum { ARENA_GAP = 16 };
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
enum { ARENA_GAP = 0 };
#endif

_Static_assert(_Alignof(max_align_t) >= 16, "malloc gives 16-byte alignment");

/* The test hook is process-wide, like the allocator it stands for. fail_at 0: off. */
static atomic_uint_fast64_t allocations, fail_at;
static atomic_bool fail_forever;

void mem_fail_after(uint64_t n, bool forever) {
    atomic_store(&fail_forever, forever);
    atomic_store(&fail_at, n ? atomic_load(&allocations) + n : 0);
}

uint64_t mem_count(void) {
    return atomic_load(&allocations);
}

static bool mem_refused(void) {
    uint64_t ordinal = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    return at && (ordinal == at || (ordinal > at && atomic_load(&fail_forever)));
}

void *mem_alloc(size_t bytes) {
    if (mem_refused() || bytes > PTRDIFF_MAX) return NULL;
    return malloc(bytes ? bytes : 1);
}

void *mem_realloc(void *old, size_t bytes) {
    if (mem_refused() || bytes > PTRDIFF_MAX) return NULL;
    return realloc(old, bytes ? bytes : 1);
}

void mem_free(void *p) {
    free(p);
}

static void *mem_alloc_cleared(size_t bytes) {
    if (mem_refused() || bytes > PTRDIFF_MAX) return NULL;
    return calloc(1, bytes ? bytes : 1);
}

/* ------------------------------------------------------------------------------------------------- arenas */

enum { CHUNK_FIRST = 8 << 10, CHUNK_LARGEST = 1 << 20 };

typedef struct chunk {
    struct chunk *next;
    size_t used, size; /* of bytes[] */
    size_t reserved;
    unsigned char bytes[];
} chunk;
_Static_assert(offsetof(chunk, bytes) % 16 == 0, "allocations are 16-byte aligned");

struct arena {
    chunk *chunks;
    size_t next_size, total;
};

arena *arena_new(void) {
    arena *a = mem_alloc_cleared(sizeof *a);
    if (!a) return NULL;
    a->next_size = CHUNK_FIRST;
    a->total = sizeof *a;
    return a;
}

void arena_free(arena *a) {
    if (!a) return;
    for (chunk *c = a->chunks; c;) {
        chunk *next = c->next;
        ASAN_UNPOISON_MEMORY_REGION(c->bytes, c->size);
        mem_free(c);
        c = next;
    }
    mem_free(a);
}

/* Adds a chunk with `size` free bytes: the newest when it is to be filled further, else behind the newest. */
static chunk *arena_grow(arena *a, size_t size, bool newest) {
    size_t bytes;
    if (!size_add(sizeof(chunk), size, &bytes)) return NULL;
    chunk *c = mem_alloc_cleared(bytes);
    if (!c) return NULL;
    c->size = size;
    ASAN_POISON_MEMORY_REGION(c->bytes, c->size);
    chunk **place = newest || !a->chunks ? &a->chunks : &a->chunks->next;
    c->next = *place;
    *place = c;
    a->total += bytes;
    return c;
}

void *arena_alloc(arena *a, size_t bytes) {
    size_t need;
    if (!size_add(bytes, ARENA_GAP, &need) || !size_align(need ? need : 1, 16, &need)) return NULL;
    chunk *c = a->chunks;
    if (!c || c->size - c->used < need) {
        bool small = need <= a->next_size / 4;
        c = arena_grow(a, small ? a->next_size : need, small);
        if (!c) return NULL;
        if (small && a->next_size < CHUNK_LARGEST) a->next_size *= 2;
    }
    void *p = c->bytes + c->used;
    c->used += need;
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
    return p;
}

void *arena_array(arena *a, size_t count, size_t size) {
    size_t bytes;
    return size_mul(count, size, &bytes) ? arena_alloc(a, bytes) : NULL;
}

void *arena_copy(arena *a, const void *from, size_t bytes) {
    void *p = arena_alloc(a, bytes);
    if (p && bytes) memcpy(p, from, bytes);
    return p;
}

char *arena_string(arena *a, const char *s, size_t length) {
    size_t bytes;
    char *p = size_add(length, 1, &bytes) ? arena_alloc(a, bytes) : NULL;
    if (p && length) memcpy(p, s, length);
    return p;
}

char *arena_format(arena *a, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *p = length < 0 ? NULL : arena_alloc(a, (size_t)length + 1);
    if (p) vsnprintf(p, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return p;
}

size_t arena_bytes(const arena *a) {
    return a->total;
}

/* --------------------------------------------------------------------------------------------------- text */

static bool text_reserve(text *t, size_t more) {
    size_t need, doubled;
    if (!size_add(t->length, more, &need) || !size_add(need, 1, &need)) return false;
    if (need <= t->capacity) return true;
    if (size_mul(t->capacity, 2, &doubled) && doubled > need) need = doubled;
    if (need < 256) need = 256;
    char *data = mem_realloc(t->data, need);
    if (!data) return false;
    t->data = data;
    t->capacity = need;
    return true;
}

static void add(text *t, const char *format, va_list arguments) {
    if (t->failed) return;
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    t->failed = length < 0 || !text_reserve(t, (size_t)length);
    if (!t->failed) {
        vsnprintf(t->data + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
}

void text_add(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(t, format, arguments);
    va_end(arguments);
}

void text_add_shown(text *t, const char *format, ...) {
    size_t from = t->length;
    va_list arguments;
    va_start(arguments, format);
    add(t, format, arguments);
    va_end(arguments);
    if (!t->failed) text_one_line(t->data + from);
}

void text_one_line(char *s) {
    for (; *s; s++) {
        unsigned char c = (unsigned char)s[0], next = (unsigned char)s[1];
        bool high = c == 0xc2 && next >= 0x80 && next < 0xa0; /* U+0080 to U+009F */
        if (high) *s++ = '?';
        if (high || c < 0x20 || c == 0x7f) *s = '?';
    }
}

void text_free(text *t) {
    mem_free(t->data);
    *t = (text){0};
}
