/*
 * carry.c: lanes of bytes from one place in host memory to another, by several threads when there are many: one thread
 * moves some 10 GB/s, which for 64 images takes as long as the network itself.
 */
#include "api/session.h"

enum { PIECE = 1 << 20, THREADS = 8, FEW = 8 /* pieces that one thread moves sooner than another starts */ };

typedef struct carriage {
    const lane_room *to;
    const place *from;
    size_t bytes, pieces; /* of one lane */
} carriage;

static uint8_t *lane_to(const lane_room *to, size_t lane) {
    return to->each ? to->each[lane] : (uint8_t *)to->data + lane * to->stride;
}

static void move_piece(void *user, size_t i) {
    const carriage *c = user;
    size_t lane = i / c->pieces, at = i % c->pieces * PIECE, n = c->bytes - at < PIECE ? c->bytes - at : PIECE;
    const uint8_t *from = place_lane(c->from, (uint32_t)lane);
    memcpy(lane_to(c->to, lane) + at, from + at, n);
}

void carry_lanes(const lane_room *to, const place *from, uint32_t lanes, size_t bytes) {
    carriage c = {to, from, bytes, bytes / PIECE + (bytes % PIECE != 0)};
    if (!bytes || !lanes) return;
    if (bytes >= (size_t)FEW * PIECE / lanes) parallel_for(c.pieces * lanes, THREADS, move_piece, &c);
    else for (uint32_t lane = 0; lane < lanes; lane++) memcpy(lane_to(to, lane), place_lane(from, lane), bytes);
}
