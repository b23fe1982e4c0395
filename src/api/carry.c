/*
 * carry.c: lanes of bytes from places in host memory to others, by several threads when they are many: one thread moves
 * some 10 GB/s, which for 64 images takes as long as the network itself.
 */
#include "api/session.h"

enum { PIECE = 1 << 20, THREADS = 8, FEW = 8 /* pieces that one thread moves sooner than another starts */ };

typedef struct convoy {
    const carriage *list;
    size_t n;
} convoy;

static size_t pieces(const carriage *c) {
    return c->bytes / PIECE + (c->bytes % PIECE != 0);
}

/* The last one that begins at piece i or before: those without a byte begin where the next does. */
static const carriage *carriage_of(const convoy *all, size_t i) {
    size_t low = 0, high = all->n - 1;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (all->list[middle].first <= i) low = middle;
        else high = middle - 1;
    }
    return &all->list[low];
}

static void move_piece(void *user, size_t i) {
    const carriage *c = carriage_of(user, i);
    size_t own = i - c->first, lane = own / pieces(c), at = own % pieces(c) * PIECE;
    size_t n = c->bytes - at < PIECE ? c->bytes - at : PIECE;
    memcpy(room_lane(&c->to, lane) + at, place_lane(c->from, (uint32_t)lane) + at, n);
}

static void move_all(const carriage *c) {
    for (uint32_t lane = 0; c->bytes && lane < c->lanes; lane++)
        memcpy(room_lane(&c->to, lane), place_lane(c->from, lane), c->bytes);
}

void carry(carriage *list, size_t n) {
    size_t count = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        list[i].first = count;
        count += pieces(&list[i]) * list[i].lanes;
        bytes += list[i].bytes * list[i].lanes;
    }
    if (bytes >= (size_t)FEW * PIECE) parallel_for(count, THREADS, move_piece, &(convoy){list, n});
    else for (size_t i = 0; i < n; i++) move_all(&list[i]);
}
