/* Compiled kernels of the writing side: values into packed blocks, chunks and codes.
 *
 * Callers have checked that every range lies inside its buffer.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bits.h"

/* A block of 1024 values of BITS bits in `width` bits each; see kernels/bitpack.py for the order. */
#define PACK(BITS)                                                                               \
  static void pack_##BITS(const uint##BITS##_t *values, unsigned width, uint##BITS##_t *out) {   \
    enum { LANES = 1024 / BITS };                                                                \
    memset(out, 0, (size_t)width * 128);                                                         \
    for (unsigned row = 0; row < BITS; row++) {                                                  \
      const unsigned bit = row * width, word = bit / BITS, shift = bit % BITS;                   \
      const uint##BITS##_t *from = values + PACKED_ORDER[row / 8] * 16 + (row % 8) * 128;        \
      uint##BITS##_t *low = out + (size_t)word * LANES;                                          \
      for (unsigned lane = 0; lane < LANES; lane++)                                              \
        low[lane] |= (uint##BITS##_t)(from[lane] << shift);                                      \
      if (shift + width > BITS) {                                                                \
        uint##BITS##_t *high = low + LANES;                                                      \
        for (unsigned lane = 0; lane < LANES; lane++)                                            \
          high[lane] = (uint##BITS##_t)(from[lane] >> (BITS - shift));                           \
      }                                                                                          \
    }                                                                                            \
  }

PACK(8)
PACK(16)
PACK(32)
PACK(64)

#define PACK_BLOCKS(BITS)                                                                        \
  case BITS:                                                                                     \
    for (int64_t i = 0; i < blocks; i++)                                                         \
      if (widths[i])                                                                             \
        pack_##BITS((const uint##BITS##_t *)values + i * 1024, (unsigned)widths[i],              \
                    (uint##BITS##_t *)(out + starts[i]));                                        \
    break;

/* `out + starts[i]` is aligned for the words. */
void lt_pack(const void *values, const int64_t *starts, const int64_t *widths, int64_t blocks,
             int64_t bits, uint8_t *out) {
  switch (bits) {
    PACK_BLOCKS(8)
    PACK_BLOCKS(16)
    PACK_BLOCKS(32)
    PACK_BLOCKS(64)
  }
}

/* Pieces to their places, the rest of each room filled with zeros. */
void lt_scatter(uint8_t *out, const int64_t *places, const int64_t *rooms, const uint8_t *data,
                const int64_t *starts, const int64_t *sizes, int64_t pieces) {
  for (int64_t i = 0; i < pieces; i++) {
    memcpy(out + places[i], data + starts[i], (size_t)sizes[i]);
    memset(out + places[i] + sizes[i], 0, (size_t)(rooms[i] - sizes[i]));
  }
}

#define TEXT_EDGES(BITS)                                                                         \
  case BITS:                                                                                     \
    for (int64_t i = 0; i <= count; i++)                                                         \
      ((uint##BITS##_t *)to)[i] = (uint##BITS##_t)(offsets[i] + move);                           \
    break;

/* Chunks of text: where each value starts and the last one ends, counted from the start of the
 * chunk; the bytes; zeros up to its size. `out + starts[i]` is aligned for the edges. */
void lt_text_chunks(uint8_t *out, const int64_t *starts, const int64_t *sizes,
                    const int64_t *counts, int64_t chunks, const uint8_t *data,
                    const int64_t *offsets, int64_t bits) {
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    uint8_t *to = out + starts[chunk];
    const int64_t count = counts[chunk], head = (count + 1) * (bits / 8);
    const int64_t length = offsets[count] - offsets[0], move = head - offsets[0];
    switch (bits) {
      TEXT_EDGES(32)
      TEXT_EDGES(64)
    }
    memcpy(to + head, data + offsets[0], (size_t)length);
    memset(to + head + length, 0, (size_t)(sizes[chunk] - head - length));
    offsets += count;
  }
}
