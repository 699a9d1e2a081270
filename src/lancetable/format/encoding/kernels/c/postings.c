/* Documents, frequencies and positions of a token in a full-text index; see kernels/postings.py.
 *
 * Every function checks the bytes it reads and returns a negative number when they are damaged. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MOST_LANES = 8, LANE_VALUES = 32 };

typedef struct {
  const uint8_t *at, *end;
} input_t;

static int take_byte(input_t *in, uint32_t *value) {
  if (in->at >= in->end) return 0;
  *value = *in->at++;
  return 1;
}

static int take_word(input_t *in, uint32_t *value) {
  if (in->end - in->at < 4) return 0;
  memcpy(value, in->at, 4);
  in->at += 4;
  return 1;
}

static int take_varint(input_t *in, uint32_t *value) {
  uint64_t sum = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (in->at >= in->end) return 0;
    const uint8_t byte = *in->at++;
    sum |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) {
      *value = (uint32_t)sum;
      return sum >> 32 == 0;
    }
  }
  return 0;
}

/* 32 values a lane, `bits` of each; value k is in lane k % lanes, and the words of the lanes take
 * turns. */
static int unpack(input_t *in, int64_t lanes, uint32_t bits, uint32_t *out) {
  if (bits > 32 || in->end - in->at < (ptrdiff_t)(4 * lanes * bits)) return 0;
  const uint64_t mask = ((uint64_t)1 << bits) - 1;
  for (int64_t lane = 0; lane < lanes; lane++) {
    const uint8_t *word = in->at + 4 * lane;
    uint64_t held = 0;
    uint32_t left = 0;
    for (int64_t slot = 0; slot < LANE_VALUES; slot++) {
      if (left < bits) {
        uint32_t next;
        memcpy(&next, word, 4);
        word += 4 * lanes;
        held |= (uint64_t)next << left;
        left += 32;
      }
      out[slot * lanes + lane] = (uint32_t)(held & mask);
      held >>= bits;
      left -= bits;
    }
  }
  in->at += 4 * lanes * bits;
  return 1;
}

/* Frequencies of a block of 256: low bits packed, and the high bits of a few behind them. */
static int patched(input_t *in, uint32_t *frequencies) {
  uint32_t bits, count;
  if (!take_byte(in, &bits) || !take_byte(in, &count)) return 0;
  if (!unpack(in, MOST_LANES, bits, frequencies)) return 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t place, high;
    if (!take_byte(in, &place) || !take_varint(in, &high) || bits > 31) return 0;
    frequencies[place] |= high << bits;
  }
  return 1;
}

static int whole_block(input_t *in, int64_t size, uint32_t *documents, uint32_t *frequencies) {
  const int64_t lanes = size / LANE_VALUES;
  uint32_t bits;
  if (!take_word(in, documents)) return 0;
  const uint32_t first = documents[0];
  if (!take_byte(in, &bits) || !unpack(in, lanes, bits, documents)) return 0;
  documents[0] = first;
  if (lanes == MOST_LANES) return patched(in, frequencies);
  return take_byte(in, &bits) && unpack(in, lanes, bits, frequencies);
}

static int last_block(input_t *in, int64_t count, int is_plain, uint32_t *documents,
                      uint32_t *frequencies) {
  for (int64_t i = 0; i < count; i++)
    if (!(is_plain ? take_word : take_varint)(in, documents + i)) return 0;
  for (int64_t i = 0; i < count; i++)
    if (!(is_plain ? take_word : take_varint)(in, frequencies + i)) return 0;
  return 1;
}

/* Decodes the blocks of a token: block i is data[edges[i]:edges[i + 1]]. `size` is 128 or 256, the
 * documents of a block; `plain_tail` is set when the last block holds words. */
int64_t lt_postings(const uint8_t *data, const int64_t *edges, int64_t count, int64_t size,
                    int64_t plain_tail, int64_t all_documents, uint32_t *documents,
                    uint32_t *frequencies) {
  int64_t previous = -1;
  for (int64_t first = 0, block = 0; first < count; first += size, block++) {
    input_t in = {data + edges[block], data + edges[block + 1]};
    const int64_t here = count - first < size ? count - first : size;
    const int is_plain = here < size && plain_tail;
    uint32_t score, *ids = documents + first;
    if (size == 128 && !take_word(&in, &score)) return -1;
    if (here == size ? !whole_block(&in, size, ids, frequencies + first)
                     : !last_block(&in, here, is_plain, ids, frequencies + first))
      return -1;
    int64_t id = 0;
    for (int64_t i = 0; i < here; i++) {
      id = is_plain ? ids[i] : id + ids[i];
      if (id <= previous || id >= all_documents || !frequencies[first + i]) return -1;
      previous = id;
      ids[i] = (uint32_t)id;
    }
  }
  return 0;
}

