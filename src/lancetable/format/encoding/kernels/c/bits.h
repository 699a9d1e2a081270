/* Bits: where packed values stand in their blocks, and bitmaps. */

#ifndef LANCETABLE_BITS_H
#define LANCETABLE_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The order of the eighths of a packed block of 1024 values; see kernels/bitpack.py. */
static const uint8_t PACKED_ORDER[8] = {0, 4, 2, 6, 1, 5, 3, 7};

/* The first word that value `index` of a packed block of 1024 has bits in: its place in bytes, and
 * where its bits begin in it. Words have 1 << `log` bits. */
static inline int64_t packed_place(int log, int64_t width, int64_t index, int64_t *shift) {
  const int64_t lanes = 1024 >> log, column = index & 127, lane = column & (lanes - 1);
  const int64_t bit = (PACKED_ORDER[(column - lane) >> 4] * 8 + (index >> 7)) * width;
  *shift = bit & (((int64_t)1 << log) - 1);
  return ((bit >> log) * lanes + lane) << (log - 3);
}

/* One value of a packed block: `width` bits of words that have `bits`. */
static inline uint64_t unpacked(const uint8_t *block, int64_t bits, int64_t width, int64_t index) {
  const int log = __builtin_ctzll((uint64_t)bits);
  const size_t bytes = (size_t)bits / 8;
  uint64_t low = 0, high = 0;
  int64_t shift;
  if (width == 0) return 0;
  const uint8_t *word = block + packed_place(log, width, index, &shift);
  memcpy(&low, word, bytes);
  low >>= shift;
  if (shift + width > bits) {
    memcpy(&high, word + 128, bytes); /* a word of every lane lies between */
    low |= high << (bits - shift);
  }
  return width == 64 ? low : low & (((uint64_t)1 << width) - 1);
}

static inline unsigned bit_at(const uint8_t *bits, int64_t index) {
  return (unsigned)bits[index >> 3] >> (index & 7) & 1u;
}

/* Copies bits from any place to any other. */
static inline void copy_bits(uint8_t *out, int64_t to, const uint8_t *data, int64_t from,
                             int64_t count) {
  for (; count > 0 && to % 8; count--, to++, from++) {
    const uint8_t bit = (uint8_t)(1 << to % 8);
    out[to / 8] = bit_at(data, from) ? out[to / 8] | bit : out[to / 8] & (uint8_t)~bit;
  }
  out += to / 8;
  data += from / 8;
  const unsigned shift = (unsigned)(from % 8);
  const int64_t whole = count / 8;
  if (shift == 0)
    memcpy(out, data, (size_t)whole);
  else
    for (int64_t i = 0; i < whole; i++)
      out[i] = (uint8_t)(data[i] >> shift | data[i + 1] << (8 - shift));
  if (count % 8) {
    uint8_t last = 0;
    for (int64_t i = 0; i < count % 8; i++)
      last |= (uint8_t)(bit_at(data, shift + whole * 8 + i) << i);
    out[whole] = last;
  }
}

/* Sets bits from any place on, and what is left of the last byte. */
static inline void set_bits(uint8_t *out, int64_t to, int64_t count) {
  for (; count > 0 && to % 8; count--, to++) out[to / 8] |= (uint8_t)(1 << to % 8);
  memset(out + to / 8, 255, (size_t)((count + 7) / 8));
}

/* Writes a bit for every level, set where it is 0; returns how many are not. The bits may take the
 * place of the levels. */
static inline int64_t mark_zeros(const uint16_t *levels, int64_t count, uint8_t *bits) {
  int64_t others = 0;
  for (int64_t i = 0; i < count; i++) others += levels[i] != 0;
  const int64_t whole = count / 8;
  for (int64_t i = 0; i < whole; i++, levels += 8)
    bits[i] = (uint8_t)((levels[0] == 0) | (levels[1] == 0) << 1 | (levels[2] == 0) << 2 |
                        (levels[3] == 0) << 3 | (levels[4] == 0) << 4 | (levels[5] == 0) << 5 |
                        (levels[6] == 0) << 6 | (levels[7] == 0) << 7);
  if (count % 8) {
    uint8_t last = 0;
    for (int64_t i = 0; i < count % 8; i++) last |= (uint8_t)((levels[i] == 0) << i);
    bits[whole] = last;
  }
  return others;
}

#endif
