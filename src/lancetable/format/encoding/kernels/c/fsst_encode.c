/* FSST codes for text, and symbols for FSST: the compiled side of kernels/fsst_encode.py, which
 * describes both and gives, byte for byte, the same results. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  SLOTS = 4096,
  LITERAL = 256, /* kinds: 256 codes, then 256 bytes without a symbol */
  KINDS = 512,
  SEGMENT = 64,  /* no symbol reaches across such a boundary of its value */
  LANES = 4,
  NOTHING = 255, /* the code that no symbol has: it escapes */
  MOST_SYMBOLS = 255,
  GENERATIONS = 5,
  SINGLE_BYTE_WEIGHT = 8
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
  uint64_t words[256];
  uint16_t slots[SLOTS];
  uint16_t singles[256];
  uint16_t pairs[65536];
} Matcher;

static inline size_t slot_of(uint64_t word) {
  uint64_t hashed = (word & 0xffffff) * 2971215073u;
  return (size_t)((hashed ^ hashed >> 15) & (SLOTS - 1));
}

static void fill_matcher(Matcher *matcher, const uint64_t *symbols, const uint8_t *lengths,
                         int64_t count) {
  for (int i = 0; i < SLOTS; i++) matcher->slots[i] = NOTHING;
  memset(matcher->words, 0, sizeof matcher->words);
  memcpy(matcher->words, symbols, (size_t)count * 8);
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

static inline uint64_t load(const uint8_t *data, int64_t place, int64_t size) {
  uint64_t word = 0;
  if (size - place >= 8)
    memcpy(&word, data + place, 8);
  else
    memcpy(&word, data + place, (size_t)(size - place));
  return word;
}

static inline int64_t length_of(unsigned entry) { return entry >> 8 & 15; }

/* The entry of the symbol that `word` starts with; only `left` bytes of it count. */
static inline unsigned match(const Matcher *matcher, uint64_t word, int64_t left) {
  word &= MASKS[left < 8 ? left : 8];
  const unsigned found = matcher->slots[slot_of(word)];
  const unsigned other = matcher->pairs[word & 0xffff];
  /* Which of the two it is cannot be foreseen, so there is no branch to guess wrong. */
  const unsigned is_found = (word & MASKS[found >> 8]) == matcher->words[found & 0xff];
  const unsigned entry = other ^ ((other ^ found) & (0 - is_found));
  /* Symbols that end in zero bytes also match beyond the end. */
  return length_of(entry) > left ? matcher->singles[word & 0xff] : entry;
}

static uint8_t *encode_one(const Matcher *matcher, const uint8_t *data, int64_t size,
                           int64_t place, int64_t end, uint8_t *to) {
  while (place < end) {
    const int64_t stop = place + SEGMENT < end ? place + SEGMENT : end;
    while (place < stop) {
      const uint64_t word = load(data, place, size);
      const unsigned entry = match(matcher, word, stop - place);
      *to++ = (uint8_t)entry;
      if (entry >> 12) *to++ = (uint8_t)word;
      place += length_of(entry);
    }
  }
  return to;
}

/* Several short values at once, each into room of its own: finding a symbol is a chain of loads,
 * and the chains of different values run side by side. A value that is finished waits for the
 * others. All have up to SEGMENT bytes, and 8 more can be read behind each of them. */
static uint8_t *encode_some(const Matcher *matcher, const uint8_t *data, const int64_t *offsets,
                            uint8_t *to, int64_t *edges, const uint8_t *out) {
  uint8_t room[LANES][2 * SEGMENT + 16];
  const uint8_t *from[LANES];
  int64_t left[LANES];
  uint8_t *at[LANES];
  int64_t most = 0;
  for (int lane = 0; lane < LANES; lane++) {
    from[lane] = data + offsets[lane];
    left[lane] = offsets[lane + 1] - offsets[lane];
    at[lane] = room[lane];
    if (left[lane] > most) most = left[lane];
  }
  while (most > 0) {
    most = 0;
    for (int lane = 0; lane < LANES; lane++) {
      uint64_t word;
      memcpy(&word, from[lane], 8);
      const unsigned entry = match(matcher, word, left[lane]);
      const int64_t is_open = left[lane] > 0;
      const int64_t step = length_of(entry) & (0 - is_open);
      at[lane][0] = (uint8_t)entry;
      at[lane][1] = (uint8_t)word;
      at[lane] += is_open + (is_open & (entry >> 12));
      from[lane] += step;
      left[lane] -= step;
      most |= left[lane];
    }
  }
  for (int lane = 0; lane < LANES; lane++) {
    const int64_t length = at[lane] - room[lane];
    for (int64_t done = 0; done < length; done += 16) memcpy(to + done, room[lane] + done, 16);
    to += length;
    edges[lane] = to - out;
  }
  return to;
}

static int are_short(const int64_t *offsets) {
  for (int lane = 0; lane < LANES; lane++) {
    const int64_t length = offsets[lane + 1] - offsets[lane];
    if (length > SEGMENT) return 0;
  }
  return 1;
}

/* The bytes of room that encoding needs, or with the size of a sample training on it. */
static int64_t candidates_of(int64_t sample) { return KINDS + 2 * sample; }

static int64_t places_of(int64_t candidates) {
  int64_t places = 1024;
  while (places < 2 * candidates) places *= 2;
  return places;
}

typedef struct {
  uint64_t gain;
  uint64_t text; /* first byte highest, so that numbers compare as texts do */
  uint8_t length;
} Candidate;

int64_t lt_fsst_room(int64_t sample) {
  int64_t size = (int64_t)sizeof(Matcher);
  if (sample < 0) return size;
  const int64_t candidates = candidates_of(sample);
  size += 8 * 256 + 256;                      /* symbols and lengths */
  size += 2 * KINDS * KINDS * 4;              /* counts of neighbours */
  size += 2 * sample * 4;                     /* neighbours that were met */
  size += candidates * (int64_t)sizeof(Candidate);
  size += places_of(candidates) * 4;
  return size + 64;
}

/* Codes of all values. `symbols` and `lengths` describe `count` symbols, `room` is of
 * lt_fsst_room(-1) bytes, `out` holds twice the text and 16 bytes. Returns the bytes written. */
int64_t lt_fsst_encode(const uint64_t *symbols, const uint8_t *lengths, int64_t count,
                       const uint8_t *data, int64_t size, const int64_t *offsets, int64_t values,
                       void *room, uint8_t *out, int64_t *out_offsets) {
  Matcher *matcher = room;
  uint8_t *to = out;
  int64_t i = 0;
  fill_matcher(matcher, symbols, lengths, count);
  out_offsets[0] = 0;
  while (i < values) {
    if (i + LANES <= values && offsets[i + LANES] + 8 <= size && are_short(offsets + i)) {
      to = encode_some(matcher, data, offsets + i, to, out_offsets + i + 1, out);
      i += LANES;
    } else {
      to = encode_one(matcher, data, size, offsets[i], offsets[i + 1], to);
      out_offsets[++i] = to - out;
    }
  }
  return to - out;
}

/* What training works on. */
typedef struct {
  Matcher *matcher;
  uint64_t *symbols;
  uint8_t *lengths;
  int64_t count;
  uint64_t totals[KINDS];
  uint32_t *neighbours[2]; /* how often a kind follows a kind; the first byte of what follows */
  uint32_t *met[2];
  int64_t met_count[2];
  Candidate *candidates;
  int64_t candidate_count;
  uint32_t *places; /* numbers of candidates by the hash of their text, 0 for none */
  int64_t place_count;
} Training;

static void note(Training *training, int which, unsigned left, unsigned right) {
  const uint32_t pair = left * KINDS + right;
  if (training->neighbours[which][pair]++ == 0)
    training->met[which][training->met_count[which]++] = pair;
}

static void count_values(Training *training, const uint8_t *data, int64_t size,
                         const int64_t *offsets, int64_t values, int has_pairs) {
  memset(training->totals, 0, sizeof training->totals);
  for (int64_t i = 0; i < values; i++) {
    int64_t place = offsets[i];
    const int64_t end = offsets[i + 1];
    int before = -1;
    int64_t stop = place;
    while (place < end) {
      if (place == stop) stop = place + SEGMENT < end ? place + SEGMENT : end;
      const uint64_t word = load(data, place, size);
      const unsigned entry = match(training->matcher, word, stop - place);
      const unsigned first = (unsigned)(word & 0xff);
      const unsigned kind = entry >> 12 ? LITERAL + first : entry & 0xff;
      training->totals[kind]++;
      if (has_pairs && before >= 0) {
        note(training, 0, (unsigned)before, kind);
        if (kind < LITERAL) note(training, 1, (unsigned)before, LITERAL + first);
      }
      before = (int)kind;
      place += length_of(entry);
    }
  }
}

/* The text of a kind, first byte lowest, and its length. */
static uint64_t text_of(const Training *training, unsigned kind, unsigned *length) {
  if (kind >= LITERAL) {
    *length = 1;
    return kind - LITERAL;
  }
  *length = training->lengths[kind];
  return training->symbols[kind];
}

static uint64_t turned(uint64_t word) {
  uint64_t out = 0;
  for (int i = 0; i < 8; i++) out = out << 8 | (word >> (8 * i) & 0xff);
  return out;
}

static void add_gain(Training *training, uint64_t word, unsigned length, uint64_t gain) {
  const uint64_t text = turned(word);
  uint64_t hashed = (text ^ length) * 0x9e3779b97f4a7c15u;
  int64_t place = (int64_t)(hashed >> 32) & (training->place_count - 1);
  for (; training->places[place]; place = (place + 1) & (training->place_count - 1)) {
    Candidate *known = &training->candidates[training->places[place] - 1];
    if (known->text == text && known->length == length) {
      known->gain += gain;
      return;
    }
  }
  Candidate *fresh = &training->candidates[training->candidate_count++];
  fresh->text = text;
  fresh->length = (uint8_t)length;
  fresh->gain = gain;
  training->places[place] = (uint32_t)training->candidate_count;
}

static void gather_candidates(Training *training) {
  training->candidate_count = 0;
  memset(training->places, 0, (size_t)training->place_count * 4);
  for (unsigned kind = 0; kind < KINDS; kind++) {
    unsigned length;
    if (!training->totals[kind]) continue;
    const uint64_t word = text_of(training, kind, &length);
    const unsigned weight = length == 1 ? SINGLE_BYTE_WEIGHT : length;
    add_gain(training, word, length, weight * training->totals[kind]);
  }
  for (int which = 0; which < 2; which++) {
    for (int64_t i = 0; i < training->met_count[which]; i++) {
      const uint32_t pair = training->met[which][i];
      const uint32_t times = training->neighbours[which][pair];
      training->neighbours[which][pair] = 0;
      if (times < 2) continue;
      unsigned first, second;
      uint64_t word = text_of(training, pair / KINDS, &first);
      const uint64_t behind = text_of(training, pair % KINDS, &second);
      if (first < 8) word |= behind << (8 * first);
      const unsigned length = first + second < 8 ? first + second : 8;
      add_gain(training, word, length, (uint64_t)length * times);
    }
    training->met_count[which] = 0;
  }
}

static int compare_candidates(const void *left, const void *right) {
  const Candidate *a = left, *b = right;
  if (a->gain != b->gain) return a->gain > b->gain ? -1 : 1;
  if (a->text != b->text) return a->text < b->text ? -1 : 1;
  return (a->length > b->length) - (a->length < b->length);
}

static void choose_symbols(Training *training) {
  uint8_t taken[SLOTS] = {0};
  qsort(training->candidates, (size_t)training->candidate_count, sizeof(Candidate),
        compare_candidates);
  training->count = 0;
  for (int64_t i = 0; i < training->candidate_count && training->count < MOST_SYMBOLS; i++) {
    const Candidate *one = &training->candidates[i];
    const uint64_t word = turned(one->text);
    if (one->length > 2) {
      const size_t slot = slot_of(word);
      if (taken[slot]) continue;
      taken[slot] = 1;
    }
    training->symbols[training->count] = word;
    training->lengths[training->count++] = one->length;
  }
}

/* Symbols for a sample. `room` is of lt_fsst_room(size) bytes, all zero; `symbols` and `lengths`
 * have 256 places each. Returns how many symbols there are. */
int64_t lt_fsst_train(const uint8_t *data, int64_t size, const int64_t *offsets, int64_t values,
                      void *room, uint64_t *symbols, uint8_t *lengths) {
  Training training;
  uint8_t *at = room;
  training.matcher = (Matcher *)at;
  at += sizeof(Matcher);
  training.candidates = (Candidate *)at;
  at += (size_t)candidates_of(size) * sizeof(Candidate);
  for (int which = 0; which < 2; which++) {
    training.neighbours[which] = (uint32_t *)at;
    at += (size_t)KINDS * KINDS * 4;
    training.met[which] = (uint32_t *)at;
    at += (size_t)size * 4;
    training.met_count[which] = 0;
  }
  training.place_count = places_of(candidates_of(size));
  training.places = (uint32_t *)at;
  training.symbols = symbols;
  training.lengths = lengths;
  training.count = 0;
  for (int generation = 0; generation < GENERATIONS; generation++) {
    fill_matcher(training.matcher, symbols, lengths, training.count);
    count_values(&training, data, size, offsets, values, generation < GENERATIONS - 1);
    gather_candidates(&training);
    choose_symbols(&training);
  }
  return training.count;
}
