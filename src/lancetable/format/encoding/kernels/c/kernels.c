/* Compiled twins of the NumPy kernels: plain pointers, no Python, loaded through ctypes.
 *
 * Callers have checked that every range lies inside its buffer, unless a function says that it
 * checks itself; such a function returns a negative number for damaged input.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bits.h"
#include "stream.h"
#include "wide.h"

/* A block of 1024 values of BITS bits in `width` bits each; see kernels/bitpack.py for the order. */
#define UNPACK(BITS)                                                                             \
  WIDE static void unpack_##BITS(const uint##BITS##_t *packed, unsigned width,                   \
                                 uint##BITS##_t *out) {                                          \
    enum { LANES = 1024 / BITS };                                                                \
    const uint##BITS##_t mask =                                                                  \
        (uint##BITS##_t)(width == BITS ? ~(uint64_t)0 : ((uint64_t)1 << width) - 1);             \
    for (unsigned row = 0; row < BITS; row++) {                                                  \
      const unsigned bit = row * width, word = bit / BITS, shift = bit % BITS;                   \
      uint##BITS##_t *to = out + PACKED_ORDER[row / 8] * 16 + (row % 8) * 128;                   \
      const uint##BITS##_t *low = packed + (size_t)word * LANES;                                 \
      if (shift + width <= BITS) {                                                               \
        for (unsigned lane = 0; lane < LANES; lane++)                                            \
          to[lane] = (uint##BITS##_t)(low[lane] >> shift) & mask;                                \
      } else {                                                                                   \
        const uint##BITS##_t *high = low + LANES;                                                \
        const unsigned back = BITS - shift;                                                      \
        for (unsigned lane = 0; lane < LANES; lane++)                                            \
          to[lane] = (uint##BITS##_t)((low[lane] >> shift) | (high[lane] << back)) & mask;       \
      }                                                                                          \
    }                                                                                            \
  }

UNPACK(8)
UNPACK(16)
UNPACK(32)
UNPACK(64)

/* Packed words may start at any byte; the loops above want them aligned. A large result is put
 * together block by block in the cache, as the loops jump around in it. */
#define UNPACK_BLOCKS(BITS)                                                                      \
  case BITS:                                                                                     \
    for (int64_t i = 0; i < blocks; i++) {                                                       \
      uint##BITS##_t *end = (uint##BITS##_t *)out + i * 1024;                                    \
      uint##BITS##_t *to = is_large ? (uint##BITS##_t *)block : end;                             \
      const unsigned width = (unsigned)widths[i];                                                \
      const uint8_t *from = data + starts[i];                                                    \
      if (width == 0) {                                                                          \
        memset(to, 0, 1024 * (BITS / 8));                                                        \
      } else if ((uintptr_t)from % (BITS / 8)) {                                                 \
        memcpy(scratch, from, (size_t)width * 128);                                              \
        unpack_##BITS((const uint##BITS##_t *)scratch, width, to);                               \
      } else {                                                                                   \
        unpack_##BITS((const uint##BITS##_t *)from, width, to);                                  \
      }                                                                                          \
      if (is_large) stream_copy((uint8_t *)end, (const uint8_t *)to, 1024 * (BITS / 8));         \
    }                                                                                            \
    break;

void lt_unpack(const uint8_t *data, const int64_t *starts, const int64_t *widths, int64_t blocks,
               int64_t bits, void *out) {
  uint64_t scratch[1024], block[1024];
  const int is_large = blocks * 128 * bits >= STREAM_FROM_BYTES;
  switch (bits) {
    UNPACK_BLOCKS(8)
    UNPACK_BLOCKS(16)
    UNPACK_BLOCKS(32)
    UNPACK_BLOCKS(64)
  }
  if (is_large) stream_end();
}

/* Blocks that have their width in front of them, as a word of `bits` bits. `counts` says how many
 * values of each block count; they are written one behind the other, `room` of them altogether.
 * Checks everything itself. Returns 0, -1 for a block without a width or with too many values, -2
 * for a width above `bits`, -3 for another size than the width asks for, -4 for a block outside
 * the `length` bytes of data, and -5 when the values are more or fewer than `room`. */
#define UNPACK_INLINE(BITS)                                                                      \
  case BITS: {                                                                                   \
    uint##BITS##_t *to = (uint##BITS##_t *)block;                                                \
    if (!is_large && count == 1024) to = (uint##BITS##_t *)out + done;                           \
    if (width == 0) {                                                                            \
      memset(to, 0, 1024 * (BITS / 8));                                                          \
    } else if ((uintptr_t)from % (BITS / 8)) {                                                   \
      memcpy(scratch, from, (size_t)width * 128);                                                \
      unpack_##BITS((const uint##BITS##_t *)scratch, (unsigned)width, to);                       \
    } else {                                                                                     \
      unpack_##BITS((const uint##BITS##_t *)from, (unsigned)width, to);                          \
    }                                                                                            \
    break;                                                                                       \
  }

int64_t lt_unpack_inline(const uint8_t *data, int64_t length, const int64_t *starts,
                         const int64_t *sizes, const int64_t *counts, int64_t blocks, int64_t bits,
                         uint8_t *out, int64_t room) {
  uint64_t scratch[1024], block[1024];
  const int64_t word = bits / 8;
  const int is_large = room * word >= STREAM_FROM_BYTES;
  int64_t done = 0;
  for (int64_t i = 0; i < blocks; i++) {
    const int64_t start = starts[i], size = sizes[i], count = counts[i];
    uint64_t width = 0;
    if (size < word || count < 0 || count > 1024) return -1;
    if (start < 0 || size > length || start > length - size) return -4;
    memcpy(&width, data + start, (size_t)word);
    if (width > (uint64_t)bits) return -2;
    if (size != word + 128 * (int64_t)width) return -3;
    if (count > room - done) return -5;
    const uint8_t *from = data + start + word;
    switch (bits) {
      UNPACK_INLINE(8)
      UNPACK_INLINE(16)
      UNPACK_INLINE(32)
      UNPACK_INLINE(64)
    }
    uint8_t *end = out + done * word;
    if (is_large)
      stream_copy(end, (const uint8_t *)block, (size_t)(count * word));
    else if (count != 1024)
      memcpy(end, block, (size_t)(count * word));
    done += count;
  }
  if (is_large) stream_end();
  return done == room ? 0 : -5;
}

/* Levels of chunks, packed out of line: whole blocks, then a tail that is raw or one more block.
 * Returns 0, or -1 when a piece has another size than its levels ask for. */
int64_t lt_levels(const uint8_t *data, const int64_t *starts, const int64_t *sizes,
                  const int64_t *counts, int64_t pieces, int64_t width, uint16_t *out) {
  uint16_t scratch[1024], block[1024];
  const int64_t packed = 128 * width;
  for (int64_t i = 0; i < pieces; i++) {
    const uint8_t *from = data + starts[i];
    const int64_t whole = counts[i] / 1024, tail = counts[i] % 1024;
    const int64_t rest = sizes[i] - whole * packed;
    if (rest != tail * 2 && rest != packed) return -1;
    for (int64_t b = 0; b < whole; b++, from += packed, out += 1024) {
      memcpy(scratch, from, (size_t)packed);
      unpack_16(scratch, (unsigned)width, out);
    }
    if (rest == tail * 2) {
      memcpy(out, from, (size_t)rest);
    } else {
      memcpy(scratch, from, (size_t)packed);
      unpack_16(scratch, (unsigned)width, block);
      memcpy(out, block, (size_t)tail * 2);
    }
    out += tail;
  }
  return 0;
}

/* Pieces of one buffer, one behind the other. */
void lt_join(const uint8_t *data, const int64_t *starts, const int64_t *sizes, int64_t pieces,
             uint8_t *out) {
  int64_t total = 0;
  for (int64_t i = 0; i < pieces; i++) total += sizes[i];
  const int is_large = total >= STREAM_FROM_BYTES;
  for (int64_t i = 0; i < pieces; i++) {
    if (is_large)
      stream_copy(out, data + starts[i], (size_t)sizes[i]);
    else
      memcpy(out, data + starts[i], (size_t)sizes[i]);
    out += sizes[i];
  }
  if (is_large) stream_end();
}

/* FSST. `symbols` holds 256 symbols of 8 bytes, `lengths` their sizes, 0 where there is none; code
 * 255 escapes. `out` has 8 bytes of room beyond 8 times the codes. Returns the bytes written, -1
 * for a code without a symbol, -2 for an escape at the end of a value. */
int64_t lt_fsst_decode(const uint64_t *symbols, const uint8_t *lengths, const uint8_t *codes,
                       const int64_t *offsets, int64_t values, uint8_t *out,
                       int64_t *out_offsets) {
  uint8_t *to = out;
  out_offsets[0] = 0;
  for (int64_t i = 0; i < values; i++) {
    const uint8_t *from = codes + offsets[i], *end = codes + offsets[i + 1];
    while (from < end) {
      const uint8_t code = *from++;
      if (code == 255) {
        if (from == end) return -2;
        *to++ = *from++;
      } else {
        if (lengths[code] == 0) return -1;
        memcpy(to, &symbols[code], 8);
        to += lengths[code];
      }
    }
    out_offsets[i + 1] = to - out;
  }
  return to - out;
}

/* One list layer of a page: see repdef.py. Writes the offsets and the validity of the lists, and
 * the levels of the entries that start one, their repetition one lower. Returns the number of
 * lists in the low and of kept entries in the high position of `counts`, and whether any is null. */
int64_t lt_lists(const uint16_t *rep, const uint16_t *def, int64_t entries, const int64_t *bounds,
                 int64_t *offsets, uint8_t *valid, uint16_t *rep_out, uint16_t *def_out,
                 int64_t *counts) {
  const int64_t null = bounds[0], empty = bounds[1], upper = bounds[2], most = bounds[3];
  int64_t children = 0, lists = 0, kept = 0, nulls = 0;
  for (int64_t i = 0; i < entries; i++) {
    const int64_t level = def ? def[i] : 0;
    if (rep[i] == 0) {
      children++;
      continue;
    }
    rep_out[kept] = (uint16_t)(rep[i] - 1);
    if (def) def_out[kept] = (uint16_t)level;
    kept++;
    if (level > most) continue;
    offsets[lists] = children;
    if (level == null || level > upper) {
      valid[lists] = 0;
      nulls++;
    } else {
      valid[lists] = 1;
      if (level != empty) children++;
    }
    lists++;
  }
  offsets[lists] = children;
  counts[0] = lists;
  counts[1] = kept;
  return nulls;
}
