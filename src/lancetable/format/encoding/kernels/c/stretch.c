/* Neighbouring values of mapped pages, decoded chunk by chunk; see format/encoding/compiled_range.py.
 *
 * A chunk of a page fits the cache next to the processor, so its levels and what is compared never
 * reach memory. The pages are those of one column of one file, in the order of their rows, and all
 * that hold wanted rows were opened. A function returns -1 when a page has a shape of its own or
 * bytes contradict each other: the NumPy kernels then read the page, or say what is wrong.
 */

#include "bits.h"
#include "lists.h"
#include "pages.h"
#include "search.h"
#include "stream.h"
#include "walk.h"

/* Writes the values of a part behind `done` others: `width` bytes each, or bits when that is 0. */
static int put_values(const page_t *page, const part_t *part, int64_t width, int is_large,
                      uint8_t *out, int64_t done) {
  uint64_t block[BLOCK];
  if (page->width != width || (page->kind == BITS) != (width == 0)) return -1;
  const size_t bytes = (size_t)(part->count * width);
  const uint8_t *from = part->chunk.values + part->skip * width;
  uint8_t *to = out + done * width;
  if (page->kind == BITS) {
    copy_bits(out, done, part->chunk.values, part->skip, part->count);
    return 0;
  }
  if (page->kind == PACKED) {
    if (!is_large && part->count == BLOCK) {
      unpack_part(page, part, to);
      return 0;
    }
    unpack_part(page, part, block);
    from = (const uint8_t *)block + part->skip * width;
  }
  if (is_large)
    stream_copy(to, from, bytes);
  else
    memcpy(to, from, bytes);
  return 0;
}

#define WIDEN(BITS)                                                                                \
  case BITS / 8:                                                                                   \
    for (int64_t i = 0; i < count; i++) {                                                          \
      uint##BITS##_t index;                                                                        \
      memcpy(&index, from + i * (BITS / 8), BITS / 8);                                             \
      out[i] = index;                                                                              \
    }                                                                                              \
    return 0;

/* Words of any width as 64-bit ones. */
static int widened(const uint8_t *from, int64_t width, int64_t count, uint64_t *out) {
  switch (width) {
    WIDEN(8)
    WIDEN(16)
    WIDEN(32)
    WIDEN(64)
  }
  return -1;
}

#define LOOK_UP(BYTES)                                                                             \
  case BYTES:                                                                                      \
    for (int64_t i = 0; i < count; i++)                                                            \
      memcpy(out + i * BYTES, items + indices[i] * BYTES, BYTES);                                  \
    return;

static void look_up(const uint8_t *items, const uint64_t *indices, int64_t count, int64_t width,
                    uint8_t *out) {
  switch (width) {
    LOOK_UP(1)
    LOOK_UP(2)
    LOOK_UP(4)
    LOOK_UP(8)
  }
  for (int64_t i = 0; i < count; i++)
    memcpy(out + i * width, items + indices[i] * (uint64_t)width, (size_t)width);
}

/* Writes the items of a dictionary that the values of a part are numbers of. `there` says which are
 * no nulls, whose numbers mean nothing; NULL when there are none. */
static int put_items(const page_t *page, const part_t *part, int64_t width, const uint8_t *there,
                     uint8_t *out, int64_t done) {
  uint64_t block[BLOCK], indices[BLOCK];
  const uint8_t *from = part->chunk.values + part->skip * page->width;
  if (page->item_edges || page->item_width != width || width < 1 || page->item_count < 1) return -1;
  if (page->kind == PACKED) {
    unpack_part(page, part, block);
    from = (const uint8_t *)block + part->skip * page->width;
  } else if (page->kind != FLAT) {
    return -1;
  }
  for (int64_t first = 0; first < part->count; first += BLOCK) {
    const int64_t count = part->count - first < BLOCK ? part->count - first : BLOCK;
    uint64_t most = 0;
    if (widened(from + first * page->width, page->width, count, indices)) return -1;
    for (int64_t i = 0; i < count; i++) most = indices[i] > most ? indices[i] : most;
    for (int64_t i = 0; most >= (uint64_t)page->item_count && i < count; i++) {
      const int64_t at = first + i;
      if (indices[i] < (uint64_t)page->item_count) continue;
      if (!there || bit_at(there, at)) return -1;
      indices[i] = 0;
    }
    look_up(page->items, indices, count, width, out + (done + first) * width);
  }
  return 0;
}

/* Rows `start` to `stop` of a column: values of `width` bytes, or bits when that is 0. `validity`
 * may be NULL when no page has levels. Both have a byte for every eight bits. Returns how many
 * values are null. */
int64_t lt_stretch_values(const page_t *pages, int64_t count, int64_t start, int64_t stop,
                          int64_t width, uint8_t *out, uint8_t *validity) {
  uint8_t bits[MOST_VALUES / 8 + 1];
  walk_t walk = {pages, pages + count, start, stop, -1};
  part_t part;
  int64_t done = 0, nulls = 0;
  int more;
  const int is_large = (stop - start) * width >= STREAM_FROM_BYTES;
  while ((more = next_part(&walk, &part)) > 0) {
    const page_t *page = walk.page;
    if (page->def_kind) {
      const int64_t missing = validity ? present(page, &part, bits) : -1;
      if (missing < 0) return -1;
      nulls += missing;
      copy_bits(validity, done, bits, 0, part.count);
    } else if (validity) {
      set_bits(validity, done, part.count);
    }
    if (page->items) {
      if (put_items(page, &part, width, page->def_kind ? bits : NULL, out, done)) return -1;
    } else if (put_values(page, &part, width, is_large, out, done)) {
      return -1;
    }
    done += part.count;
  }
  if (is_large) stream_end();
  return more < 0 ? -1 : nulls;
}

