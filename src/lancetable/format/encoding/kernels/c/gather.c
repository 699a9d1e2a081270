/* Single values out of mapped pages, addressed without decoding their neighbours.
 *
 * format/encoding/gather.py describes pages and columns in records of 64-bit words, in the order of
 * the structs in gather.h. A page's own tables (chunks, row index, dictionary) were checked when it
 * was opened; everything that is read from the chunks is checked here. A function returns a negative
 * number when it cannot go on: because a page was not opened yet, or has a shape of its own, or
 * because bytes contradict each other. `lt_gather_missing` tells the first two from the last, and
 * what is left is read with the NumPy kernels, which say what is wrong.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bits.h"
#include "gather.h"
#include "search.h"
#include "share.h"
#include "values.h"

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
enum { PART = 1024 };

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

/* Does the parts of all columns. */
static int do_columns(work_t *work, int64_t count, int64_t threads) {
  int64_t most = 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t some = count_of(work->columns + i, work->rows);
    most = some > most ? some : most;
  }
  work->ranges = (most + PART - 1) / PART;
  share_parts(do_part, work, count * work->ranges, threads);
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

/* Fills levels, values of fixed size, offsets of text and where the text is, in up to so many
 * threads. Returns the bytes of text of all columns, each aligned, or -1. */
int64_t lt_gather_values(column_t *columns, int64_t count, const int64_t *positions,
                         const int64_t *offsets, int64_t rows, uint8_t *memory,
                         uint8_t *meanwhile, int64_t threads) {
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
  if (has_lists && gather_lists(columns, count, positions, offsets, rows, 1)) return -1;
  for (int64_t i = 0; i < count; i++)
    if (!columns[i].has_lists) columns[i].any_level = 0;
  work_t work = {columns, positions, offsets, rows, 0, 0, 0};
  if (do_columns(&work, count, threads)) return -1;
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
int64_t lt_gather_text(column_t *columns, int64_t count, int64_t rows, uint8_t *memory,
                       int64_t threads) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < count; i++) {
    columns[i].text = memory + (size_t)columns[i].text;
    columns[i].any_byte = 0;
    bytes += columns[i].bytes;
  }
  work_t work = {columns, NULL, NULL, rows, 0, 1, 0};
  return bytes && do_columns(&work, count, threads) ? -1 : 0;
}
