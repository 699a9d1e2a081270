/* Compiled kernels of the writing side: values into packed blocks, chunks and codes.
 *
 * Callers have checked that every range lies inside its buffer.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const uint8_t ORDER[8] = {0, 4, 2, 6, 1, 5, 3, 7};

/* A block of 1024 values of BITS bits in `width` bits each; see kernels/bitpack.py for the order. */
#define PACK(BITS)                                                                               \
  static void pack_##BITS(const uint##BITS##_t *values, unsigned width, uint##BITS##_t *out) {   \
    enum { LANES = 1024 / BITS };                                                                \
    memset(out, 0, (size_t)width * 128);                                                         \
    for (unsigned row = 0; row < BITS; row++) {                                                  \
      const unsigned bit = row * width, word = bit / BITS, shift = bit % BITS;                   \
      const uint##BITS##_t *from = values + ORDER[row / 8] * 16 + (row % 8) * 128;               \
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

/* FSST the other way round, with the tables of kernels/fsst_encode.py: an entry is a code, from 256
 * on a literal, below a length at bit 12. Values are cut every 64 bytes, as the NumPy kernel does.
 * `out` has room for twice the text. Returns the bytes written. */
int64_t lt_fsst_encode(const uint64_t *slot_words, const uint64_t *slot_masks,
                       const uint16_t *slot_entries, const uint16_t *pairs,
                       const uint16_t *singles, const uint8_t *data, int64_t size,
                       const int64_t *offsets, int64_t values, uint8_t *out,
                       int64_t *out_offsets) {
  static const uint64_t MASKS[9] = {0,
                                    0xff,
                                    0xffff,
                                    0xffffff,
                                    0xffffffff,
                                    0xffffffffff,
                                    0xffffffffffff,
                                    0xffffffffffffff,
                                    0xffffffffffffffff};
  uint8_t *to = out;
  out_offsets[0] = 0;
  for (int64_t i = 0; i < values; i++) {
    const int64_t end = offsets[i + 1];
    int64_t place = offsets[i], stop = place;
    while (place < end) {
      if (place == stop) stop = place + 64 < end ? place + 64 : end;
      const int64_t left = stop - place;
      uint64_t word = 0;
      if (size - place >= 8)
        memcpy(&word, data + place, 8);
      else
        memcpy(&word, data + place, (size_t)(size - place));
      word &= MASKS[left < 8 ? left : 8];
      uint64_t hashed = (word & 0xffffff) * 2971215073u;
      hashed ^= hashed >> 15;
      const size_t slot = (size_t)(hashed & 0xfff);
      uint16_t entry = (word & slot_masks[slot]) == slot_words[slot] ? slot_entries[slot]
                                                                     : pairs[word & 0xffff];
      if ((entry >> 12) > left) entry = singles[word & 0xff];
      if (entry & 256) {
        *to++ = 255;
        *to++ = (uint8_t)word;
        place++;
      } else {
        *to++ = (uint8_t)entry;
        place += entry >> 12;
      }
    }
    out_offsets[i + 1] = to - out;
  }
  return to - out;
}
