/* Neighbouring values of mapped pages, decoded or compared chunk by chunk; see
 * format/encoding/stretch.py.
 *
 * A chunk of a page fits the cache next to the processor, so its levels and what is compared never
 * reach memory. The pages are those of one column of one file, in the order of their rows, and all
 * that hold wanted rows were opened. A function returns -1 when a page has a shape of its own or
 * bytes contradict each other: the NumPy kernels then read the page, or say what is wrong.
 */

#include "lists.h"
#include "pages.h"
#include "stream.h"
#include "wide.h"

enum { BLOCK = 1024, MOST_VALUES = 1 << 15 };
enum { SIGNED, UNSIGNED, REAL };
enum { LESS, LESS_OR_EQUAL, EQUAL };

/* A comparison with a constant of a type, or its opposite. */
typedef struct {
  int64_t type, op, is_opposite;
  union {
    int64_t whole;
    uint64_t natural;
    double real;
  } constant;
} test_t;

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

static int is_plain(const page_t *page) {
  return page->kind == FLAT || page->kind == BITS || page->kind == PACKED;
}

/* Whether a chunk is as long as its values ask for. */
static int has_values(const page_t *page, part_t *part) {
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
static int next_part(walk_t *walk, part_t *part) {
  if (walk->row >= walk->stop) return 0;
  while (walk->page < walk->end && walk->row >= walk->page->first_row + walk->page->rows) {
    walk->page++;
    walk->number = -1;
  }
  const page_t *page = walk->page;
  if (page == walk->end || walk->row < page->first_row) return -1;
  if (!is_plain(page) || page->rep_kind || page->max_rep) return -1;
  const int64_t row = walk->row - page->first_row;
  if (walk->number < 0) {
    int64_t low = 0, high = page->chunks;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      if (page->firsts[middle] <= row)
        low = middle;
      else
        high = middle;
    }
    walk->number = low;
  } else {
    walk->number++;
  }
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

/* Copies bits from any place to any other. */
static void copy_bits(uint8_t *out, int64_t to, const uint8_t *data, int64_t from, int64_t count) {
  for (; count > 0 && to % 8; count--, to++, from++) {
    const uint8_t bit = (uint8_t)(1 << to % 8);
    out[to / 8] = data[from / 8] >> from % 8 & 1 ? out[to / 8] | bit : out[to / 8] & (uint8_t)~bit;
  }
  out += to / 8;
  data += from / 8;
  const unsigned shift = (unsigned)(from % 8);
  const int64_t whole = count / 8;
  if (shift == 0)
    memcpy(out, data, (size_t)whole);
  else
    for (int64_t i = 0; i < whole; i++)
      out[i] = (uint8_t)(data[i] >> shift | data[i + 1] << (8 - shift));
  if (count % 8) {
    uint8_t last = 0;
    for (int64_t i = 0; i < count % 8; i++) {
      const int64_t at = shift + whole * 8 + i;
      last |= (uint8_t)((data[at / 8] >> at % 8 & 1) << i);
    }
    out[whole] = last;
  }
}

/* Says which values of a part are there, as bits from the first on. Returns how many are not. */
static int64_t present(const page_t *page, const part_t *part, uint8_t *bits) {
  uint16_t levels[MOST_VALUES];
  const chunk_t *chunk = &part->chunk;
  uint16_t most = 0;
  int64_t nulls = 0;
  if (chunk->levels != chunk->count) return -1;
  if (decode_levels(chunk->def, chunk->def_size, chunk->levels, page->def_kind, page->def_width,
                    levels))
    return -1;
  for (int64_t i = 0; i < chunk->count; i++) most = levels[i] > most ? levels[i] : most;
  if (most > page->max_def) return -1;
  const uint16_t *from = levels + part->skip;
  for (int64_t i = 0; i < part->count; i++) nulls += from[i] != 0;
  const int64_t whole = part->count / 8;
  for (int64_t i = 0; i < whole; i++, from += 8)
    bits[i] = (uint8_t)((from[0] == 0) | (from[1] == 0) << 1 | (from[2] == 0) << 2 |
                        (from[3] == 0) << 3 | (from[4] == 0) << 4 | (from[5] == 0) << 5 |
                        (from[6] == 0) << 6 | (from[7] == 0) << 7);
  bits[whole] = 0;
  for (int64_t i = 0; i < part->count % 8; i++) bits[whole] |= (uint8_t)((from[i] == 0) << i);
  return nulls;
}

static void set_bits(uint8_t *out, int64_t to, int64_t count) {
  for (; count > 0 && to % 8; count--, to++) out[to / 8] |= (uint8_t)(1 << to % 8);
  memset(out + to / 8, 255, (size_t)((count + 7) / 8));
}

static void unpack_part(const page_t *page, const part_t *part, void *block) {
  const int64_t start = page->width;
  lt_unpack(part->chunk.values, &start, &part->bits, 1, page->width * 8, block);
}

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
      if (!there || there[at / 8] >> at % 8 & 1) return -1;
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

/* Keeps in `mask`, or writes there, what passes a test. */
#define EACH(CONDITION)                                                                            \
  if (is_first)                                                                                    \
    for (int64_t i = 0; i < count; i++) mask[i] = (uint8_t)(CONDITION) ^ flip;                     \
  else                                                                                             \
    for (int64_t i = 0; i < count; i++) mask[i] &= (uint8_t)(CONDITION) ^ flip;

#define TEST(NAME, TYPE, FIELD)                                                                    \
  WIDE static void test_##NAME(const TYPE *values, int64_t count, const test_t *test, int is_first,\
                          uint8_t *mask) {                                                         \
    const TYPE constant = (TYPE)test->constant.FIELD;                                              \
    const uint8_t flip = test->is_opposite != 0;                                                   \
    if (test->op == LESS) {                                                                        \
      EACH(values[i] < constant)                                                                   \
    } else if (test->op == LESS_OR_EQUAL) {                                                        \
      EACH(values[i] <= constant)                                                                  \
    } else {                                                                                       \
      EACH(values[i] == constant)                                                                  \
    }                                                                                              \
  }

