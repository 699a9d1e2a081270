/* Rows of lists, from the levels of whole chunks to offsets; see format/encoding/listscan.py. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  int64_t max_def, max_visible;
  int64_t any_row, any_item; /* set: what all levels written have set */
} scan_t;

/* What all levels of a chunk have set: of its rows that are no filled lists, and of its values. */
typedef struct {
  uint16_t any_row, any_item;
} seen_t;

/* Whether a chunk holds as many rows and values as it should, and no other levels. */
static int is_sound(const uint16_t *rep, const uint16_t *def, int64_t entries, int64_t rows,
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

/* One list layer and no other. `levels` and `counts` say how many entries and values each chunk
 * holds, `firsts` how many rows start before it. Writes for every row that starts in the chunks,
 * and before them for one that goes on from further ahead, how many values are read at its end and
 * the level of a row that is no filled list; and the levels of all values. Returns -1 when the
 * numbers contradict the levels. */
int64_t lt_list_scan(const uint16_t *rep, const uint16_t *def, const int64_t *levels,
                     const int64_t *counts, const int64_t *firsts, int64_t chunks, scan_t *scan,
                     int32_t *ends, uint16_t *row_levels, uint16_t *item_levels) {
  const uint16_t visible = (uint16_t)scan->max_visible;
  int64_t items = 0, row = 0;
  uint16_t any_row = 0, any_item = 0;
  ends[0] = 0;
  row_levels[0] = 0;
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    const int64_t entries = levels[chunk], rows = firsts[chunk + 1] - firsts[chunk];
    seen_t seen = {0, 0};
    if (entries < 0 || !is_sound(rep, def, entries, rows, counts[chunk], scan, &seen)) return -1;
    if (items + counts[chunk] > INT32_MAX) return -1;
    /* No branches: how long lists are cannot be foreseen. A later entry of a row overwrites what
     * an earlier one wrote; the last value of a chunk makes room for no other. */
    if (!def) {
      for (int64_t i = 0; i < entries; i++) {
        row += rep[i];
        ends[row] = (int32_t)++items;
        row_levels[row] = 0;
      }
    } else if (!seen.any_item) {
      /* No value is null, so that a level other than 0 is that of a row. */
      memset(item_levels + items, 0, (size_t)counts[chunk] * sizeof *item_levels);
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
    any_row |= seen.any_row;
    any_item |= seen.any_item;
    if (def) def += entries;
    rep += entries;
  }
  scan->any_row = any_row;
  scan->any_item = any_item;
  return 0;
}
