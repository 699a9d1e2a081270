/* mincore and madvise are not in the C standard. */
#define _DEFAULT_SOURCE

/* Single values out of mapped pages, addressed without decoding their neighbours.
 *
 * format/encoding/gather.py describes pages and columns in records of 64-bit words, in the order of
 * the structs in gather.h. A page's own tables (chunks, row index, dictionary) were checked when it was
 * opened; everything that is read from the chunks is checked here. A function returns a negative
 * number when it cannot go on: because a page was not opened yet, or has a shape of its own, or
 * because bytes contradict each other. `lt_gather_missing` tells the first two from the last, and
 * what is left is read with the NumPy kernels, which say what is wrong.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"
#include "share.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

enum { MOST_LEVELS = 1 << 16 };

typedef struct {
  const uint8_t *at;
  int64_t size;
  uint64_t word;
} value_t;

static int64_t last_not_above(const int64_t *edges, int64_t count, int64_t wanted) {
  int64_t low = 0, high = count; /* edges[low] <= wanted < edges[high], as far as it is known */
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (edges[middle] <= wanted)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* The first word that value `index` of a packed block of 1024 has bits in: its place in bytes, and
 * where its bits begin in it; see kernels/bitpack.py for the order. Words have 1 << `log` bits. */
static int64_t packed_place(int log, int64_t width, int64_t index, int64_t *shift) {
  static const uint8_t ORDER[8] = {0, 4, 2, 6, 1, 5, 3, 7};
  const int64_t lanes = 1024 >> log, column = index & 127, lane = column & (lanes - 1);
  const int64_t bit = (ORDER[(column - lane) >> 4] * 8 + (index >> 7)) * width;
  *shift = bit & (((int64_t)1 << log) - 1);
  return ((bit >> log) * lanes + lane) << (log - 3);
}

static uint64_t unpacked(const uint8_t *block, int64_t bits, int64_t width, int64_t index) {
  const int log = __builtin_ctzll((uint64_t)bits);
  const size_t bytes = (size_t)bits / 8;
  uint64_t low = 0, high = 0;
  int64_t shift;
  if (width == 0) return 0;
  const uint8_t *word = block + packed_place(log, width, index, &shift);
  memcpy(&low, word, bytes);
  low >>= shift;
  if (shift + width > bits) {
    memcpy(&high, word + 128, bytes); /* a word of every lane lies between */
    low |= high << (bits - shift);
  }
  return width == 64 ? low : low & (((uint64_t)1 << width) - 1);
}

/* One definition level of a chunk without lists. */
static int level_at(const page_t *page, const chunk_t *chunk, int64_t index) {
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
    if (size < 2 || count > 1024) return -1;
    const int64_t bits = word16(data);
    if (bits > 16 || size != 2 + 128 * bits) return -1;
    return (int)unpacked(data + 2, 16, bits, index);
  }
  if (page->def_kind == RUN_LEVELS) {
    uint64_t bytes;
    if (size < 8) return -1;
    memcpy(&bytes, data, 8);
    if (bytes > (uint64_t)(size - 8) || (uint64_t)size - 8 - bytes != bytes / 2 || bytes % 2)
      return -1;
    const uint8_t *lengths = data + 8 + bytes;
    for (uint64_t run = 0; run < bytes / 2; run++) {
      if (index < lengths[run]) return word16(data + 8 + 2 * run);
      index -= lengths[run];
    }
  }
  return -1;
}

