/* mincore and madvise are not in the C standard. */
#define _DEFAULT_SOURCE

/* Rows whose bytes are not in memory yet. */

#include <stdint.h>
#include <stdlib.h>

#include "gather.h"
#include "search.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

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