/* The chunks of a page that hold any part of some rows of the file. */
typedef struct {
  int64_t first, last;
} chunks_t;

/* The last row ends where the next one starts. */
static chunks_t chunks_of(const page_t *page, int64_t start, int64_t stop) {
  const int64_t from = start - page->first_row, to = stop - page->first_row;
  const int64_t *firsts = page->row_firsts, count = page->chunks;
  const chunks_t chunks = {from <= 0 ? 0 : last_not_above(firsts, count, from),
                           to >= page->rows ? count - 1 : last_not_above(firsts, count, to)};
  return chunks;
}

static int overlaps(const page_t *page, int64_t start, int64_t stop) {
  return page->first_row < stop && page->first_row + page->rows > start;
}

/* How much the chunks hold that have rows `start` to `stop` of a column of lists: values, rows that
 * start in them, and the first of these. */
int64_t lt_stretch_list_room(const page_t *pages, int64_t count, int64_t start, int64_t stop,
                             int64_t *room) {
  int is_first = 1;
  room[0] = room[1] = room[2] = 0;
  for (const page_t *page = pages; page < pages + count; page++) {
    if (!overlaps(page, start, stop)) continue;
    if (!is_plain(page) || page->items || page->chunks < 1) return -1;
    if (!page->rep_kind || page->max_rep != 1 || page->max_def > 3) return -1;
    const chunks_t chunks = chunks_of(page, start, stop);
    room[0] += page->firsts[chunks.last + 1] - page->firsts[chunks.first];
    room[1] += page->row_firsts[chunks.last + 1] - page->row_firsts[chunks.first];
    if (is_first) room[2] = page->first_row + page->row_firsts[chunks.first];
    is_first = 0;
  }
  return 0;
}

/* Gives definition levels the names that all pages of the column share. */
static int rename_levels(const page_t *page, uint16_t *def, int64_t count) {
  uint16_t names[4] = {0, 0, 0, 0}, most = 0;
  for (int64_t i = 0; i <= page->max_def; i++) names[i] = page->level_map[i];
  for (int64_t i = 0; i < count; i++) most = def[i] > most ? def[i] : most;
  if (most > page->max_def) return -1;
  for (int64_t i = 0; i < count; i++)
    def[i] = (uint16_t)((def[i] == 1 ? names[1] : 0) | (def[i] == 2 ? names[2] : 0) |
                        (def[i] == 3 ? names[3] : 0));
  return 0;
}

/* Rows of lists with one layer, as `lt_list_scan` writes them, and all values of the chunks that
 * have them. There is as much room as told above, and for one more row and one more level. */
int64_t lt_stretch_lists(const page_t *pages, int64_t count, int64_t start, int64_t stop,
                         int64_t width, scan_t *scan, int32_t *ends, uint16_t *row_levels,
                         uint16_t *item_levels, uint8_t *out, int64_t room) {
  uint16_t rep[1 << 16], def[1 << 16];
  rows_t rows = {0, 0, ends, row_levels, item_levels};
  const int is_large = room * width >= STREAM_FROM_BYTES;
  ends[0] = 0;
  row_levels[0] = 0;
  scan->any_row = scan->any_item = 0;
  for (const page_t *page = pages; page < pages + count; page++) {
    if (!overlaps(page, start, stop)) continue;
    const chunks_t chunks = chunks_of(page, start, stop);
    for (int64_t number = chunks.first; number <= chunks.last; number++) {
      part_t part;
      chunk_t *chunk = &part.chunk;
      if (take_apart(page, number, chunk) || !has_values(page, &part)) return -1;
      const int64_t entries = chunk->levels;
      const int64_t starting = page->row_firsts[number + 1] - page->row_firsts[number];
      if (decode_levels(chunk->rep, chunk->rep_size, entries, page->rep_kind, page->rep_width, rep))
        return -1;
      /* Rows do not go on from one page to the next. */
      if (number == 0 && (entries == 0 || rep[0] != 1)) return -1;
      if (page->def_kind) {
        if (decode_levels(chunk->def, chunk->def_size, entries, page->def_kind, page->def_width,
                          def))
          return -1;
        if (rename_levels(page, def, entries)) return -1;
      }
      part.skip = 0;
      part.count = chunk->count;
      if (chunk->count > room - rows.items) return -1;
      if (put_values(page, &part, width, is_large, out, rows.items)) return -1;
      const uint16_t *known = page->def_kind ? def : NULL;
      if (scan_chunk(rep, known, entries, starting, chunk->count, scan, &rows)) return -1;
    }
  }
  if (is_large) stream_end();
  return rows.items == room ? 0 : -1;
}
