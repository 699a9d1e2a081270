/* Rows and the pages that hold them, before their values are gathered. */

#include <stddef.h>
#include <stdint.h>

#include "gather.h"
#include "search.h"

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
