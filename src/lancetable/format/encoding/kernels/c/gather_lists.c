/* Rows of lists: their levels, and where their values are. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "gather.h"
#include "pages.h"
#include "search.h"

enum { MOST_LEVELS = 1 << 16 };

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
  const int64_t max_rep = page->max_rep, max_def = page->max_def, visible = page->max_visible;
  const uint16_t *rep = levels->rep, *def = page->def_kind ? levels->def : NULL;
  int32_t rows = 0, seen = 0;
  for (int64_t i = 0; i < entries; i++) {
    const int64_t level = def ? def[i] : 0;
    if (rep[i] > max_rep || level > max_def) return -1;
    /* No branch: where rows start cannot be foreseen. */
    levels->starts[rows] = (int32_t)i;
    rows += rep[i] == max_rep;
    levels->seen[i] = seen;
    seen += level <= visible;
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

int64_t gather_lists(column_t *columns, int64_t count, const int64_t *positions,
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
  return gather_lists(columns, count, positions, offsets, rows, 0);
}
