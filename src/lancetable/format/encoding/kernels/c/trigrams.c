/* Sequences of three letters or digits in texts; see kernels/trigrams.py. */

#include <stdint.h>

/* Writes each token of each text once, with the number of the text; `codes` are the digits that
 * characters stand for, 0 for those between tokens. `seen` has a bit for each token, all of them 0
 * before and after. Returns how many there are, at most one for each byte. */
int64_t lt_trigrams(const uint8_t *data, const int64_t *edges, int64_t count, const uint8_t *codes,
                    uint64_t base, uint64_t *seen, uint32_t *tokens, uint32_t *texts) {
  int64_t total = 0;
  for (int64_t text = 0; text < count; text++) {
    const int64_t first = total;
    uint32_t before = 0, last = 0;
    for (int64_t i = edges[text]; i < edges[text + 1]; i++) {
      const uint32_t code = codes[data[i]];
      if (before && last && code) {
        const uint32_t token = (uint32_t)((before * base + last) * base + code);
        const uint64_t bit = (uint64_t)1 << (token & 63);
        tokens[total] = token;
        texts[total] = (uint32_t)text;
        total += !(seen[token >> 6] & bit);
        seen[token >> 6] |= bit;
      }
      before = last;
      last = code;
    }
    for (int64_t i = first; i < total; i++) seen[tokens[i] >> 6] = 0;
  }
  return total;
}
