/* Sets of rows as roaring bitmaps, one bitmap for each upper half of the rows; see
 * kernels/sets.py. */

#include <stdint.h>
#include <string.h>

enum { PLAIN = 12346, WITH_RUNS = 12347, MOST_ITEMS = 4096, BITMAP_BYTES = 8192, OFFSETS_FROM = 4 };

typedef struct {
  int64_t end;   /* the first row that has other upper digits than those of the container */
  int64_t runs;  /* of neighbouring rows */
  int64_t bytes; /* of the container, as runs when `is_runs` */
  int is_runs;
} container_t;

static uint8_t *put16(uint8_t *out, uint64_t number) {
  const uint16_t low = (uint16_t)number;
  memcpy(out, &low, sizeof low);
  return out + sizeof low;
}

static uint8_t *put32(uint8_t *out, uint64_t number) {
  const uint32_t low = (uint32_t)number;
  memcpy(out, &low, sizeof low);
  return out + sizeof low;
}

static container_t container_at(const uint64_t *rows, int64_t first, int64_t end) {
  container_t found = {first + 1, 1, 0, 0};
  for (; found.end < end && rows[found.end] >> 16 == rows[first] >> 16; found.end++)
    found.runs += rows[found.end] != rows[found.end - 1] + 1;
  const int64_t count = found.end - first;
  found.bytes = count > MOST_ITEMS ? BITMAP_BYTES : 2 * count;
  found.is_runs = 2 + 4 * found.runs < found.bytes;
  if (found.is_runs) found.bytes = 2 + 4 * found.runs;
  return found;
}

static uint8_t *put_container(uint8_t *out, const uint64_t *rows, int64_t first,
                              const container_t *container) {
  const int64_t end = container->end;
  if (container->is_runs) {
    out = put16(out, (uint64_t)container->runs);
    for (int64_t i = first, start = i; i < end; start = i) {
      for (i++; i < end && rows[i] == rows[i - 1] + 1;) i++;
      out = put16(out, rows[start]);
      out = put16(out, rows[i - 1] - rows[start]);
    }
  } else if (end - first > MOST_ITEMS) {
    memset(out, 0, BITMAP_BYTES);
    for (int64_t i = first; i < end; i++)
      out[(rows[i] & 65535) >> 3] |= (uint8_t)(1 << (rows[i] & 7));
    out += BITMAP_BYTES;
  } else {
    for (int64_t i = first; i < end; i++) out = put16(out, rows[i]);
  }
  return out;
}

/* Writes the bitmap of rows of one upper half. */
static uint8_t *put_bitmap(uint8_t *out, const uint64_t *rows, int64_t first, int64_t end) {
  uint8_t *const start = out;
  uint64_t count = 0, runs = 0;
  for (int64_t at = first; at < end; count++) {
    const container_t one = container_at(rows, at, end);
    runs += (uint64_t)one.is_runs;
    at = one.end;
  }
  uint8_t *flags = out + 4;
  if (runs) {
    out = put32(out, WITH_RUNS | (count - 1) << 16);
    memset(flags, 0, (count + 7) / 8);
    out += (count + 7) / 8;
  } else {
    out = put32(put32(out, PLAIN), count);
  }
  uint8_t *heads = out, *offsets = out + 4 * count;
  const int has_offsets = !runs || count >= OFFSETS_FROM;
  out = offsets + (has_offsets ? 4 * count : 0);
  int64_t number = 0;
  for (int64_t at = first; at < end; number++) {
    const container_t one = container_at(rows, at, end);
    heads = put16(put16(heads, rows[at] >> 16), (uint64_t)(one.end - at - 1));
    if (has_offsets) offsets = put32(offsets, (uint64_t)(out - start));
    if (one.is_runs) flags[number >> 3] |= (uint8_t)(1 << (number & 7));
    out = put_container(out, rows, at, &one);
    at = one.end;
  }
  return out;
}

/* Writes the set of each group of ascending rows; `edges` has one more than there are groups. Sets
 * are counted bitmaps by their upper halves, and with `has_sizes` tell the size of each. `out` has
 * room for 16 bytes and 32 for each row of every group. */
void lt_row_sets(const uint64_t *rows, const int64_t *edges, int64_t groups, int64_t has_sizes,
                 uint8_t *out, int64_t *ends) {
  uint8_t *const start = out;
  for (int64_t group = 0; group < groups; group++) {
    uint8_t *const head = out;
    uint64_t count = 0;
    out += has_sizes ? 4 : 8;
    for (int64_t at = edges[group], end; at < edges[group + 1]; at = end, count++) {
      for (end = at + 1; end < edges[group + 1] && rows[end] >> 32 == rows[at] >> 32;) end++;
      out = put32(out, rows[at] >> 32);
      if (has_sizes) {
        uint8_t *const size = out;
        out = put_bitmap(size + 4, rows, at, end);
        put32(size, (uint64_t)(out - size - 4));
      } else {
        out = put_bitmap(out, rows, at, end);
      }
    }
    put32(head, count);
    if (!has_sizes) put32(head + 4, count >> 32);
    ends[group] = out - start;
  }
}
