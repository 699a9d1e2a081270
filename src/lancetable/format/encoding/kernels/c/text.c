/* Text of many chunks, straight from their bytes to the offsets and the bytes of one array.
 *
 * A chunk starts with count + 1 offsets of 4 or 8 bytes, counted from its own start; between them
 * lie the values, as they are or coded with FSST (see kernels/fsst.py).
 *
 * Codes are decoded without regard to where values end, a run at a time: how many codes a value
 * has cannot be foreseen by the processor. Beside each code stands how much was written before it,
 * and that is where the edges of the values are looked up. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "stream.h"

enum { DAMAGED = -1, NO_SYMBOL = -2, ESCAPE_AT_END = -3, NO_ROOM = -4 };

enum { ESCAPE = 255, RUN = 2048, INSIDE_ESCAPE = UINT16_MAX };

typedef struct {
  const uint64_t *symbols; /* 256 words of 8 bytes; none when values are stored as they are */
  const uint8_t *lengths;
} codes_t;

/* What a run of codes became: `reach[i]` bytes lie before code i. */
typedef struct {
  int64_t codes, bytes;
  int is_unknown;
  uint16_t reach[RUN + 1];
  uint8_t text[8 * RUN + 8];
} run_t;

static int has_escape(uint32_t four) {
  const uint32_t flipped = ~four; /* a byte of 255 is a byte of 0 here */
  return ((flipped - 0x01010101u) & ~flipped & 0x80808080u) != 0;
}

#define ONE_CODE(AT)                                                                             \
  {                                                                                              \
    const uint8_t code = from[AT], length = lengths[code];                                       \
    run->reach[AT] = (uint16_t)bytes;                                                            \
    memcpy(run->text + bytes, &symbols[code], 8);                                                \
    bytes += length;                                                                             \
    missing |= length - 1u;                                                                      \
  }

/* Decodes up to RUN codes; one less when the last is an escape whose byte lies behind it. */
static void decode_run(const codes_t *table, const uint8_t *from, int64_t codes, run_t *run) {
  const uint64_t *symbols = table->symbols;
  const uint8_t *lengths = table->lengths;
  uint32_t missing = 0;
  size_t bytes = 0;
  int64_t i = 0;
  if (codes > RUN) codes = RUN;
  while (i < codes) {
    if (codes - i >= 4) {
      uint32_t four;
      memcpy(&four, from + i, 4);
      if (!has_escape(four)) {
        ONE_CODE(i)
        ONE_CODE(i + 1)
        ONE_CODE(i + 2)
        ONE_CODE(i + 3)
        i += 4;
        continue;
      }
    }
    if (from[i] != ESCAPE) {
      ONE_CODE(i)
      i++;
    } else if (i + 1 == codes) {
      break;
    } else {
      run->reach[i] = (uint16_t)bytes;
      run->reach[i + 1] = INSIDE_ESCAPE;
      run->text[bytes++] = from[i + 1];
      i += 2;
    }
  }
  run->reach[i] = (uint16_t)bytes;
  run->codes = i;
  run->bytes = (int64_t)bytes;
  run->is_unknown = (missing & 0x80000000u) != 0;
}

