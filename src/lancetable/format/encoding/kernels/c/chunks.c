/* The tables of mini-block pages; see format/encoding/layouts/miniblock.py and rowindex.py. */

#include <stdint.h>
#include <string.h>

enum { LARGEST_CHUNK_VALUES = 1 << 15, DAMAGED = -2, UNLIKE = -1 };

/* Where chunks start, how many values they hold and how many come before, each with the end; from
 * words of 2 or 4 bytes. Returns how many values all chunks but the last hold when they are alike,
 * -1 when they are not, -2 when the words do not fit the page. */
int64_t lt_chunk_table(const uint8_t *words, int64_t chunks, int64_t width, int64_t items,
                       int64_t size, int64_t *starts, int64_t *counts, int64_t *firsts) {
  int64_t start = 0, first = 0, alike = 0;
  for (int64_t i = 0; i < chunks; i++) {
    uint32_t word = 0;
    memcpy(&word, words + i * width, (size_t)width);
    starts[i] = start;
    firsts[i] = first;
    start += ((int64_t)(word >> 4) + 1) * 8;
    counts[i] = (int64_t)1 << (word & 15);
    if (i + 1 == chunks) {
      counts[i] = items - first;
      if (counts[i] <= 0 || counts[i] > LARGEST_CHUNK_VALUES) return DAMAGED;
    } else if (counts[i] < 2) {
      return DAMAGED;
    }
    first += counts[i];
    if (i == 0) alike = counts[0];
    if (i + 1 < chunks ? counts[i] != alike : counts[i] > alike) alike = UNLIKE;
    if (first > items) return DAMAGED;
  }
  starts[chunks] = start;
  firsts[chunks] = first;
  return start != size || first != items ? DAMAGED : alike;
}

/* How many rows start before each chunk, from a repetition index. Returns -2 when it does not fit
 * the page. */
int64_t lt_row_index(const uint8_t *pairs, int64_t chunks, int64_t rows, int64_t *firsts) {
  int64_t first = 0, is_open = 0;
  for (int64_t i = 0; i < chunks; i++) {
    uint64_t ended, left;
    memcpy(&ended, pairs + 16 * i, 8);
    memcpy(&left, pairs + 16 * i + 8, 8);
    if (ended > (uint64_t)1 << 48 || left > (uint64_t)1 << 48) return DAMAGED;
    const int64_t starting = (int64_t)ended + (left > 0) - is_open;
    firsts[i] = first;
    if (starting < 0) return DAMAGED;
    first += starting;
    if (first > rows) return DAMAGED;
    is_open = left > 0;
  }
  firsts[chunks] = first;
  return first == rows ? 0 : DAMAGED;
}
