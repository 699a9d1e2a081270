/* XXH64 of byte strings; see kernels/xxhash.py. */

#include <stdint.h>
#include <string.h>

static const uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu, P3 = 0x165667B19E3779F9u,
                      P4 = 0x85EBCA77C2B2AE63u, P5 = 0x27D4EB2F165667C5u;

static inline uint64_t turned(uint64_t value, int bits) {
  return value << bits | value >> (64 - bits);
}

static inline uint64_t word_at(const uint8_t *data) {
  uint64_t word;
  memcpy(&word, data, sizeof word);
  return word;
}

static inline uint64_t mixed(uint64_t lane, uint64_t word) {
  return turned(lane + word * P2, 31) * P1;
}

static uint64_t stripes(const uint8_t *data, int64_t size, uint64_t seed) {
  uint64_t lanes[4] = {seed + P1 + P2, seed + P2, seed, seed - P1};
  for (; size >= 32; size -= 32, data += 32)
    for (int i = 0; i < 4; i++) lanes[i] = mixed(lanes[i], word_at(data + 8 * i));
  uint64_t hash =
      turned(lanes[0], 1) + turned(lanes[1], 7) + turned(lanes[2], 12) + turned(lanes[3], 18);
  for (int i = 0; i < 4; i++) hash = (hash ^ mixed(0, lanes[i])) * P1 + P4;
  return hash;
}

static inline uint64_t hash_of(const uint8_t *data, int64_t size, uint64_t seed) {
  uint64_t hash = (size >= 32 ? stripes(data, size, seed) : seed + P5) + (uint64_t)size;
  data += size / 32 * 32;
  for (size %= 32; size >= 8; size -= 8, data += 8)
    hash = turned(hash ^ mixed(0, word_at(data)), 27) * P1 + P4;
  if (size >= 4) {
    uint32_t half;
    memcpy(&half, data, sizeof half);
    hash = turned(hash ^ half * P1, 23) * P2 + P3;
    data += 4;
    size -= 4;
  }
  for (; size > 0; size--) hash = turned(hash ^ *data++ * P5, 11) * P1;
  hash = (hash ^ hash >> 33) * P2;
  hash = (hash ^ hash >> 29) * P3;
  return hash ^ hash >> 32;
}

/* Hashes strings of one width that stand side by side. */
void lt_hash_wide(const uint8_t *data, int64_t width, int64_t count, uint64_t seed,
                  uint64_t *hashes) {
  if (width == 8) { /* by far the most, and the compiler leaves out what does not concern them */
    for (int64_t i = 0; i < count; i++) hashes[i] = hash_of(data + 8 * i, 8, seed);
  } else {
    for (int64_t i = 0; i < count; i++) hashes[i] = hash_of(data + width * i, width, seed);
  }
}

/* Hashes strings that stand between edges. */
void lt_hash_texts(const uint8_t *data, const int64_t *edges, int64_t count, uint64_t seed,
                   uint64_t *hashes) {
  for (int64_t i = 0; i < count; i++)
    hashes[i] = hash_of(data + edges[i], edges[i + 1] - edges[i], seed);
}
