/* What compiled code knows of a mapped page, and how a chunk of it is taken apart.
 *
 * format/encoding/cards.py describes pages in records of 64-bit words, in the order of the struct
 * below. A page's own tables were checked when it was opened; everything that is read from its
 * chunks is checked here. */

#ifndef LANCETABLE_PAGES_H
#define LANCETABLE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* In kernels.c. */
void lt_unpack(const uint8_t *data, const int64_t *starts, const int64_t *widths, int64_t blocks,
               int64_t bits, void *out);
int64_t lt_levels(const uint8_t *data, const int64_t *starts, const int64_t *sizes,
                  const int64_t *counts, int64_t pieces, int64_t width, uint16_t *out);

enum { UNREADABLE = -1, UNOPENED, FLAT, BITS, PACKED, TEXT, STRIDED, CONSTANT, RUNS };
enum { NO_LEVELS, RAW_LEVELS, INLINE_LEVELS, PACKED_LEVELS, RUN_LEVELS };

typedef struct {
  const uint8_t *data;       /* the chunks, the strided values, or the constant value */
  int64_t size;
  const int64_t *starts;     /* where each chunk starts, and where the last one ends */
  const int64_t *firsts;     /* values before each chunk, and of all */
  const int64_t *row_firsts; /* rows that start before each chunk; only with lists */
  int64_t chunks, shift;     /* all chunks but the last hold 1 << shift values; -1: they differ */
  int64_t rows, first_row;
  int64_t kind, width;       /* bytes of a value, or of an offset of text */
  int64_t header, is_large;
  int64_t rep_kind, rep_width, def_kind, def_width;
  const uint16_t *level_map; /* what each definition level is called in the result */
  int64_t max_rep, max_def, max_visible;
  const uint64_t *symbols;   /* of FSST, or none */
  const uint8_t *lengths;
  const uint8_t *items;      /* of a dictionary, or none */
  const int64_t *item_edges; /* when the items are text */
  int64_t item_count, item_width;
} page_t;

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
    if (size < 2 || count > 1024) return -1;
    const int64_t bits = word16(data), start = 2;
    if (bits > 16 || size != 2 + 128 * bits) return -1;
    lt_unpack(data, &start, &bits, 1, 16, block);
    memcpy(out, block, (size_t)count * 2);
    return 0;
  }
  if (kind == RUN_LEVELS) {
    uint64_t bytes;
    if (size < 8) return -1;
    memcpy(&bytes, data, 8);
    if (bytes > (uint64_t)(size - 8) || (uint64_t)size - 8 - bytes != bytes / 2 || bytes % 2)
      return -1;
    const uint8_t *runs = data + 8, *lengths = runs + bytes;
    int64_t done = 0;
    for (uint64_t run = 0; run < bytes / 2; run++) {
      const uint16_t level = word16(runs + 2 * run);
      for (int64_t left = lengths[run]; left > 0 && done < count; left--) out[done++] = level;
    }
    return done == count ? 0 : -1;
  }
  return -1;
}

#endif