static inline int64_t offset_at(const uint8_t *chunk, int64_t index, int64_t width) {
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
static inline int check_offsets(const uint8_t *chunk, int64_t size, int64_t count, int64_t width) {
  if (count < 0 || size < width || count > size / width - 1) return DAMAGED;
  int is_falling = offset_at(chunk, 0, width) < (count + 1) * width;
  for (int64_t i = 0; i < count; i++)
    is_falling |= offset_at(chunk, i + 1, width) < offset_at(chunk, i, width);
  return is_falling || offset_at(chunk, count, width) > size ? DAMAGED : 0;
}

/* Where text goes, and what the caller said about its chunks. */
typedef struct {
  uint8_t *start, *to;
  int64_t room;
  int is_large;
} target_t;

static int put(target_t *target, const uint8_t *from, int64_t size) {
  if (target->room - (target->to - target->start) < size) return NO_ROOM;
  if (target->is_large)
    stream_copy(target->to, from, (size_t)size);
  else
    memcpy(target->to, from, (size_t)size);
  target->to += size;
  return 0;
}

#define WRITE(NAME, EDGE, WIDTH)                                                                 \
  static int copy_##NAME(const uint8_t *chunk, int64_t count, target_t *target, EDGE *edges) {   \
    const int64_t first = offset_at(chunk, 0, WIDTH), last = offset_at(chunk, count, WIDTH);     \
    const int64_t base = (target->to - target->start) - first;                                   \
    if (put(target, chunk + first, last - first)) return NO_ROOM;                                \
    for (int64_t j = 0; j < count; j++)                                                          \
      edges[j] = (EDGE)(base + offset_at(chunk, j + 1, WIDTH));                                  \
    return 0;                                                                                    \
  }                                                                                              \
                                                                                                 \
  static int decode_##NAME(const uint8_t *chunk, int64_t count, const codes_t *codes,            \
                           target_t *target, EDGE *edges) {                                      \
    const int64_t last = offset_at(chunk, count, WIDTH);                                         \
    int64_t first = offset_at(chunk, 0, WIDTH), j = 1;                                           \
    run_t run;                                                                                   \
    uint16_t stray = 0;                                                                          \
    do {                                                                                         \
      decode_run(codes, chunk + first, last - first, &run);                                      \
      if (run.is_unknown) return NO_SYMBOL;                                                      \
      if (run.codes == 0 && first < last) return ESCAPE_AT_END;                                  \
      const int64_t base = target->to - target->start;                                           \
      if (put(target, run.text, run.bytes)) return NO_ROOM;                                      \
      for (; j <= count; j++) {                                                                  \
        const int64_t place = offset_at(chunk, j, WIDTH) - first;                                \
        if (place > run.codes) break;                                                            \
        const uint16_t reach = run.reach[place];                                                 \
        stray |= reach == INSIDE_ESCAPE;                                                         \
        *edges++ = (EDGE)(base + reach);                                                         \
      }                                                                                          \
      first += run.codes;                                                                        \
    } while (first < last);                                                                      \
    return stray ? ESCAPE_AT_END : 0;                                                            \
  }                                                                                              \
                                                                                                 \
  static int64_t write_##NAME(const uint8_t *data, const int64_t *starts, const int64_t *sizes,  \
                              const int64_t *counts, int64_t chunks, const codes_t *codes,       \
                              target_t *target, EDGE *edges) {                                   \
    *edges++ = 0;                                                                                \
    for (int64_t i = 0; i < chunks; i++) {                                                       \
      const uint8_t *chunk = data + starts[i];                                                   \
      int failure = check_offsets(chunk, sizes[i], counts[i], WIDTH);                            \
      if (!failure)                                                                              \
        failure = codes->symbols ? decode_##NAME(chunk, counts[i], codes, target, edges)         \
                                 : copy_##NAME(chunk, counts[i], target, edges);                 \
      if (failure) return failure;                                                               \
      edges += counts[i];                                                                        \
    }                                                                                            \
    return target->to - target->start;                                                           \
  }

WRITE(short_short, int32_t, 4)
WRITE(short_long, int64_t, 4)
WRITE(long_short, int32_t, 8)
WRITE(long_long, int64_t, 8)

/* Writes the values of chunks with offsets of `width` bytes, and their edges in `edge_width` bytes
 * each. Offsets and codes are checked here. Returns the bytes written, or what went wrong; NO_ROOM
 * asks for more. The caller makes sure that `room` fits the edges. */
int64_t lt_text_write(const uint8_t *data, const int64_t *starts, const int64_t *sizes,
                      const int64_t *counts, int64_t chunks, int64_t width,
                      const uint64_t *symbols, const uint8_t *lengths, uint8_t *out, int64_t room,
                      void *edges, int64_t edge_width) {
  const codes_t codes = {symbols, lengths};
  target_t target = {out, out, room, room >= STREAM_FROM_BYTES};
  int64_t total;
  if (width == 4)
    total = edge_width == 4
                ? write_short_short(data, starts, sizes, counts, chunks, &codes, &target, edges)
                : write_short_long(data, starts, sizes, counts, chunks, &codes, &target, edges);
  else
    total = edge_width == 4
                ? write_long_short(data, starts, sizes, counts, chunks, &codes, &target, edges)
                : write_long_long(data, starts, sizes, counts, chunks, &codes, &target, edges);
  if (target.is_large) stream_end();
  return total;
}
