/* Search in ascending numbers. */

#ifndef LANCETABLE_SEARCH_H
#define LANCETABLE_SEARCH_H

#include <stdint.h>

/* The place of the last edge that is not above a number; 0 when all are. */
static inline int64_t last_not_above(const int64_t *edges, int64_t count, int64_t wanted) {
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

#endif
