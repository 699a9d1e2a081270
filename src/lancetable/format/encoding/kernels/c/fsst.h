/* Symbol tables for encoding with FSST; see kernels/fsst_encode.py. */

#ifndef LANCETABLE_FSST_H
#define LANCETABLE_FSST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
  SLOT_BITS = 12,
  SLOTS = 1 << SLOT_BITS,
  SEGMENT = 64,  /* no symbol reaches across such a boundary of its value */
  NOTHING = 255  /* the code that no symbol has: it escapes */
};

static const uint64_t MASKS[9] = {0,
                                  0xff,
                                  0xffff,
                                  0xffffff,
                                  0xffffffff,
                                  0xffffffffff,
                                  0xffffffffffff,
                                  0xffffffffffffff,
                                  0xffffffffffffffff};

/* A symbol table for encoding. Symbols of three and more bytes are found by the hash of their first
 * three, of which each slot has one; the others by two bytes. An entry is a code, the length of its
 * symbol at bit 8, and at bit 12 whether the byte itself follows the code, which escapes then. */
typedef struct {
  uint64_t words[256]; /* symbols, and which of their bytes count */
  uint64_t masks[256];
  uint16_t slots[SLOTS];
  uint16_t singles[256];
  uint16_t pairs[65536];
} Matcher;

static inline size_t slot_of(uint64_t word) {
  return (uint32_t)(word << 8) * 2971215073u >> (32 - SLOT_BITS);
}

static inline void fill_matcher(Matcher *matcher, const uint64_t *symbols, const uint8_t *lengths,
                         int64_t count) {
  for (int i = 0; i < SLOTS; i++) matcher->slots[i] = NOTHING;
  memset(matcher->masks, 0, sizeof matcher->masks);
  memcpy(matcher->words, symbols, (size_t)count * 8);
  for (int64_t i = 0; i < count; i++) matcher->masks[i] = MASKS[lengths[i]];
  /* Never equal to a word of which no byte is looked at. */
  matcher->words[NOTHING] = 1;
  for (int i = 0; i < 256; i++) matcher->singles[i] = (uint16_t)(1 << 12 | 1 << 8 | NOTHING);
  for (int64_t i = 0; i < count; i++)
    if (lengths[i] == 1) matcher->singles[symbols[i] & 0xff] = (uint16_t)(1 << 8 | i);
  for (int i = 0; i < 256; i++) memcpy(matcher->pairs + 256 * i, matcher->singles, 512);
  for (int64_t i = 0; i < count; i++) {
    const uint16_t entry = (uint16_t)(lengths[i] << 8 | i);
    if (lengths[i] == 2) {
      matcher->pairs[symbols[i] & 0xffff] = entry;
    } else if (lengths[i] > 2) {
      uint16_t *slot = &matcher->slots[slot_of(symbols[i])];
      if (*slot == NOTHING) *slot = entry;
    }
  }
}

static inline uint64_t load(const uint8_t *from, const uint8_t *end) {
  uint64_t word = 0;
  memcpy(&word, from, end - from >= 8 ? 8 : (size_t)(end - from));
  return word;
}

static inline int64_t length_of(unsigned entry) { return entry >> 8 & 15; }

/* The entry of the symbol that `word` starts with, of up to `left` bytes. */
static inline unsigned match(const Matcher *matcher, uint64_t word, int64_t left) {
  const unsigned found = matcher->slots[slot_of(word)];
  const unsigned other = matcher->pairs[word & 0xffff];
  const size_t code = found & 0xff;
  const unsigned is_other = (word & matcher->masks[code]) != matcher->words[code];
  /* Which of the two it is cannot be foreseen, so there is no branch to guess wrong. */
  const unsigned entry = found ^ ((found ^ other) & (0 - is_other));
  /* Few symbols reach beyond the end. */
  if (length_of(entry) <= left) return entry;
  return length_of(other) <= left ? other : matcher->singles[word & 0xff];
}

/* The bytes of room that training on a sample needs. */
int64_t fsst_train_room(int64_t sample);

#endif