static int item_of(const page_t *page, value_t *value) {
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

static int value_in(const page_t *page, const chunk_t *chunk, int64_t inside, value_t *value) {
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
      value->word = data[inside >> 3] >> (inside & 7) & 1;
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

static const page_t *page_of(const slot_t *slot, int64_t row) {
  int64_t low = 0, high = slot->count;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (slot->pages[middle].first_row <= row)
      low = middle;
    else
      high = middle;
  }
  if (high <= low) return NULL;
  const page_t *page = slot->pages + low;
  return row < page->first_row || row >= page->first_row + page->rows ? NULL : page;
}

static int64_t text_size(const page_t *page, const value_t *value) {
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
static uint8_t *put_text(const page_t *page, const value_t *value, uint8_t *to, uint8_t *limit) {
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

/* Where rows stand: the fragment of each and its number in it. `starts` counts the rows before each
 * fragment. Returns how many rows are in fragments that are not ready, or -1 for a row that is
 * not there. */
int64_t lt_gather_places(const int64_t *rows, int64_t count, const int64_t *starts,
                         int64_t fragments, const uint8_t *ready, int64_t *positions,
                         int64_t *offsets) {
  int64_t missing = 0;
  for (int64_t i = 0; i < count; i++) {
    if (rows[i] < 0 || rows[i] >= starts[fragments]) return -1;
    const int64_t position = last_not_above(starts, fragments, rows[i]);
    positions[i] = position;
    offsets[i] = rows[i] - starts[position];
    missing += !ready[position];
  }
  return missing;
}

/* Lists the unopened pages that hold rows: number of column, fragment and page for each, up to
 * `room` of them. Marks the columns of which a page cannot be read. Returns how many were listed. */
int64_t lt_gather_missing(column_t *columns, int64_t count, const int64_t *positions,
                          const int64_t *offsets, int64_t rows, int64_t *out, int64_t room) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; i++) {
    const page_t *before = NULL;
    for (int64_t j = 0; j < rows && found < room; j++) {
      const int64_t position = positions ? positions[j] : 0;
      const slot_t *slot = columns[i].slots + position;
      const page_t *page = page_of(slot, offsets[j]);
      if (!page || page->kind == UNREADABLE) columns[i].is_unreadable = 1;
      if (!page || page->kind != UNOPENED || page == before) continue;
      before = page;
      out[3 * found] = i;
      out[3 * found + 1] = position;
      out[3 * found + 2] = page - slot->pages;
      found++;
    }
  }
  return found;
}

/* The levels of a chunk with lists, kept while the next row is in the same chunk. */
typedef struct {
  const page_t *page;
  int64_t chunk, entries, rows;
  uint16_t rep[MOST_LEVELS], def[MOST_LEVELS];
  int32_t starts[MOST_LEVELS + 1]; /* entries that start a row */
  int32_t seen[MOST_LEVELS + 1];   /* values before each entry */
} levels_t;

static int load_levels(levels_t *levels, const page_t *page, int64_t number) {
  chunk_t chunk;
  if (levels->page == page && levels->chunk == number) return 0;
  levels->page = NULL;
  if (take_apart(page, number, &chunk)) return -1;
  const int64_t entries = chunk.levels;
  if (decode_levels(chunk.rep, chunk.rep_size, entries, page->rep_kind, page->rep_width,
                    levels->rep))
    return -1;
  if (page->def_kind && decode_levels(chunk.def, chunk.def_size, entries, page->def_kind,
                                      page->def_width, levels->def))
    return -1;
  int32_t rows = 0, seen = 0;
  for (int64_t i = 0; i < entries; i++) {
    const int64_t def = page->def_kind ? levels->def[i] : 0;
    if (levels->rep[i] > page->max_rep || def > page->max_def) return -1;
    if (levels->rep[i] == page->max_rep) levels->starts[rows++] = (int32_t)i;
    levels->seen[i] = seen;
    seen += def <= page->max_visible;
  }
  levels->starts[rows] = (int32_t)entries;
  levels->seen[entries] = seen;
  if (seen != chunk.count) return -1;
  if (rows != page->row_firsts[number + 1] - page->row_firsts[number]) return -1;
  levels->page = page;
  levels->chunk = number;
  levels->entries = entries;
  levels->rows = rows;
  return 0;
}

/* Where a row's entries are in one chunk: from `first` to before `last`. */
static void part_of(const levels_t *levels, int64_t row, int64_t *first, int64_t *last) {
  const int64_t inside = row - levels->page->row_firsts[levels->chunk];
  *first = inside < 0 ? 0 : inside < levels->rows ? levels->starts[inside] : levels->entries;
  *last = inside + 1 < 0 ? 0 : levels->starts[inside + 1 > levels->rows ? levels->rows : inside + 1];
}

/* Counts the entries and values of rows with lists, or writes their levels and places. */
static int64_t walk_lists(column_t *column, const int64_t *positions, const int64_t *offsets,
                          int64_t count, levels_t *levels, int is_writing) {
  int64_t entries = 0, items = 0;
  column->any_level = 0;
  for (int64_t i = 0; i < count; i++) {
    const page_t *page = page_of(column->slots + (positions ? positions[i] : 0), offsets[i]);
    if (!page || page->kind <= UNOPENED || !page->row_firsts || page->chunks == 0) return -1;
    const int64_t row = offsets[i] - page->first_row;
    int64_t chunk = last_not_above(page->row_firsts, page->chunks, row);
    int64_t is_first = 1;
    for (; chunk < page->chunks && (is_first || page->row_firsts[chunk] <= row + 1); chunk++) {
      int64_t first, last;
      if (load_levels(levels, page, chunk)) return -1;
      part_of(levels, row, &first, &last);
      if (is_first && (first >= last || levels->rep[first] != page->max_rep)) return -1;
      is_first = 0;
      for (int64_t entry = first; is_writing && entry < last; entry++) {
        const int64_t def = page->def_kind ? levels->def[entry] : 0;
        column->rep[entries + entry - first] = levels->rep[entry];
        column->def[entries + entry - first] = page->level_map[def];
        column->any_level |= page->level_map[def];
        if (def <= page->max_visible) {
          const place_t place = {page, {chunk}, {levels->seen[entry]}};
          column->places[items + levels->seen[entry] - levels->seen[first]] = place;
        }
      }
      items += levels->seen[last] - levels->seen[first];
      entries += last - first;
      /* The row goes on only if its entries reach the end of the chunk. */
      if (last < levels->entries) break;
    }
  }
  column->entries = entries;
  column->items = items;
  return 0;
}

static int64_t all_lists(column_t *columns, int64_t count, const int64_t *positions,
                         const int64_t *offsets, int64_t rows, int is_writing) {
  levels_t *levels = malloc(sizeof *levels);
  int64_t outcome = 0;
  if (!levels) return -1;
  levels->page = NULL;
  for (int64_t i = 0; i < count && !outcome; i++)
    if (columns[i].has_lists)
      outcome = walk_lists(columns + i, positions, offsets, rows, levels, is_writing);
  free(levels);
  return outcome;
}

/* Sets `entries` and `items` of the columns with lists. */
int64_t lt_gather_count(column_t *columns, int64_t count, const int64_t *positions,
                        const int64_t *offsets, int64_t rows) {
  return all_lists(columns, count, positions, offsets, rows, 0);
}

static int put_offset(column_t *column, int64_t i, int64_t offset) {
  if (column->width == 8) {
    ((int64_t *)column->offsets)[i] = offset;
    return 0;
  }
  if (offset > INT32_MAX) return -1;
  ((int32_t *)column->offsets)[i] = (int32_t)offset;
  return 0;
}

static int64_t offset_at(const column_t *column, int64_t i) {
  if (column->width == 8) return ((const int64_t *)column->offsets)[i];
  return ((const int32_t *)column->offsets)[i];
}

/* Values are found in groups, in steps that ask for memory which the next step looks at. */
enum { GROUP = 32 };

typedef struct {
  place_t place;
  chunk_t chunk;
} search_t;

/* Where in the bytes of its chunk a value, or its offset, is about to be read. */
static int64_t place_in(const page_t *page, const chunk_t *chunk, int64_t inside) {
  if (page->kind == PACKED && chunk->size > page->width) {
    const int log = __builtin_ctzll((uint64_t)page->width * 8);
    int64_t shift;
    return page->width + packed_place(log, *chunk->values, inside & 1023, &shift);
  }
  return page->kind == RUNS ? 0 : page->kind == BITS ? inside / 8 : inside * page->width;
}

/* Finds the chunks of some rows or list items. */
static int find_chunks(const column_t *column, const int64_t *positions, const int64_t *offsets,
                       int64_t first, int64_t count, search_t *found) {
  for (int64_t i = 0; i < count; i++) {
    place_t *place = &found[i].place;
    if (column->has_lists) {
      *place = column->places[first + i];
    } else {
      const int64_t offset = offsets[first + i];
      const page_t *page = page_of(column->slots + (positions ? positions[first + i] : 0), offset);
      if (!page || page->kind <= UNOPENED) return -1;
      const int64_t row = offset - page->first_row;
      place->page = page;
      place->chunk = 0;
      place->inside = row;
      if (page->kind == STRIDED) {
        __builtin_prefetch(page->data + row * page->width);
        continue;
      }
      if (page->kind == CONSTANT) continue;
      place->chunk = page->shift >= 0 ? row >> page->shift
                                      : last_not_above(page->firsts, page->chunks, row);
      if (place->chunk >= page->chunks) return -1;
      place->inside = page->shift >= 0 ? row - (place->chunk << page->shift)
                                       : row - page->firsts[place->chunk];
    }
    if (place->page->starts) {
      if (place->chunk < 0 || place->chunk >= place->page->chunks) return -1;
      __builtin_prefetch(place->page->data + place->page->starts[place->chunk]);
    }
  }
  for (int64_t i = 0; i < count; i++) {
    const page_t *page = found[i].place.page;
    const int64_t inside = found[i].place.inside;
    if (!page->starts) continue;
    if (take_apart(page, found[i].place.chunk, &found[i].chunk)) return -1;
    const chunk_t *chunk = &found[i].chunk;
    const int64_t place = place_in(page, chunk, inside);
    if (place < chunk->size) __builtin_prefetch(chunk->values + place);
  }
  return 0;
}

/* The bytes and the definition level of one value whose chunk is known. */
static int find_value(const column_t *column, const search_t *found, value_t *value, int *level) {
  const page_t *page = found->place.page;
  *level = 0;
  if (page->kind == STRIDED) {
    value->at = page->data + found->place.inside * page->width;
    value->size = page->width;
    value->word = *value->at != 0;
    return 0;
  }
  if (page->kind == CONSTANT) {
    value->at = page->data;
    value->size = page->size;
    value->word = page->size && *page->data != 0;
    return 0;
  }
  if (value_in(page, &found->chunk, found->place.inside, value)) return -1;
  if (page->def_kind && !column->has_lists) {
    const int stored = level_at(page, &found->chunk, found->place.inside);
    if (stored < 0 || stored > page->max_def) return -1;
    *level = page->level_map[stored];
  }
  return 0;
}

static int put_value(column_t *column, int64_t i, const page_t *page, const value_t *value) {
  const int64_t width = column->width;
  if (column->out == TEXT_OUT) {
    column->places[i].page = page;
    column->places[i].at = value->at;
    column->places[i].size = value->size;
    const int64_t size = text_size(page, value);
    return size < 0 ? -1 : put_offset(column, i + 1, size);
  }
  if (column->out == BITS_OUT) {
    column->values[i >> 3] |= (uint8_t)((value->word & 1) << (i & 7));
    return 0;
  }
  if (value->size != width) return -1;
  if (width == 8)
    memcpy(column->values + i * 8, value->at, 8);
  else
    memcpy(column->values + i * width, value->at, (size_t)width);
  return 0;
}

/* Fills some values of a column; of text the sizes, where its offsets will be, and its places. */
static int gather_some(column_t *column, const int64_t *positions, const int64_t *offsets,
                       int64_t first, int64_t last) {
  search_t found[GROUP];
  value_t values[GROUP];
  int level, any_level = 0;
  if (column->out == BITS_OUT) memset(column->values + first / 8, 0, (size_t)(last - first + 7) / 8);
  for (; first < last; first += GROUP) {
    const int64_t some = last - first < GROUP ? last - first : GROUP;
    if (find_chunks(column, positions, offsets, first, some, found)) return -1;
    for (int64_t i = 0; i < some; i++) {
      if (find_value(column, found + i, values + i, &level)) return -1;
      if (column->out == TEXT_OUT) __builtin_prefetch(values[i].at);
      if (!column->has_lists) column->def[first + i] = (uint16_t)level;
      any_level |= level;
    }
    for (int64_t i = 0; i < some; i++)
      if (put_value(column, first + i, found[i].place.page, values + i)) return -1;
  }
  if (any_level) __atomic_fetch_or(&column->any_level, any_level, __ATOMIC_RELAXED);
  return 0;
}

/* Turns the sizes of text into its offsets. */
static int add_up(column_t *column, int64_t count) {
  column->bytes = 0;
  if (put_offset(column, 0, 0)) return -1;
  for (int64_t i = 1; i <= count; i++) {
    column->bytes += offset_at(column, i);
    if (put_offset(column, i, column->bytes)) return -1;
  }
  return 0;
}

/* Fills the text of some values, whose offsets are known. */
static int text_of_some(column_t *column, int64_t first, int64_t last) {
  uint8_t *from = column->text + offset_at(column, first), *to = from, any_byte = 0;
  uint8_t *limit = column->text + offset_at(column, last);
  for (; first < last; first++) {
    const place_t *place = column->places + first;
    const value_t value = {place->at, place->size, 0};
    to = put_text(place->page, &value, to, limit);
    if (!to) return -1;
  }
  while (from < limit) any_byte |= *from++;
  if (any_byte) __atomic_fetch_or(&column->any_byte, any_byte, __ATOMIC_RELAXED);
  return 0;
}

/* Columns are cut into parts of so many values; whole bytes of bits belong to one of them. */
enum { PART = 1024, SHARED_VALUES = 8 * PART, SHARED_BYTES = 1 << 21 };

typedef struct {
  column_t *columns;
  const int64_t *positions, *offsets;
  int64_t rows, ranges;
  int is_text, has_failed;
} work_t;

static int64_t count_of(const column_t *column, int64_t rows) {
  return column->has_lists ? column->items : rows;
}

static void do_part(void *argument, int64_t number) {
  work_t *work = argument;
  column_t *column = work->columns + number / work->ranges;
  const int64_t count = count_of(column, work->rows), first = number % work->ranges * PART;
  const int64_t last = count - first < PART ? count : first + PART;
  int outcome = 0;
  if (first >= last || __atomic_load_n(&work->has_failed, __ATOMIC_RELAXED)) return;
  if (!work->is_text)
    outcome = gather_some(column, work->positions, work->offsets, first, last);
  else if (column->out == TEXT_OUT)
    outcome = text_of_some(column, first, last);
  if (outcome) __atomic_store_n(&work->has_failed, 1, __ATOMIC_RELAXED);
}

/* Does the parts of all columns, with help when they are many. */
static int do_columns(work_t *work, int64_t count) {
  int64_t most = 0, values = 0, bytes = 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t some = count_of(work->columns + i, work->rows);
    most = some > most ? some : most;
    values += some;
    bytes += some * work->columns[i].width;
  }
  const int is_large = values >= SHARED_VALUES || bytes >= SHARED_BYTES;
  work->ranges = (most + PART - 1) / PART;
  share_parts(do_part, work, count * work->ranges, is_large ? free_helpers() : 0);
  return work->has_failed;
}

