/* FSST codes for text: the compiled side of kernels/fsst_encode.py, which describes them and gives,
 * byte for byte, the same results. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fsst.h"

enum {
  LANES = 4,
  PIECES = LANES * 128,
  LANE_BYTES = 2 * SEGMENT * 129 + 64 /* no two lanes begin at the same place of the cache */
};

/* Values are encoded a block of pieces at a time. A piece is a value, or a segment of a long one; an
 * empty value has none. Finding a symbol is a chain of loads, so the pieces of a block are dealt out
 * to lanes, whose chains run side by side, each into room of its own. */
typedef struct {
  const uint8_t *stops[PIECES]; /* where the text of pieces ends */
  const uint8_t *edges[PIECES]; /* where their codes end in the room of their lane */
  int64_t ends[PIECES];         /* and among all codes */
  uint8_t codes[LANES][LANE_BYTES];
} Block;

typedef struct {
  const uint8_t *from;
  uint8_t *to;
  int64_t piece;
} Lane;

/* Take one symbol. A lane that `may_end` stays at the end of its `last` piece, others never get
 * there. */
static inline void advance(const Matcher *matcher, Block *block, Lane *lane, int64_t last,
                           int may_end) {
  const int64_t left = block->stops[lane->piece] - lane->from;
  uint64_t word;
  memcpy(&word, lane->from, 8);
  const unsigned entry = match(matcher, word, left);
  const int64_t is_open = may_end ? left > 0 : 1;
  const int64_t step = length_of(entry) & (0 - is_open);
  lane->to[0] = (uint8_t)entry;
  lane->to[1] = (uint8_t)word;
  lane->to += is_open + (is_open & (entry >> 12));
  lane->from += step;
  block->edges[lane->piece] = lane->to;
  lane->piece += (step == left) & (may_end ? lane->piece < last : 1);
}

/* The codes of the leading pieces of a block, of which the first starts at `start`: at least one for
 * each lane, and 8 more bytes can be read behind each of them. */
static uint8_t *encode_lanes(const Matcher *matcher, Block *block, const uint8_t *start,
                             int64_t pieces, uint8_t *to, const uint8_t *out) {
  Lane lanes[LANES];
  int64_t firsts[LANES + 1];
  for (int i = 0; i <= LANES; i++) firsts[i] = pieces * i / LANES;
  for (int i = 0; i < LANES; i++) {
    const int64_t first = firsts[i];
    lanes[i] = (Lane){first ? block->stops[first - 1] : start, block->codes[i], first};
  }
  for (;;) {
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < LANES; i++) {
      const int64_t left = block->stops[firsts[i + 1] - 1] - lanes[i].from;
      if (left < least) least = left;
      if (left > most) most = left;
    }
    if (most == 0) break;
    if (least > 32) {
      /* No lane gets to its end in so many steps. */
      for (int64_t steps = (least - 1) / 8; steps > 0; steps--)
        for (int i = 0; i < LANES; i++) advance(matcher, block, &lanes[i], 0, 0);
    } else {
      for (int64_t steps = (most + 7) / 8; steps > 0; steps--)
        for (int i = 0; i < LANES; i++)
          advance(matcher, block, &lanes[i], firsts[i + 1] - 1, 1);
    }
  }
  for (int i = 0; i < LANES; i++) {
    const int64_t length = lanes[i].to - block->codes[i];
    for (int64_t piece = firsts[i]; piece < firsts[i + 1]; piece++)
      block->ends[piece] = block->edges[piece] - block->codes[i] + (to - out);
    memcpy(to, block->codes[i], (size_t)length);
    to += length;
  }
  return to;
}

/* The codes of all pieces of a block, of which the first starts at `start`; `end` is that of all
 * text. */
static uint8_t *encode_block(const Matcher *matcher, Block *block, const uint8_t *start,
                             int64_t pieces, const uint8_t *end, uint8_t *to, const uint8_t *out) {
  int64_t piece = pieces;
  while (piece > 0 && end - block->stops[piece - 1] < 8) piece--;
  if (piece < LANES) piece = 0;
  if (piece) {
    to = encode_lanes(matcher, block, start, piece, to, out);
    start = block->stops[piece - 1];
  }
  for (; piece < pieces; piece++) {
    while (start < block->stops[piece]) {
      const uint64_t word = load(start, end);
      const unsigned entry = match(matcher, word, block->stops[piece] - start);
      *to++ = (uint8_t)entry;
      if (entry >> 12) *to++ = (uint8_t)word;
      start += length_of(entry);
    }
    block->ends[piece] = to - out;
  }
  return to;
}

/* The bytes of room that encoding needs, or with the size of a sample training on it. */
int64_t lt_fsst_room(int64_t sample) {
  if (sample < 0) return (int64_t)(sizeof(Matcher) + sizeof(Block));
  return fsst_train_room(sample);
}

/* Cut values into the pieces of a block, from `value` and `place` on, both of which move on. Behind
 * each value stands in `out_offsets` how many pieces there are up to it. */
static int64_t cut(Block *block, const uint8_t *data, const int64_t *offsets, int64_t values,
                   int64_t *value, int64_t *place, int64_t *out_offsets) {
  int64_t pieces = 0, i = *value, at = *place;
  while (i < values) {
    const int64_t end = offsets[i + 1];
    for (; at < end && pieces < PIECES; pieces++) {
      at = end - at > SEGMENT ? at + SEGMENT : end;
      block->stops[pieces] = data + at;
    }
    if (at < end) break;
    out_offsets[++i] = pieces;
  }
  *value = i;
  *place = at;
  return pieces;
}

/* Codes of all values. `symbols` and `lengths` describe `count` symbols, `room` is of
 * lt_fsst_room(-1) bytes, `out` holds twice the text. Returns the bytes written. */
int64_t lt_fsst_encode(const uint64_t *symbols, const uint8_t *lengths, int64_t count,
                       const uint8_t *data, int64_t size, const int64_t *offsets, int64_t values,
                       void *room, uint8_t *out, int64_t *out_offsets) {
  Matcher *matcher = room;
  Block *block = (Block *)(matcher + 1);
  uint8_t *to = out;
  int64_t value = 0, place = offsets[0];
  fill_matcher(matcher, symbols, lengths, count);
  out_offsets[0] = 0;
  while (value < values) {
    const int64_t start = place, first = value, before = to - out;
    const int64_t pieces = cut(block, data, offsets, values, &value, &place, out_offsets);
    to = encode_block(matcher, block, data + start, pieces, data + size, to, out);
    for (int64_t i = first + 1; i <= value; i++)
      out_offsets[i] = out_offsets[i] ? block->ends[out_offsets[i] - 1] : before;
  }
  return to - out;
}
