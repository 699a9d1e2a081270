/* How a chunk of a mapped page is taken apart.
 *
 * format/encoding/page_records.py describes pages in records. A page's own tables were checked when
 * it was opened; everything that is read from its chunks is checked here. */

#ifndef LANCETABLE_PAGES_H
#define LANCETABLE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "records.h"

/* In kernels.c. */
void lt_unpack(const uint8_t *data, const int64_t *starts, const int64_t *widths, int64_t blocks,
               int64_t bits, void *out);
int64_t lt_levels(const uint8_t *data, const int64_t *starts, const int64_t *sizes,
                  const int64_t *counts, int64_t pieces, int64_t width, uint16_t *out);

typedef struct {
  const uint8_t *rep, *def, *values, *lengths;
  int64_t rep_size, def_size, size, runs, levels, count;
} chunk_t;

static inline int64_t padded(int64_t size) { return (size + 7) / 8 * 8; }

static inline uint16_t word16(const uint8_t *at) {
  uint16_t word;
  memcpy(&word, at, 2);
  return word;
}

static inline int64_t size_at(const page_t *page, const uint8_t **word) {
  int64_t size = word16(*word);
  *word += 2;
  if (page->is_large) {
    size |= (int64_t)word16(*word) << 16;
    *word += 2;
  }
  return size;
}

static inline int take_apart(const page_t *page, int64_t number, chunk_t *chunk) {
  if (number < 0 || number >= page->chunks) return -1;
  const int64_t start = page->starts[number], size = page->starts[number + 1] - start;
  const uint8_t *at = page->data + start, *word = at;
  int64_t place = page->header;
  if (size < place) return -1;
  chunk->count = page->shift >= 0 && number + 1 < page->chunks
                     ? (int64_t)1 << page->shift
                     : page->firsts[number + 1] - page->firsts[number];
  chunk->levels = word16(word);
  word += 2;
  chunk->rep_size = chunk->def_size = 0;
  if (page->rep_kind) {
    chunk->rep_size = word16(word);
    word += 2;
  }
  if (page->def_kind) {
    chunk->def_size = word16(word);
    word += 2;
  }
  chunk->size = size_at(page, &word);
  chunk->runs = page->kind == RUNS ? size_at(page, &word) : 0;
  chunk->rep = at + place;
  place += padded(chunk->rep_size);
  chunk->def = at + place;
  place += padded(chunk->def_size);
  chunk->values = at + place;
  place += padded(chunk->size);
  chunk->lengths = at + place;
  place += padded(chunk->runs);
  return place > size ? -1 : 0;
}

/* How many bits each of `count` levels has that are packed behind their width; -1 when they do not
 * fit their size. */
static inline int64_t inline_bits(const uint8_t *data, int64_t size, int64_t count) {
  if (size < 2 || count > 1024) return -1;
  const int64_t bits = word16(data);
  return bits > 16 || size != 2 + 128 * bits ? -1 : bits;
}

/* How many runs of levels there are: the bytes of their levels, the levels, and a byte for the
 * length of each; -1 when they do not fit their size. */
static inline int64_t level_runs(const uint8_t *data, int64_t size) {
  uint64_t bytes;
  if (size < 8) return -1;
  memcpy(&bytes, data, 8);
  if (bytes > (uint64_t)(size - 8) || (uint64_t)size - 8 - bytes != bytes / 2 || bytes % 2)
    return -1;
  return (int64_t)(bytes / 2);
}

/* All levels of one kind of a chunk. */
static inline int decode_levels(const uint8_t *data, int64_t size, int64_t count, int64_t kind,
                         int64_t width, uint16_t *out) {
  const int64_t zero = 0;
  if (kind == RAW_LEVELS) {
    if (size < count * 2) return -1;
    memcpy(out, data, (size_t)count * 2);
    return 0;
  }
  if (kind == PACKED_LEVELS) {
    if (width == 0) return -1;
    return (int)lt_levels(data, &zero, &size, &count, 1, width, out);
  }
  if (kind == INLINE_LEVELS) {
    uint16_t block[1024];
    const int64_t bits = inline_bits(data, size, count), start = 2;
    if (bits < 0) return -1;
    lt_unpack(data, &start, &bits, 1, 16, block);
    memcpy(out, block, (size_t)count * 2);
    return 0;
  }
  if (kind == RUN_LEVELS) {
    const int64_t runs = level_runs(data, size);
    if (runs < 0) return -1;
    const uint8_t *levels = data + 8, *lengths = levels + 2 * runs;
    int64_t done = 0;
    for (int64_t run = 0; run < runs; run++) {
      const uint16_t level = word16(levels + 2 * run);
      for (int64_t left = lengths[run]; left > 0 && done < count; left--) out[done++] = level;
    }
    return done == count ? 0 : -1;
  }
  return -1;
}

#endif
