/* What is done with the records of columns in gather*.c. */

#ifndef LANCETABLE_GATHER_H
#define LANCETABLE_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "records.h"

/* The page of a slot that holds a row; NULL when there is none. */
static inline const page_t *page_of(const slot_t *slot, int64_t row) {
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

/* Counts the entries and values of the columns with lists, or writes their levels and places. */
int64_t gather_lists(column_t *columns, int64_t count, const int64_t *positions,
                     const int64_t *offsets, int64_t rows, int is_writing);

int64_t lt_gather_places(const int64_t *rows, int64_t count, const int64_t *starts,
                         int64_t fragments, const uint8_t *ready, int64_t *positions,
                         int64_t *offsets);
int64_t lt_gather_ahead(const column_t *columns, int64_t count, const int64_t *positions,
                        const int64_t *offsets, int64_t rows, int64_t samples);
void lt_gather_layout(column_t *columns, int64_t count, int64_t rows, int64_t *sizes);
int64_t lt_gather_values(column_t *columns, int64_t count, const int64_t *positions,
                         const int64_t *offsets, int64_t rows, uint8_t *memory,
                         uint8_t *meanwhile, int64_t threads);
int64_t lt_gather_text(column_t *columns, int64_t count, int64_t rows, uint8_t *memory,
                       int64_t threads);

#endif
