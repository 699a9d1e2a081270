/* Numbers and texts in ascending order, equal ones as they stand; see kernels/ordering.py. */

#include <stdint.h>
#include <string.h>

#include "records.h"

enum { FEW = 24, LEAST_DIGITS = 4, MOST_DIGITS = 10 };
enum { LEVEL_BYTES = 7 };

/* The highest digits in which numbers differ, as many as suit their count. */
typedef struct {
  int shift, digits;
} digits_t;

static digits_t digits_of(uint64_t varying, int64_t count) {
  digits_t chosen = {64 - __builtin_clzll(varying), LEAST_DIGITS};
  while (chosen.digits < MOST_DIGITS && count >> (chosen.digits + 3)) chosen.digits++;
  if (chosen.digits > chosen.shift) chosen.digits = chosen.shift;
  chosen.shift -= chosen.digits;
  return chosen;
}

static uint64_t digit(uint64_t value, digits_t chosen) {
  return value >> chosen.shift & (((uint64_t)1 << chosen.digits) - 1);
}

/* Turns counts into where each digit begins. */
static void firsts_of(int64_t *counts, digits_t chosen) {
  int64_t sum = 0;
  for (int64_t i = 0; i < (int64_t)1 << chosen.digits; i++) {
    const int64_t count = counts[i];
    counts[i] = sum;
    sum += count;
  }
}

static void insert_all(pair_t *pairs, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    const pair_t one = pairs[i];
    int64_t at = i;
    for (; at > 0 && pairs[at - 1].value > one.value; at--) pairs[at] = pairs[at - 1];
    pairs[at] = one;
  }
}

static void order_pairs(pair_t *from, pair_t *to, int64_t count, int is_moved);

/* Orders the pairs of each digit, which ends where `ends` says. */
static void order_parts(pair_t *from, pair_t *to, const int64_t *ends, digits_t chosen,
                        int is_moved) {
  int64_t first = 0;
  for (int64_t i = 0; i < (int64_t)1 << chosen.digits; i++) {
    if (ends[i] > first) order_pairs(from + first, to + first, ends[i] - first, is_moved);
    first = ends[i];
  }
}

/* Orders pairs by their highest digits first. They stay in `from`, or move to `to`. */
static void order_pairs(pair_t *from, pair_t *to, int64_t count, int is_moved) {
  uint64_t varying = 0;
  if (count > FEW) {
    for (int64_t i = 1; i < count; i++) varying |= from[i].value ^ from[0].value;
  } else {
    insert_all(from, count);
  }
  if (varying == 0) {
    if (is_moved) memcpy(to, from, (size_t)count * sizeof *from);
    return;
  }
  const digits_t chosen = digits_of(varying, count);
  int64_t next[1 << MOST_DIGITS] = {0};
  for (int64_t i = 0; i < count; i++) next[digit(from[i].value, chosen)]++;
  firsts_of(next, chosen);
  for (int64_t i = 0; i < count; i++) to[next[digit(from[i].value, chosen)]++] = from[i];
  order_parts(to, from, next, chosen, !is_moved);
}

/* Orders numbers with their rows: `block` has all numbers, then all rows; `room` has room for as
 * many pairs. While the pairs are in `room`, `block` is a second room for them. */
void lt_order_rows(uint64_t *block, int64_t count, pair_t *room) {
  uint64_t *const values = block, *const rows = block + count;
  uint64_t varying = 0, falls = 0;
  for (int64_t i = 1; i < count; i++) {
    varying |= values[i] ^ values[0];
    falls |= values[i] < values[i - 1];
  }
  if (!falls) return;
  const digits_t chosen = digits_of(varying, count);
  int64_t next[1 << MOST_DIGITS] = {0};
  for (int64_t i = 0; i < count; i++) next[digit(values[i], chosen)]++;
  firsts_of(next, chosen);
  for (int64_t i = 0; i < count; i++) {
    pair_t *const pair = room + next[digit(values[i], chosen)]++;
    pair->value = values[i];
    pair->place = (int64_t)rows[i];
  }
  order_parts(room, (pair_t *)block, next, chosen, 0);
  for (int64_t i = 0; i < count; i++) {
    values[i] = room[i].value;
    rows[i] = (uint64_t)room[i].place;
  }
}

typedef struct {
  const uint8_t *data;
  const int64_t *edges;
} texts_t;

/* Bytes of a text from a depth on, and how many more there are, at most one more than these. */
static uint64_t level_of(const texts_t *texts, int64_t place, int64_t depth) {
  const int64_t left = texts->edges[place + 1] - texts->edges[place] - depth;
  const uint8_t *const text = texts->data + texts->edges[place] + depth;
  uint64_t level = 0;
  if (left > LEVEL_BYTES) {
    memcpy(&level, text, sizeof level);
    return (__builtin_bswap64(level) & ~(uint64_t)255) | (LEVEL_BYTES + 1);
  }
  for (int64_t i = 0; i < LEVEL_BYTES; i++) level = level << 8 | (i < left ? text[i] : 0);
  return level << 8 | (uint64_t)left;
}

static int goes_on(uint64_t level) { return (level & 255) > LEVEL_BYTES; }

/* How many bytes all texts have in common that have so many in common already. */
static int64_t common_bytes(const texts_t *texts, const pair_t *pairs, int64_t count,
                            int64_t known) {
  const uint8_t *const first = texts->data + texts->edges[pairs[0].place];
  int64_t common = texts->edges[pairs[0].place + 1] - texts->edges[pairs[0].place];
  for (int64_t i = 1; i < count && common > known; i++) {
    const int64_t start = texts->edges[pairs[i].place];
    const int64_t size = texts->edges[pairs[i].place + 1] - start;
    int64_t same = known;
    while (same < size && same < common && texts->data[start + same] == first[same]) same++;
    common = same;
  }
  return common;
}

/* Orders texts by a few bytes, then those that are alike so far by the next. The largest such group
 * is done in a loop, so calls nest no deeper than the number of texts has digits. */
static void order_texts(const texts_t *texts, pair_t *pairs, pair_t *room, int64_t count,
                        int64_t depth) {
  while (count > 1) {
    uint64_t varying = 0;
    for (int64_t i = 0; i < count; i++) {
      pairs[i].value = level_of(texts, pairs[i].place, depth);
      varying |= pairs[i].value ^ pairs[0].value;
    }
    if (varying == 0) {
      if (!goes_on(pairs[0].value)) return;
      depth = common_bytes(texts, pairs, count, depth + LEVEL_BYTES);
      continue;
    }
    order_pairs(pairs, room, count, 0);
    pair_t *largest = pairs;
    int64_t most = 0;
    for (int64_t first = 0, end; first < count; first = end) {
      for (end = first + 1; end < count && pairs[end].value == pairs[first].value;) end++;
      if (end == first + 1 || !goes_on(pairs[first].value)) continue;
      const int64_t size = end - first;
      if (size > count / 2) {
        largest = pairs + first;
        most = size;
      } else {
        order_texts(texts, pairs + first, room, size, depth + LEVEL_BYTES);
      }
    }
    pairs = largest;
    count = most;
    depth += LEVEL_BYTES;
  }
}

/* Writes the places of texts in ascending order; `pairs` has room for twice as many pairs. */
void lt_order_texts(const uint8_t *data, const int64_t *edges, int64_t count, pair_t *pairs,
                    int64_t *order) {
  const texts_t texts = {data, edges};
  for (int64_t i = 0; i < count; i++) pairs[i].place = i;
  order_texts(&texts, pairs, pairs + count, count, 0);
  for (int64_t i = 0; i < count; i++) order[i] = pairs[i].place;
}
