/* Single values and levels of a chunk that was taken apart. Everything that is read is checked. */

#ifndef LANCETABLE_VALUES_H
#define LANCETABLE_VALUES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bits.h"
#include "pages.h"

/* The bytes of a value, or the value itself where it has no bytes of its own. */
typedef struct {
  const uint8_t *at;
  int64_t size;
  uint64_t word;
} value_t;

/* One definition level of a chunk without lists. */
static inline int level_at(const page_t *page, const chunk_t *chunk, int64_t index) {
  const uint8_t *data = chunk->def;
  const int64_t size = chunk->def_size, count = chunk->levels;
  if (count != chunk->count || index >= count) return -1;
  if (page->def_kind == RAW_LEVELS) return size < count * 2 ? -1 : word16(data + 2 * index);
  if (page->def_kind == PACKED_LEVELS) {
    const int64_t packed = 128 * page->def_width, whole = count / 1024, tail = count % 1024;
    const int64_t block = index / 1024, rest = size - whole * packed;
    if (rest != tail * 2 && rest != packed) return -1;
    if (block == whole && rest == tail * 2)
      return word16(data + whole * packed + 2 * (index % 1024));
    return (int)unpacked(data + block * packed, 16, page->def_width, index % 1024);
  }
  if (page->def_kind == INLINE_LEVELS) {
    const int64_t bits = inline_bits(data, size, count);
    return bits < 0 ? -1 : (int)unpacked(data + 2, 16, bits, index);
  }
  if (page->def_kind == RUN_LEVELS) {
    const int64_t runs = level_runs(data, size);
    if (runs < 0) return -1;
    const uint8_t *lengths = data + 8 + 2 * runs;
    for (int64_t run = 0; run < runs; run++) {
      if (index < lengths[run]) return word16(data + 8 + 2 * run);
      index -= lengths[run];
    }
  }
  return -1;
}

/* The item of a dictionary whose number was read. */
static inline int item_of(const page_t *page, value_t *value) {
  const uint64_t index = value->word;
  if (index >= (uint64_t)page->item_count) return -1;
  if (page->item_edges) {
    value->at = page->items + page->item_edges[index];
    value->size = page->item_edges[index + 1] - page->item_edges[index];
  } else {
    value->at = page->items + index * (uint64_t)page->item_width;
    value->size = page->item_width;
  }
  return 0;
}

static inline int value_in(const page_t *page, const chunk_t *chunk, int64_t inside,
                           value_t *value) {
  const uint8_t *data = chunk->values;
  const int64_t size = chunk->size, count = chunk->count, width = page->width;
  if (inside < 0 || inside >= count) return -1;
  switch (page->kind) {
    case FLAT:
      if (count * width > size) return -1;
      value->at = data + inside * width;
      value->size = width;
      if (page->items) {
        value->word = 0;
        memcpy(&value->word, value->at, (size_t)width);
      }
      break;
    case BITS:
      if ((count + 7) / 8 > size) return -1;
      value->word = bit_at(data, inside);
      return 0;
    case PACKED: {
      uint64_t bits = 0;
      if (size < width || count > 1024) return -1;
      memcpy(&bits, data, (size_t)width);
      if (bits > (uint64_t)width * 8 || size != width + 128 * (int64_t)bits) return -1;
      value->word = unpacked(data + width, width * 8, (int64_t)bits, inside);
      value->at = (const uint8_t *)&value->word;
      value->size = width;
      break;
    }
    case TEXT: {
      uint64_t first = 0, last = 0;
      const int64_t edges = (count + 1) * width;
      if (edges > size) return -1;
      memcpy(&first, data + inside * width, (size_t)width);
      memcpy(&last, data + (inside + 1) * width, (size_t)width);
      if (first < (uint64_t)edges || first > last || last > (uint64_t)size) return -1;
      value->at = data + first;
      value->size = (int64_t)(last - first);
      return 0;
    }
    case RUNS: {
      int64_t run = 0, left = inside;
      if (chunk->runs * width != size) return -1;
      while (run < chunk->runs && left >= chunk->lengths[run]) left -= chunk->lengths[run++];
      if (run == chunk->runs) return -1;
      value->at = data + run * width;
      value->size = width;
      value->word = 0;
      memcpy(&value->word, value->at, (size_t)(width < 8 ? width : 8));
      break;
    }
    default:
      return -1;
  }
  return page->items ? item_of(page, value) : 0;
}

/* How long a value is when it is decoded; -1 for damaged codes. */
static inline int64_t text_size(const page_t *page, const value_t *value) {
  if (!page->symbols || page->items) return value->size;
  const uint8_t *from = value->at, *end = from + value->size;
  int64_t size = 0;
  while (from < end) {
    const uint8_t code = *from++;
    if (code == 255) {
      if (from++ == end) return -1;
      size++;
    } else {
      if (page->lengths[code] == 0) return -1;
      size += page->lengths[code];
    }
  }
  return size;
}

/* Returns where the next value goes; NULL when there is no room, as the bytes changed meanwhile. */
static inline uint8_t *put_text(const page_t *page, const value_t *value, uint8_t *to,
                                uint8_t *limit) {
  if (!page->symbols || page->items) {
    if (limit - to < value->size) return NULL;
    memcpy(to, value->at, (size_t)value->size);
    return to + value->size;
  }
  const uint8_t *from = value->at, *end = from + value->size;
  while (from < end) {
    const uint8_t code = *from++;
    if (code == 255) {
      if (from == end || to == limit) return NULL;
      *to++ = *from++;
    } else if (limit - to >= 8) {
      memcpy(to, &page->symbols[code], 8);
      to += page->lengths[code];
    } else {
      if (limit - to < page->lengths[code]) return NULL;
      memcpy(to, &page->symbols[code], page->lengths[code]);
      to += page->lengths[code];
    }
  }
  return to;
}

#endif