static int64_t aligned(int64_t size) { return (size + 63) / 64 * 64; }

/* Decides where in one piece of memory the parts of all columns go, and where in a second one what
 * is needed only meanwhile; sets their sizes. The addresses are counted from 0 until
 * `lt_gather_values` knows the memory. */
void lt_gather_layout(column_t *columns, int64_t count, int64_t rows, int64_t *sizes) {
  int64_t size = 0, meanwhile = 0;
  for (int64_t i = 0; i < count; i++) {
    column_t *column = columns + i;
    const int64_t items = column->has_lists ? column->items : rows;
    const int64_t entries = column->has_lists ? column->entries : rows;
    column->values = (uint8_t *)(uintptr_t)size;
    column->offsets = (uint8_t *)(uintptr_t)size;
    if (column->out == TEXT_OUT)
      size += aligned((items + 1) * column->width);
    else
      size += aligned(column->out == BITS_OUT ? (items + 7) / 8 : items * column->width);
    column->def = (uint16_t *)(uintptr_t)size;
    size += aligned(entries * 2);
    column->rep = (uint16_t *)(uintptr_t)size;
    if (column->has_lists) size += aligned(entries * 2);
    column->places = (place_t *)(uintptr_t)meanwhile;
    if (column->has_lists || column->out == TEXT_OUT) meanwhile += items * (int64_t)sizeof(place_t);
  }
  sizes[0] = size;
  sizes[1] = meanwhile;
}

