/* Rows of lists, from the levels of whole chunks to offsets; see format/encoding/listscan.py. */

#include <stdint.h>

typedef struct {
  int64_t first_row, last_row; /* the rows that are wanted, numbered in the page */
  int64_t max_def, max_visible;
  int64_t before, items;       /* set: values of the chunks before those of the rows, and theirs */
  int64_t any_row, any_item;   /* set: what all levels written have set */
} scan_t;

/* One list layer and no other. `levels` and `counts` say how many entries and values each chunk
 * holds, `firsts` how many rows start before it. Writes the offsets of the wanted rows, the levels
 * of those rows that are no filled list, and the levels of the values of all chunks. Returns -1
 * when the numbers contradict the levels. */
int64_t lt_list_scan(const uint16_t *rep, const uint16_t *def, const int64_t *levels,
                     const int64_t *counts, const int64_t *firsts, int64_t chunks, scan_t *scan,
                     int32_t *offsets, uint16_t *row_levels, uint16_t *item_levels) {
  const int64_t first_row = scan->first_row, last_row = scan->last_row;
  const uint16_t max_visible = (uint16_t)scan->max_visible;
  int64_t items = 0, row = firsts[0] - 1, before = -1, after = -1;
  uint16_t any_row = 0, any_item = 0, most = 0;
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    const int64_t seen = items;
    if (row + 1 != firsts[chunk]) return -1;
    for (int64_t i = 0; i < levels[chunk]; i++) {
      const uint16_t level = def ? def[i] : 0;
      most = level > most ? level : most;
      if (rep[i]) {
        if (rep[i] != 1) return -1;
        row++;
        if (row == last_row) after = items;
        if (row >= first_row && row < last_row) {
          const uint16_t shown = level > max_visible ? level : 0;
          if (row == first_row) before = items;
          offsets[row - first_row] = (int32_t)(items - before);
          row_levels[row - first_row] = shown;
          any_row |= shown;
        }
      } else if (level > max_visible || row < 0) {
        return -1;
      }
      if (level <= max_visible) {
        if (items - seen == counts[chunk]) return -1;
        item_levels[items++] = level;
        any_item |= level;
      }
    }
    if (items - seen != counts[chunk]) return -1;
    rep += levels[chunk];
    if (def) def += levels[chunk];
  }
  if (row + 1 != firsts[chunks] || most > scan->max_def || before < 0 || last_row > row + 1)
    return -1;
  if (after < 0) after = items;
  if (after - before > INT32_MAX) return -1;
  offsets[last_row - first_row] = (int32_t)(after - before);
  scan->before = before;
  scan->items = after - before;
  scan->any_row = any_row;
  scan->any_item = any_item;
  return 0;
}