TEST(i8, int8_t, whole)
TEST(i16, int16_t, whole)
TEST(i32, int32_t, whole)
TEST(i64, int64_t, whole)
TEST(u8, uint8_t, natural)
TEST(u16, uint16_t, natural)
TEST(u32, uint32_t, natural)
TEST(u64, uint64_t, natural)
TEST(f32, float, real)
TEST(f64, double, real)

#define CASE(CODE, WIDTH, NAME, TYPE)                                                              \
  case (CODE) * 16 + (WIDTH):                                                                      \
    test_##NAME((const TYPE *)values, count, test, is_first, mask);                                \
    return 0;

/* Values that are aligned for their type. */
static int compare(const void *values, int64_t width, int64_t count, const test_t *test,
                   int is_first, uint8_t *mask) {
  switch (test->type * 16 + width) {
    CASE(SIGNED, 1, i8, int8_t)
    CASE(SIGNED, 2, i16, int16_t)
    CASE(SIGNED, 4, i32, int32_t)
    CASE(SIGNED, 8, i64, int64_t)
    CASE(UNSIGNED, 1, u8, uint8_t)
    CASE(UNSIGNED, 2, u16, uint16_t)
    CASE(UNSIGNED, 4, u32, uint32_t)
    CASE(UNSIGNED, 8, u64, uint64_t)
    CASE(REAL, 4, f32, float)
    CASE(REAL, 8, f64, double)
  }
  return -1;
}

/* How many of some bytes are 1; the others are 0. */
static int64_t ones(const uint8_t *mask, int64_t count) {
  int64_t found = 0, i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t word;
    memcpy(&word, mask + i, 8);
    found += (int64_t)(word * 0x0101010101010101u >> 56);
  }
  for (; i < count; i++) found += mask[i];
  return found;
}

/* Which of the rows `start` to `stop` of a column pass all tests, a byte for each; a null passes
 * none. Returns how many do. */
int64_t lt_stretch_compare(const page_t *pages, int64_t count, int64_t start, int64_t stop,
                           int64_t width, const test_t *tests, int64_t test_count, uint8_t *mask) {
  uint64_t block[BLOCK];
  uint8_t bits[MOST_VALUES / 8 + 1];
  walk_t walk = {pages, pages + count, start, stop, -1};
  part_t part;
  int64_t found = 0;
  int more;
  while ((more = next_part(&walk, &part)) > 0) {
    const page_t *page = walk.page;
    if (page->width != width || page->kind == BITS || page->items || test_count < 1) return -1;
    const uint8_t *from = part.chunk.values + part.skip * width;
    if (page->kind == PACKED) {
      unpack_part(page, &part, block);
      from = (const uint8_t *)block + part.skip * width;
    }
    const int is_aligned = (uintptr_t)from % (uintptr_t)width == 0;
    /* Values that lie anywhere are brought to an aligned place, a block at a time. */
    const int64_t step = is_aligned ? part.count : BLOCK;
    for (int64_t first = 0; first < part.count; first += step) {
      const int64_t size = part.count - first < step ? part.count - first : step;
      const void *values = from + first * width;
      if (!is_aligned) values = memcpy(block, values, (size_t)(size * width));
      for (int64_t i = 0; i < test_count; i++)
        if (compare(values, width, size, tests + i, i == 0, mask + first)) return -1;
    }
    if (page->def_kind) {
      if (present(page, &part, bits) < 0) return -1;
      for (int64_t i = 0; i < part.count; i++) mask[i] &= bits[i / 8] >> i % 8 & 1;
    }
    found += ones(mask, part.count);
    mask += part.count;
  }
  return more < 0 ? -1 : found;
}

/* The chunks of a page that hold any part of some rows of the file. */
typedef struct {
  int64_t first, last;
} chunks_t;

static int64_t chunk_where(const page_t *page, int64_t row) {
  int64_t low = 0, high = page->chunks;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (page->row_firsts[middle] <= row)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* The last row ends where the next one starts. */
static chunks_t chunks_of(const page_t *page, int64_t start, int64_t stop) {
  const int64_t from = start - page->first_row, to = stop - page->first_row;
  const chunks_t chunks = {from <= 0 ? 0 : chunk_where(page, from),
                           to >= page->rows ? page->chunks - 1 : chunk_where(page, to)};
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
