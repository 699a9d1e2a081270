/* Words of texts: where they are, and a number for each distinct one; see kernels/words.py. */

#include <stdint.h>
#include <string.h>

#define LAST_POINT 0x10FFFFu

static inline int has(const uint8_t *classes, uint32_t point) {
  return classes[point >> 3] >> (point & 7) & 1;
}

/* Reads the character at `at`, which is not ASCII; returns its size. What is not UTF-8 counts as
 * the character 0 of one byte. */
static inline int64_t read_point(const uint8_t *at, int64_t left, uint32_t *point) {
  const uint8_t first = at[0];
  const int64_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  *point = 0;
  if (first < 0xC2 || size > left) return 1;
  uint32_t value = first & (0xFFu >> (size + 1));
  for (int64_t i = 1; i < size; i++) {
    if ((at[i] & 0xC0) != 0x80) return 1;
    value = value << 6 | (at[i] & 0x3Fu);
  }
  if (value <= LAST_POINT) *point = value;
  return size;
}

/* Writes where the words of texts are: the longest runs of characters of a class, which has a bit
 * for each character. Longer words than `most` bytes are left out but count in the positions. There
 * is room for half as many words as bytes and one more for each text. Returns how many there are. */
int64_t lt_split_words(const uint8_t *data, const int64_t *offsets, int64_t texts,
                       const uint8_t *classes, int64_t most, int64_t *starts, int32_t *sizes,
                       int32_t *documents, int32_t *positions) {
  uint8_t ascii[128];
  for (uint32_t i = 0; i < 128; i++) ascii[i] = (uint8_t)has(classes, i);
  int64_t count = 0;
  for (int64_t text = 0; text < texts; text++) {
    const int64_t end = offsets[text + 1];
    int64_t at = offsets[text], start = -1;
    int32_t position = 0;
    while (at <= end) {
      int is_inside = 0;
      int64_t next = at + 1;
      if (at < end) {
        if (data[at] < 128) {
          is_inside = ascii[data[at]];
        } else {
          uint32_t point;
          next = at + read_point(data + at, end - at, &point);
          is_inside = has(classes, point);
        }
      }
      if (is_inside) {
        if (start < 0) start = at;
      } else if (start >= 0) {
        if (at - start <= most) {
          starts[count] = start;
          sizes[count] = (int32_t)(at - start);
          documents[count] = (int32_t)text;
          positions[count] = position;
          count++;
        }
        position++;
        start = -1;
      }
      at = next;
    }
  }
  return count;
}

static inline uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

static uint64_t hash_of(const uint8_t *word, int64_t size) {
  uint64_t hash = (uint64_t)size, last = 0;
  for (; size >= 8; size -= 8, word += 8) {
    memcpy(&last, word, 8);
    hash = mix(hash, last);
  }
  last = 0;
  for (int64_t i = 0; i < size; i++) last = last << 8 | word[i];
  hash = mix(hash, last);
  return hash ^ hash >> 32;
}

/* Gives each word the number of the first equal one, new words the next free numbers. `slots` is a
 * table by hash, of 1 << `digits` slots: the upper half of the hash, and the number plus 1. The
 * bytes of word i are known[edges[i] .. edges[i + 1]], for which there is room. `state` has the
 * number of distinct words. Stops before half of the slots are taken or `room` distinct words are
 * there; returns how many words have a number. */
int64_t lt_number_words(const uint8_t *data, const int64_t *starts, const int32_t *sizes,
                        int64_t words, uint64_t *slots, int64_t digits, uint8_t *known,
                        int64_t *edges, int64_t room, int64_t *state, int32_t *numbers) {
  const uint64_t mask = ((uint64_t)1 << digits) - 1;
  const int64_t most = (int64_t)(mask / 2) < room ? (int64_t)(mask / 2) : room;
  int64_t count = state[0], i = 0;
  for (; i < words && count < most; i++) {
    const uint8_t *word = data + starts[i];
    const int64_t size = sizes[i];
    const uint64_t hash = hash_of(word, size), upper = hash & 0xFFFFFFFF00000000u;
    for (uint64_t place = hash & mask;; place = (place + 1) & mask) {
      const uint64_t slot = slots[place];
      if (slot == 0) {
        memcpy(known + edges[count], word, (size_t)size);
        edges[count + 1] = edges[count] + size;
        numbers[i] = (int32_t)count++;
        slots[place] = upper | (uint64_t)count;
        break;
      }
      if ((slot & 0xFFFFFFFF00000000u) != upper) continue;
      const int64_t number = (int64_t)(slot & 0xFFFFFFFFu) - 1;
      if (edges[number + 1] - edges[number] == size &&
          memcmp(known + edges[number], word, (size_t)size) == 0) {
        numbers[i] = (int32_t)number;
        break;
      }
    }
  }
  state[0] = count;
  return i;
}

/* Enters the numbers of distinct words into an empty table of 1 << `digits` slots. */
void lt_enter_words(const uint8_t *known, const int64_t *edges, int64_t count, uint64_t *slots,
                    int64_t digits) {
  const uint64_t mask = ((uint64_t)1 << digits) - 1;
  for (int64_t i = 0; i < count; i++) {
    const uint64_t hash = hash_of(known + edges[i], edges[i + 1] - edges[i]);
    uint64_t place = hash & mask;
    while (slots[place] != 0) place = (place + 1) & mask;
    slots[place] = (hash & 0xFFFFFFFF00000000u) | (uint64_t)(i + 1);
  }
}
