/* Text of many chunks, straight from their bytes to the offsets and the bytes of one array.
 *
 * A chunk starts with count + 1 offsets of 4 or 8 bytes, counted from its own start; between them
 * lie the values, as they are or coded with FSST (see kernels/fsst.py). */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { DAMAGED = -1, NO_SYMBOL = -2, ESCAPE_AT_END = -3, NO_ROOM = -4 };

typedef struct {
  const uint64_t *symbols; /* 256 words of 8 bytes; none when values are stored as they are */
  const uint8_t *lengths;
} codes_t;

static int has_escape(uint32_t four) {
  const uint32_t flipped = ~four; /* a byte of 255 is a byte of 0 here */
  return ((flipped - 0x01010101u) & ~flipped & 0x80808080u) != 0;
}

/* Decodes one value; `to` has room for 8 bytes per code. Returns the end, or NULL. */
static uint8_t *decode(const codes_t *codes, const uint8_t *from, const uint8_t *end, uint8_t *to,
                       int *failure) {
  const uint64_t *symbols = codes->symbols;
  const uint8_t *lengths = codes->lengths;
  uint8_t shortest = 8;
  while (end - from >= 4) {
    uint32_t four;
    memcpy(&four, from, 4);
    if (has_escape(four)) break;
    for (int i = 0; i < 4; i++) {
      const uint8_t code = from[i], length = lengths[code];
      memcpy(to, &symbols[code], 8);
      to += length;
      shortest = length < shortest ? length : shortest;
    }
    from += 4;
  }
  while (from < end) {
    const uint8_t code = *from++;
    if (code == 255) {
      if (from == end) {
        *failure = ESCAPE_AT_END;
        return NULL;
      }
      *to++ = *from++;
    } else {
      memcpy(to, &symbols[code], 8);
      to += lengths[code];
      shortest = lengths[code] < shortest ? lengths[code] : shortest;
    }
  }
  if (shortest == 0) {
    *failure = NO_SYMBOL;
    return NULL;
  }
  return to;
}

static int64_t offset_at(const uint8_t *chunk, int64_t index, int64_t width) {
  if (width == 4) {
    uint32_t offset;
    memcpy(&offset, chunk + 4 * index, 4);
    return offset;
  }
  uint64_t offset;
  memcpy(&offset, chunk + 8 * index, 8);
  return offset > INT64_MAX ? -1 : (int64_t)offset;
}

/* Checks the offsets of a chunk; returns 0 when they ascend and stay inside it. */
static int check_offsets(const uint8_t *chunk, int64_t size, int64_t count, int64_t width) {
  if (count < 0 || (count + 1) * width > size) return DAMAGED;
  int64_t before = (count + 1) * width;
  for (int64_t i = 0; i <= count; i++) {
    const int64_t offset = offset_at(chunk, i, width);
    if (offset < before) return DAMAGED;
    before = offset;
  }
  return before > size ? DAMAGED : 0;
}

/* Returns the bytes of values that chunks hold, as they are stored; -1 for damaged offsets. */
int64_t lt_text_stored(const uint8_t *data, const int64_t *starts, const int64_t *sizes,
                       const int64_t *counts, int64_t chunks, int64_t width) {
  int64_t total = 0;
  for (int64_t i = 0; i < chunks; i++) {
    const uint8_t *chunk = data + starts[i];
    if (check_offsets(chunk, sizes[i], counts[i], width)) return DAMAGED;
    total += offset_at(chunk, counts[i], width) - offset_at(chunk, 0, width);
  }
  return total;
}

#define WRITE(OFFSET)                                                                            \
  static int64_t write_##OFFSET(const uint8_t *data, const int64_t *starts,                      \
                                const int64_t *counts, int64_t chunks, int64_t width,            \
                                const codes_t *codes, uint8_t *out, int64_t room,                \
                                OFFSET##_t *edges) {                                             \
    uint8_t *to = out;                                                                           \
    *edges++ = 0;                                                                                \
    for (int64_t i = 0; i < chunks; i++) {                                                       \
      const uint8_t *chunk = data + starts[i];                                                   \
      int64_t first = offset_at(chunk, 0, width);                                                \
      const int64_t last = offset_at(chunk, counts[i], width);                                   \
      if (!codes->symbols) {                                                                     \
        const int64_t base = (to - out) - first;                                                 \
        if (room - (to - out) < last - first) return NO_ROOM;                                    \
        memcpy(to, chunk + first, (size_t)(last - first));                                       \
        to += last - first;                                                                      \
        for (int64_t j = 1; j <= counts[i]; j++)                                                 \
          *edges++ = (OFFSET##_t)(base + offset_at(chunk, j, width));                            \
        continue;                                                                                \
      }                                                                                          \
      if (room - (to - out) < 8 * (last - first) + 8) return NO_ROOM;                            \
      for (int64_t j = 1; j <= counts[i]; j++) {                                                 \
        const int64_t next = offset_at(chunk, j, width);                                         \
        int failure = 0;                                                                         \
        to = decode(codes, chunk + first, chunk + next, to, &failure);                           \
        if (!to) return failure;                                                                 \
        *edges++ = (OFFSET##_t)(to - out);                                                       \
        first = next;                                                                            \
      }                                                                                          \
    }                                                                                            \
    return to - out;                                                                             \
  }

WRITE(int32)
WRITE(int64)

/* Writes the values of chunks whose offsets `lt_text_stored` has seen, and their edges in 4 or 8
 * bytes each. Returns the bytes written, or what went wrong; NO_ROOM asks for more. The caller
 * makes sure that `room` fits the edges. */
int64_t lt_text_write(const uint8_t *data, const int64_t *starts, const int64_t *counts,
                      int64_t chunks, int64_t width, const uint64_t *symbols,
                      const uint8_t *lengths, uint8_t *out, int64_t room, void *edges,
                      int64_t edge_width) {
  const codes_t codes = {symbols, lengths};
  if (edge_width == 4)
    return write_int32(data, starts, counts, chunks, width, &codes, out, room, edges);
  return write_int64(data, starts, counts, chunks, width, &codes, out, room, edges);
}
