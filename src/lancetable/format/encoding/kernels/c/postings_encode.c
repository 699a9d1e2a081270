/* Postings of a full-text index in the making: occurrences grouped by word, blocks, impacts and
 * positions; see kernels/postings_encode.py. Rooms are as large as the callers say there. */

#include <stdint.h>
#include <string.h>

enum { BLOCK = 128, LANES = 4 };

/* Groups occurrences by word: words come document by document, document i has `lengths[i]` of them.
 * `next[w]` is where those of word w start, and in the end where they stop. Positions are left out
 * when there are none. */
void lt_group_words(const int32_t *words, const int32_t *lengths, int64_t documents, int64_t first,
                    const int32_t *positions, int64_t *next, uint32_t *ids, uint32_t *places) {
  int64_t at = 0;
  for (int64_t i = 0; i < documents; i++) {
    const uint32_t id = (uint32_t)(first + i);
    for (int64_t stop = at + lengths[i]; at < stop; at++) {
      const int64_t to = next[words[at]]++;
      ids[to] = id;
      if (positions) places[to] = (uint32_t)positions[at];
    }
  }
}

/* Joins equal neighbours among the documents of each word, which are ids[edges[w]:edges[w + 1]], and
 * counts them. The edges become those of the joined documents. */
int64_t lt_join_documents(uint32_t *ids, int64_t *edges, int64_t words, uint32_t *frequencies) {
  int64_t count = 0, at = 0;
  for (int64_t word = 0; word < words; word++) {
    const int64_t stop = edges[word + 1], first = count;
    for (; at < stop; at++) {
      if (count > first && ids[count - 1] == ids[at]) {
        frequencies[count - 1]++;
      } else {
        ids[count] = ids[at];
        frequencies[count++] = 1;
      }
    }
    edges[word + 1] = count;
  }
  return count;
}

static uint8_t *put_varint(uint8_t *to, uint32_t value) {
  for (; value > 127; value >>= 7) *to++ = (uint8_t)(value | 128);
  *to++ = (uint8_t)value;
  return to;
}

static uint8_t *put_word(uint8_t *to, uint32_t value) {
  memcpy(to, &value, 4);
  return to + 4;
}

/* The width of 128 values, then 4 lanes of 32 values each; value k is in lane k % 4, and the words of
 * the lanes take turns. */
static uint8_t *put_packed(uint8_t *to, const uint32_t *values) {
  uint32_t all = 0;
  for (int i = 0; i < BLOCK; i++) all |= values[i];
  const int bits = all ? 32 - __builtin_clz(all) : 0;
  *to++ = (uint8_t)bits;
  for (int lane = 0; lane < LANES; lane++) {
    uint8_t *word = to + 4 * lane;
    uint64_t held = 0;
    int count = 0;
    for (int slot = 0; slot < BLOCK / LANES; slot++) {
      held |= (uint64_t)values[slot * LANES + lane] << count;
      count += bits;
      if (count >= 32) {
        put_word(word, (uint32_t)held);
        word += 4 * LANES;
        held >>= 32;
        count -= 32;
      }
    }
  }
  return to + 4 * LANES * bits;
}

static void differences(const uint32_t *values, int64_t count, uint32_t *out) {
  out[0] = 0;
  for (int64_t i = 1; i < count; i++) out[i] = values[i] - values[i - 1];
}

static uint8_t *put_tail(uint8_t *to, const uint32_t *ids, const uint32_t *frequencies,
                         int64_t count, int64_t is_plain) {
  if (is_plain) {
    memcpy(to, ids, 4 * (size_t)count);
    memcpy(to + 4 * count, frequencies, 4 * (size_t)count);
    return to + 8 * count;
  }
  to = put_varint(to, ids[0]);
  for (int64_t i = 1; i < count; i++) to = put_varint(to, ids[i] - ids[i - 1]);
  for (int64_t i = 0; i < count; i++) to = put_varint(to, frequencies[i]);
  return to;
}

/* Writes the blocks of words: those of word w have the documents ids[edges[w]:edges[w + 1]]. Block b
 * is out[ends[b - 1]:ends[b]]. `norms` has a number for each document, `weights` and `best`, the
 * largest score, one for each word. Returns how many bytes were written. */
int64_t lt_encode_blocks(const int64_t *edges, int64_t words, const uint32_t *ids,
                         const uint32_t *frequencies, const float *norms, const double *weights,
                         int64_t is_plain, uint8_t *out, int64_t *ends, float *best) {
  uint8_t *to = out;
  for (int64_t word = 0; word < words; word++) {
    best[word] = 0;
    for (int64_t first = edges[word]; first < edges[word + 1]; first += BLOCK) {
      const int64_t left = edges[word + 1] - first, count = left < BLOCK ? left : BLOCK;
      const uint32_t *of_block = ids + first, *counts = frequencies + first;
      double share = 0;
      for (int64_t i = 0; i < count; i++) {
        const double one = counts[i] / (counts[i] + (double)norms[of_block[i]]);
        share = one > share ? one : share;
      }
      const float score = (float)(weights[word] * share);
      if (score > best[word]) best[word] = score;
      memcpy(to, &score, 4);
      to += 4;
      if (count == BLOCK) {
        uint32_t steps[BLOCK];
        differences(of_block, BLOCK, steps);
        to = put_packed(put_word(to, of_block[0]), steps);
        to = put_packed(to, counts);
      } else {
        to = put_tail(to, of_block, counts, count, is_plain);
      }
      *ends++ = to - out;
    }
  }
  return to - out;
}

