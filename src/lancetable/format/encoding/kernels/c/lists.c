/* Rows of lists, from the levels of whole chunks to offsets; see format/encoding/listscan.py. */

#include "lists.h"

/* One list layer and no other. `levels` and `counts` say how many entries and values each chunk
 * holds, `firsts` how many rows start before it. Writes for every row that starts in the chunks,
 * and before them for one that goes on from further ahead, how many values are read at its end and
 * the level of a row that is no filled list; and the levels of all values. Returns -1 when the
 * numbers contradict the levels. */
int64_t lt_list_scan(const uint16_t *rep, const uint16_t *def, const int64_t *levels,
                     const int64_t *counts, const int64_t *firsts, int64_t chunks, scan_t *scan,
                     int32_t *ends, uint16_t *row_levels, uint16_t *item_levels) {
  rows_t rows = {0, 0, ends, row_levels, item_levels};
  ends[0] = 0;
  row_levels[0] = 0;
  scan->any_row = scan->any_item = 0;
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    const int64_t entries = levels[chunk], starting = firsts[chunk + 1] - firsts[chunk];
    if (scan_chunk(rep, def, entries, starting, counts[chunk], scan, &rows)) return -1;
    if (def) def += entries;
    rep += entries;
  }
  return 0;
}