/* Fills levels, values of fixed size, offsets of text and where the text is. Returns the bytes of
 * text of all columns, each aligned, or -1. */
int64_t lt_gather_values(column_t *columns, int64_t count, const int64_t *positions,
                         const int64_t *offsets, int64_t rows, uint8_t *memory,
                         uint8_t *meanwhile) {
  int64_t text = 0, has_lists = 0;
  for (int64_t i = 0; i < count; i++) {
    column_t *column = columns + i;
    column->values = memory + (size_t)column->values;
    column->offsets = memory + (size_t)column->offsets;
    column->def = (uint16_t *)(memory + (size_t)column->def);
    column->rep = (uint16_t *)(memory + (size_t)column->rep);
    column->places = (place_t *)(meanwhile + (size_t)column->places);
    has_lists |= column->has_lists;
  }
  if (has_lists && all_lists(columns, count, positions, offsets, rows, 1)) return -1;
  for (int64_t i = 0; i < count; i++)
    if (!columns[i].has_lists) columns[i].any_level = 0;
  work_t work = {columns, positions, offsets, rows, 0, 0, 0};
  if (do_columns(&work, count)) return -1;
  for (int64_t i = 0; i < count; i++) {
    column_t *column = columns + i;
    column->bytes = 0;
    if (column->out == TEXT_OUT && add_up(column, count_of(column, rows))) return -1;
    column->text = (uint8_t *)(uintptr_t)text;
    text += aligned(column->bytes);
  }
  return text;
}