/* Enters a frequency and a length into the pairs that no other beats in both; frequencies ascend, and
 * so do lengths. Returns how many pairs there are. */
static int64_t enter(uint32_t *front, int64_t count, uint32_t frequency, uint32_t length) {
  int64_t place = count;
  while (place > 0 && front[2 * place - 2] >= frequency) place--;
  if (place < count && front[2 * place + 1] <= length) return count;
  const int64_t stop = place < count && front[2 * place] == frequency ? place + 1 : place;
  int64_t start = place;
  while (start > 0 && front[2 * start - 1] >= length) start--;
  memmove(front + 2 * start + 2, front + 2 * stop, 8 * (size_t)(count - stop));
  front[2 * start] = frequency;
  front[2 * start + 1] = length;
  return count - (stop - start) + 1;
}

static uint8_t *put_front(uint8_t *to, uint32_t last, const uint32_t *front, int64_t count) {
  uint32_t frequency = 0, length = 0;
  to = put_varint(put_varint(to, last), (uint32_t)count);
  for (int64_t i = 0; i < count; i++) {
    const uint32_t more = front[2 * i] - frequency - 1, longer = front[2 * i + 1] - length;
    to = put_varint(to, more << 1 | (longer != 1));
    if (longer != 1) to = put_varint(to, longer);
    frequency = front[2 * i];
    length = front[2 * i + 1];
  }
  return to;
}

/* Writes the impacts of each block of words, and then those of the whole word. `front` has room for
 * two numbers for each document of the most frequent word and of a block. */
int64_t lt_encode_impacts(const int64_t *edges, int64_t words, const uint32_t *ids,
                          const uint32_t *frequencies, const uint32_t *lengths, uint32_t *front,
                          uint8_t *out, int64_t *ends) {
  uint8_t *to = out;
  uint32_t *whole = front + 2 * (BLOCK + 1);
  for (int64_t word = 0; word < words; word++) {
    int64_t all = 0;
    const int64_t stop = edges[word + 1];
    for (int64_t first = edges[word]; first < stop; first += BLOCK) {
      const int64_t end = stop - first < BLOCK ? stop : first + BLOCK;
      int64_t count = 0;
      for (int64_t i = first; i < end; i++)
        count = enter(front, count, frequencies[i], lengths[ids[i]]);
      to = put_front(to, ids[end - 1], front, count);
      *ends++ = to - out;
      for (int64_t i = 0; i < count; i++)
        all = enter(whole, all, front[2 * i], front[2 * i + 1]);
    }
    to = put_front(to, stop > edges[word] ? ids[stop - 1] : 0, whole, all);
    *ends++ = to - out;
  }
  return to - out;
}

/* Writes the positions of words as streams of differences, in parts of 128 documents. `held` has room
 * for the positions of a part and 128 more. */
int64_t lt_encode_positions(const int64_t *edges, int64_t words, const uint32_t *frequencies,
                            const uint32_t *positions, uint32_t *held, uint8_t *out,
                            int64_t *ends) {
  uint8_t *to = out;
  for (int64_t word = 0; word < words; word++) {
    for (int64_t first = edges[word]; first < edges[word + 1]; first += BLOCK) {
      const int64_t left = edges[word + 1] - first, end = first + (left < BLOCK ? left : BLOCK);
      int64_t count = 0, at = 0;
      for (int64_t i = first; i < end; i++) {
        held[count] = positions[0];
        for (uint32_t k = 1; k < frequencies[i]; k++)
          held[count + k] = positions[k] - positions[k - 1];
        count += frequencies[i];
        positions += frequencies[i];
      }
      for (; at + BLOCK <= count; at += BLOCK) to = put_packed(to, held + at);
      for (; at < count; at++) to = put_varint(to, held[at]);
      *ends++ = to - out;
    }
  }
  return to - out;
}

/* Writes the positions of documents as items of format 1: their number, each 128, the rest. */
int64_t lt_encode_position_items(const uint32_t *frequencies, int64_t documents,
                                 const uint32_t *positions, uint8_t *out, int64_t *ends) {
  uint8_t *to = out;
  for (int64_t i = 0; i < documents; i++) {
    uint32_t left = frequencies[i], steps[BLOCK];
    to = put_word(to, left);
    *ends++ = to - out;
    for (; left >= BLOCK; left -= BLOCK, positions += BLOCK) {
      differences(positions, BLOCK, steps);
      to = put_packed(put_word(to, positions[0]), steps);
      *ends++ = to - out;
    }
    if (left) {
      memcpy(to, positions, 4 * (size_t)left);
      to += 4 * (size_t)left;
      positions += left;
      *ends++ = to - out;
    }
  }
  return to - out;
}
