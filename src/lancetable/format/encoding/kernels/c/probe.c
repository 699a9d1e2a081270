/* Keys of a merge: which of many numbers may be among others; see kernels/probing.py. */

#include <stdint.h>

/* Marks the low digits of codes; `marks` has `mask` + 1 bits. */
void lt_mark(const uint64_t *codes, int64_t count, uint8_t *marks, uint64_t mask) {
  for (int64_t i = 0; i < count; i++) {
    const uint64_t low = codes[i] & mask;
    marks[low >> 3] |= (uint8_t)(1 << (low & 7));
  }
}

/* Writes the places of codes whose low digits are marked; `places` has room for all codes and one
 * more. Returns how many there are. No branches: which codes are marked cannot be foreseen. */
int64_t lt_probe(const uint64_t *codes, int64_t count, const uint8_t *marks, uint64_t mask,
                 int64_t *places) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; i++) {
    places[found] = i;
    const uint64_t low = codes[i] & mask;
    found += marks[low >> 3] >> (low & 7) & 1;
  }
  return found;
}

/* Sets the bits of hashed keys in a filter of blocks of eight words: the high digits of a hash
 * give the block, the low ones times a salt the bit of each word. */
void lt_mark_keys(const uint64_t *hashes, int64_t count, const uint32_t *salts, uint32_t *words,
                  uint64_t blocks) {
  for (int64_t i = 0; i < count; i++) {
    uint32_t *block = words + 8 * ((hashes[i] >> 32) * blocks >> 32);
    const uint32_t low = (uint32_t)hashes[i];
    for (int word = 0; word < 8; word++) block[word] |= (uint32_t)1 << (low * salts[word] >> 27);
  }
}