/* Fills the text itself, whose size is known by now. */
int64_t lt_gather_text(column_t *columns, int64_t count, int64_t rows, uint8_t *memory) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < count; i++) {
    columns[i].text = memory + (size_t)columns[i].text;
    columns[i].any_byte = 0;
    bytes += columns[i].bytes;
  }
  work_t work = {columns, NULL, NULL, rows, 0, 1, 0};
  return bytes && do_columns(&work, count) ? -1 : 0;
}

#if defined(__linux__)
/* The bytes that hold a value, as whole pages of memory; 0 when nothing has to be fetched. */
static int64_t memory_of(const page_t *page, int64_t row, int64_t memory_page, uintptr_t *first) {
  const uint8_t *start, *stop;
  if (page->kind == STRIDED) {
    start = page->data + row * page->width;
    stop = start + page->width;
  } else if (page->starts && page->chunks) {
    int64_t chunk;
    if (page->row_firsts)
      chunk = last_not_above(page->row_firsts, page->chunks, row);
    else
      chunk = page->shift >= 0 ? row >> page->shift
                               : last_not_above(page->firsts, page->chunks, row);
    if (chunk < 0 || chunk >= page->chunks) return 0;
    start = page->data + page->starts[chunk];
    stop = page->data + page->starts[chunk + 1];
  } else {
    return 0;
  }
  *first = (uintptr_t)start / (uintptr_t)memory_page * (uintptr_t)memory_page;
  return (int64_t)((uintptr_t)stop - *first);
}