/* Positions of documents from differences; those of each document begin with a position. */
static int64_t add_up(const uint32_t *frequencies, int64_t documents, uint32_t *positions) {
  for (int64_t i = 0; i < documents; i++) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < frequencies[i]; k++) {
      sum += *positions;
      if (sum >> 32) return -1;
      *positions++ = (uint32_t)sum;
    }
  }
  return 0;
}

/* Decodes the positions of a token from one stream; the part of block i is at
 * data[edges[i]:edges[i + 1]]. */
int64_t lt_positions(const uint8_t *data, const int64_t *edges, int64_t documents, int64_t size,
                     const uint32_t *frequencies, uint32_t *positions) {
  for (int64_t first = 0, block = 0; first < documents; first += size, block++) {
    input_t in = {data + edges[block], data + edges[block + 1]};
    const int64_t here = documents - first < size ? documents - first : size;
    int64_t left = 0;
    uint32_t *to = positions;
    for (int64_t i = 0; i < here; i++) left += frequencies[first + i];
    for (; left >= 128; left -= 128, to += 128) {
      uint32_t bits;
      if (!take_byte(&in, &bits) || !unpack(&in, 4, bits, to)) return -1;
    }
    for (; left > 0; left--)
      if (!take_varint(&in, to++)) return -1;
    if (add_up(frequencies + first, here, positions) < 0) return -1;
    positions = to;
  }
  return 0;
}

/* Decodes the blocks of many tokens, one behind the other; `counts` has the documents of each. */
int64_t lt_posting_lists(const uint8_t *data, const int64_t *edges, const int64_t *counts,
                         int64_t tokens, int64_t size, int64_t plain_tail, int64_t all_documents,
                         uint32_t *documents, uint32_t *frequencies) {
  for (int64_t i = 0; i < tokens; i++) {
    if (lt_postings(data, edges, counts[i], size, plain_tail, all_documents, documents,
                    frequencies) < 0)
      return -1;
    edges += (counts[i] + size - 1) / size;
    documents += counts[i];
    frequencies += counts[i];
  }
  return 0;
}

/* Decodes the positions of many tokens from their streams, one behind the other. */
int64_t lt_position_lists(const uint8_t *data, const int64_t *edges, const int64_t *counts,
                          int64_t tokens, int64_t size, const uint32_t *frequencies,
                          uint32_t *positions) {
  for (int64_t i = 0; i < tokens; i++) {
    if (lt_positions(data, edges, counts[i], size, frequencies, positions) < 0) return -1;
    edges += (counts[i] + size - 1) / size;
    for (int64_t k = 0; k < counts[i]; k++) positions += *frequencies++;
  }
  return 0;
}

/* Decodes the positions of a token from items of format 1: those of document i are items
 * firsts[i] to firsts[i + 1], of which item k is data[edges[k]:edges[k + 1]]. */
int64_t lt_position_items(const uint8_t *data, const int64_t *edges, const int64_t *firsts,
                          int64_t documents, const uint32_t *frequencies, uint32_t *positions) {
  for (int64_t i = 0; i < documents; i++) {
    const int64_t count = frequencies[i], blocks = (count + 127) / 128;
    uint32_t stored;
    if (firsts[i + 1] - firsts[i] != blocks + 1) return -1;
    const int64_t *edge = edges + firsts[i];
    input_t head = {data + edge[0], data + edge[1]};
    if (!take_word(&head, &stored) || stored != count) return -1;
    for (int64_t block = 0; block < blocks; block++) {
      input_t in = {data + edge[block + 1], data + edge[block + 2]};
      const int64_t here = count - 128 * block < 128 ? count - 128 * block : 128;
      if (here == 128) {
        uint32_t first, bits;
        if (!take_word(&in, &first) || !take_byte(&in, &bits)) return -1;
        if (!unpack(&in, 4, bits, positions)) return -1;
        positions[0] = first;
        const uint32_t one = 128;
        if (add_up(&one, 1, positions) < 0) return -1;
      } else {
        for (int64_t k = 0; k < here; k++)
          if (!take_word(&in, positions + k)) return -1;
      }
      positions += here;
    }
  }
  return 0;
}

/* The largest share tf / (tf + norm) of each `size` documents of a token. */
void lt_block_maxima(const uint32_t *documents, const uint32_t *frequencies, int64_t count,
                     const float *norms, int64_t size, double *maxima) {
  for (int64_t first = 0; first < count; first += size) {
    const int64_t stop = count - first < size ? count : first + size;
    double best = 0;
    for (int64_t i = first; i < stop; i++) {
      const double frequency = frequencies[i];
      const double share = frequency / (frequency + norms[documents[i]]);
      best = share > best ? share : best;
    }
    *maxima++ = best;
  }
}
