/* Walks over the chunks of mapped pages that hold neighbouring rows.
 *
 * A chunk of a page fits the cache next to the processor, so its levels and what is compared never
 * reach memory. The pages are those of one column of one file, in the order of their rows, and all
 * that hold wanted rows were opened. */

#ifndef LANCETABLE_WALK_H
#define LANCETABLE_WALK_H

#include "bits.h"
#include "pages.h"
#include "search.h"

enum { BLOCK = 1024, MOST_VALUES = 1 << 15 };

/* Some values of a chunk. */
typedef struct {
  chunk_t chunk;
  int64_t skip, count; /* values before the wanted ones, and how many are wanted */
  int64_t bits;        /* of a packed value */
} part_t;

/* The wanted rows that were not visited yet. */
typedef struct {
  const page_t *page, *end;
  int64_t row, stop; /* of the file */
  int64_t number;    /* of the chunk in the page; -1 before the first */
} walk_t;

static inline int is_plain(const page_t *page) {
  return page->kind == FLAT || page->kind == BITS || page->kind == PACKED;
}

/* Whether a chunk is as long as its values ask for. */
static inline int has_values(const page_t *page, part_t *part) {
  const chunk_t *chunk = &part->chunk;
  const int64_t count = chunk->count, width = page->width;
  if (count > MOST_VALUES) return 0;
  if (page->kind == FLAT) return count * width <= chunk->size;
  if (page->kind == BITS) return (count + 7) / 8 <= chunk->size;
  if (width > 8 || (width & (width - 1)) || chunk->size < width || count > BLOCK) return 0;
  uint64_t bits = 0;
  memcpy(&bits, chunk->values, (size_t)width);
  part->bits = (int64_t)bits;
  return bits <= (uint64_t)width * 8 && chunk->size == width + 128 * part->bits;
}

/* Returns 1 with the next part, 0 at the end, -1 for pages that cannot be read this way. */
static inline int next_part(walk_t *walk, part_t *part) {
  if (walk->row >= walk->stop) return 0;
  while (walk->page < walk->end && walk->row >= walk->page->first_row + walk->page->rows) {
    walk->page++;
    walk->number = -1;
  }
  const page_t *page = walk->page;
  if (page == walk->end || walk->row < page->first_row) return -1;
  if (!is_plain(page) || page->rep_kind || page->max_rep) return -1;
  const int64_t row = walk->row - page->first_row;
  if (walk->number < 0)
    walk->number = last_not_above(page->firsts, page->chunks, row);
  else
    walk->number++;
  chunk_t *chunk = &part->chunk;
  if (take_apart(page, walk->number, chunk)) return -1;
  const int64_t count = chunk->count;
  part->skip = row - page->firsts[walk->number];
  if (part->skip < 0 || part->skip >= count) return -1;
  part->count = count - part->skip;
  if (part->count > walk->stop - walk->row) part->count = walk->stop - walk->row;
  walk->row += part->count;
  return has_values(page, part) ? 1 : -1;
}

/* Says which values of a part are there, as bits from the first on. Returns how many are not. */
static inline int64_t present(const page_t *page, const part_t *part, uint8_t *bits) {
  uint16_t levels[MOST_VALUES];
  const chunk_t *chunk = &part->chunk;
  uint16_t most = 0;
  if (chunk->levels != chunk->count) return -1;
  if (decode_levels(chunk->def, chunk->def_size, chunk->levels, page->def_kind, page->def_width,
                    levels))
    return -1;
  for (int64_t i = 0; i < chunk->count; i++) most = levels[i] > most ? levels[i] : most;
  if (most > page->max_def) return -1;
  return mark_zeros(levels + part->skip, part->count, bits);
}

static inline void unpack_part(const page_t *page, const part_t *part, void *block) {
  const int64_t start = page->width;
  lt_unpack(part->chunk.values, &start, &part->bits, 1, page->width * 8, block);
}

#endif