typedef struct {
  uintptr_t first, stop;
} range_t;

static int by_first(const void *left, const void *right) {
  const uintptr_t a = ((const range_t *)left)->first, b = ((const range_t *)right)->first;
  return (a > b) - (a < b);
}

/* Asks for ranges in the order of the disk, neighbours together; the system takes no more than its
 * read-ahead in one call. */
static int64_t ask_ranges(range_t *ranges, int64_t count) {
  const uintptr_t gap = 64 * 1024, most = 128 * 1024;
  int64_t asked = 0;
  qsort(ranges, (size_t)count, sizeof(range_t), by_first);
  for (int64_t i = 0; i < count;) {
    uintptr_t first = ranges[i].first, stop = ranges[i].stop;
    for (i++; i < count && ranges[i].first <= stop + gap; i++)
      if (ranges[i].stop > stop) stop = ranges[i].stop;
    for (; first < stop; first += most) {
      const uintptr_t size = stop - first < most ? stop - first : most;
      asked += madvise((void *)first, (size_t)size, MADV_WILLNEED) == 0;
    }
  }
  return asked;
}
#endif

/* Asks the system to read the chunks of rows from the disk, all at once, when a sample of them is
 * not in memory. Returns how many were asked for. */
int64_t lt_gather_ahead(const column_t *columns, int64_t count, const int64_t *positions,
                        const int64_t *offsets, int64_t rows, int64_t samples) {
  int64_t asked = 0;
#if defined(__linux__)
  const int64_t memory_page = sysconf(_SC_PAGESIZE);
  const int64_t total = rows * count, step = total > samples ? total / samples : 1;
  int is_cold = 0;
  uintptr_t first;
  for (int64_t i = 0; i < total && !is_cold; i += step) {
    const int64_t row = i / count;
    const slot_t *slot = columns[i % count].slots + (positions ? positions[row] : 0);
    const page_t *page = page_of(slot, offsets[row]);
    unsigned char resident = 1;
    if (page && page->kind > UNOPENED &&
        memory_of(page, offsets[row] - page->first_row, memory_page, &first) > 0 &&
        mincore((void *)first, 1, &resident) == 0)
      is_cold = !(resident & 1);
  }
  range_t *ranges = is_cold ? malloc((size_t)rows * sizeof(range_t)) : 0;
  for (int64_t i = 0; i < count && ranges; i++) {
    int64_t found = 0;
    for (int64_t row = 0; row < rows; row++) {
      const slot_t *slot = columns[i].slots + (positions ? positions[row] : 0);
      const page_t *page = page_of(slot, offsets[row]);
      if (!page || page->kind <= UNOPENED) continue;
      const int64_t size = memory_of(page, offsets[row] - page->first_row, memory_page, &first);
      if (size <= 0) continue;
      ranges[found].first = first;
      ranges[found++].stop = first + (uintptr_t)size;
    }
    asked += ask_ranges(ranges, found);
  }
  free(ranges);
#else
  (void)columns, (void)count, (void)positions, (void)offsets, (void)rows, (void)samples;
#endif
  return asked;
}
