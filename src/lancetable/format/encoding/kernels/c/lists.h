/* Rows of lists, from the levels of a chunk to offsets; see format/encoding/listscan.py. */

#ifndef LANCETABLE_LISTS_H
#define LANCETABLE_LISTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "records.h"

/* What all levels of a chunk have set: of its rows that are no filled lists, and of its values. */
typedef struct {
  uint16_t any_row, any_item;
} seen_t;

/* Whether a chunk holds as many rows and values as it should, and no other levels. */
static inline int is_sound(const uint16_t *rep, const uint16_t *def, int64_t entries, int64_t rows,
                    int64_t values, const scan_t *scan, seen_t *seen) {
  uint16_t any = 0, most = 0, any_row = 0, any_item = 0, stray = 0;
  uint32_t starts = 0, shown = 0;
  const uint16_t visible = (uint16_t)scan->max_visible;
  for (int64_t i = 0; i < entries; i++) {
    any |= rep[i];
    starts += rep[i];
  }
  if (any > 1 || starts != rows) return 0;
  if (!def) return entries == values;
  for (int64_t i = 0; i < entries; i++) {
    /* All bits set where the entry is a value. */
    const uint16_t level = def[i], is_shown = (uint16_t)-(level <= visible);
    most = level > most ? level : most;
    any_item |= level & is_shown;
    any_row |= level & (uint16_t)~is_shown;
    /* A row that is no filled list starts where it stands. */
    stray |= (uint16_t)~(is_shown | (uint16_t)-rep[i]);
    shown += is_shown & 1;
  }
  seen->any_row = any_row;
  seen->any_item = any_item;
  return shown == values && most <= scan->max_def && !stray;
}

/* Where the next row and the next value go. The row before the first that starts goes on from
 * further ahead, and is number 0. */
typedef struct {
  int64_t row, items;
  int32_t *ends;                       /* values read at the end of each row */
  uint16_t *row_levels, *item_levels;  /* of rows that are no filled lists, and of values */
} rows_t;

/* Walks over the levels of a chunk; -1 when they contradict its numbers of rows and values. The
 * levels of values are written from the first that is not 0 on, those before it then too. */
static inline int scan_chunk(const uint16_t *rep, const uint16_t *def, int64_t entries,
                             int64_t starting, int64_t values, scan_t *scan, rows_t *rows) {
  const uint16_t visible = (uint16_t)scan->max_visible;
  int64_t items = rows->items, row = rows->row;
  int32_t *ends = rows->ends;
  uint16_t *row_levels = rows->row_levels, *item_levels = rows->item_levels;
  seen_t seen = {0, 0};
  if (entries < 0 || !is_sound(rep, def, entries, starting, values, scan, &seen)) return -1;
  if (items + values > INT32_MAX) return -1;
  if (seen.any_item && !scan->any_item)
    memset(item_levels, 0, (size_t)items * sizeof *item_levels);
  scan->any_row |= seen.any_row;
  scan->any_item |= seen.any_item;
  /* No branches: how long lists are cannot be foreseen. A later entry of a row overwrites what an
   * earlier one wrote; the last value of a chunk makes room for no other. */
  if (!seen.any_item && scan->any_item)
    memset(item_levels + items, 0, (size_t)values * sizeof *item_levels);
  if (!def) {
    for (int64_t i = 0; i < entries; i++) {
      row += rep[i];
      ends[row] = (int32_t)++items;
      row_levels[row] = 0;
    }
  } else if (!seen.any_item) {
    /* No value is null, so that a level other than 0 is that of a row. */
    for (int64_t i = 0; i < entries; i++) {
      const uint16_t level = def[i];
      row += rep[i];
      items += level == 0;
      ends[row] = (int32_t)items;
      row_levels[row] = level;
    }
  } else {
    for (int64_t i = 0; i < entries; i++) {
      const uint16_t level = def[i], is_shown = level <= visible;
      row += rep[i];
      item_levels[items] = level;
      items += is_shown;
      ends[row] = (int32_t)items;
      row_levels[row] = is_shown ? 0 : level;
    }
  }
  rows->row = row;
  rows->items = items;
  return 0;
}

#endif
