/* FSST codes for text, and symbols for FSST: the compiled side of kernels/fsst_encode.py, which
 * describes both and gives, byte for byte, the same results. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  SLOT_BITS = 12,
  SLOTS = 1 << SLOT_BITS,
  LITERAL = 256, /* kinds: 256 codes, then 256 bytes without a symbol */
  KINDS = 512,
  SEGMENT = 64,  /* no symbol reaches across such a boundary of its value */
  LANES = 4,
  PIECES = LANES * 128,
  LANE_BYTES = 2 * SEGMENT * 129 + 64, /* no two lanes begin at the same place of the cache */
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
  uint64_t words[256]; /* symbols, and which of their bytes count */
  uint64_t masks[256];
  uint16_t slots[SLOTS];
  uint16_t singles[256];
  uint16_t pairs[65536];
} Matcher;

static inline size_t slot_of(uint64_t word) {
  return (uint32_t)(word << 8) * 2971215073u >> (32 - SLOT_BITS);
}

static void fill_matcher(Matcher *matcher, const uint64_t *symbols, const uint8_t *lengths,
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

/* Values are encoded a block of pieces at a time. A piece is a value, or a segment of a long one; an
 * empty value has none. Finding a symbol is a chain of loads, so the pieces of a block are dealt out
 * to lanes, whose chains run side by side, each into room of its own. */
typedef struct {
  const uint8_t *stops[PIECES]; /* where the text of pieces ends */
  const uint8_t *edges[PIECES]; /* where their codes end in the room of their lane */
  int64_t ends[PIECES];         /* and among all codes */
  uint8_t codes[LANES][LANE_BYTES];
} Block;

typedef struct {
  const uint8_t *from;
  uint8_t *to;
  int64_t piece;
} Lane;

/* Take one symbol. A lane that `may_end` stays at the end of its `last` piece, others never get
 * there. */
static inline void advance(const Matcher *matcher, Block *block, Lane *lane, int64_t last,
                           int may_end) {
  const int64_t left = block->stops[lane->piece] - lane->from;
  uint64_t word;
  memcpy(&word, lane->from, 8);
  const unsigned entry = match(matcher, word, left);
  const int64_t is_open = may_end ? left > 0 : 1;
  const int64_t step = length_of(entry) & (0 - is_open);
  lane->to[0] = (uint8_t)entry;
  lane->to[1] = (uint8_t)word;
  lane->to += is_open + (is_open & (entry >> 12));
  lane->from += step;
  block->edges[lane->piece] = lane->to;
  lane->piece += (step == left) & (may_end ? lane->piece < last : 1);
}

/* The codes of the leading pieces of a block, of which the first starts at `start`: at least one for
 * each lane, and 8 more bytes can be read behind each of them. */
static uint8_t *encode_lanes(const Matcher *matcher, Block *block, const uint8_t *start,
                             int64_t pieces, uint8_t *to, const uint8_t *out) {
  Lane lanes[LANES];
  int64_t firsts[LANES + 1];
  for (int i = 0; i <= LANES; i++) firsts[i] = pieces * i / LANES;
  for (int i = 0; i < LANES; i++) {
    const int64_t first = firsts[i];
    lanes[i] = (Lane){first ? block->stops[first - 1] : start, block->codes[i], first};
  }
  for (;;) {
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < LANES; i++) {
      const int64_t left = block->stops[firsts[i + 1] - 1] - lanes[i].from;
      if (left < least) least = left;
      if (left > most) most = left;
    }
    if (most == 0) break;
    if (least > 32) {
      /* No lane gets to its end in so many steps. */
      for (int64_t steps = (least - 1) / 8; steps > 0; steps--)
        for (int i = 0; i < LANES; i++) advance(matcher, block, &lanes[i], 0, 0);
    } else {
      for (int64_t steps = (most + 7) / 8; steps > 0; steps--)
        for (int i = 0; i < LANES; i++)
          advance(matcher, block, &lanes[i], firsts[i + 1] - 1, 1);
    }
  }
  for (int i = 0; i < LANES; i++) {
    const int64_t length = lanes[i].to - block->codes[i];
    for (int64_t piece = firsts[i]; piece < firsts[i + 1]; piece++)
      block->ends[piece] = block->edges[piece] - block->codes[i] + (to - out);
    memcpy(to, block->codes[i], (size_t)length);
    to += length;
  }
  return to;
}

/* The codes of all pieces of a block, of which the first starts at `start`; `end` is that of all
 * text. */
static uint8_t *encode_block(const Matcher *matcher, Block *block, const uint8_t *start,
                             int64_t pieces, const uint8_t *end, uint8_t *to, const uint8_t *out) {
  int64_t piece = pieces;
  while (piece > 0 && end - block->stops[piece - 1] < 8) piece--;
  if (piece < LANES) piece = 0;
  if (piece) {
    to = encode_lanes(matcher, block, start, piece, to, out);
    start = block->stops[piece - 1];
  }
  for (; piece < pieces; piece++) {
    while (start < block->stops[piece]) {
      const uint64_t word = load(start, end);
      const unsigned entry = match(matcher, word, block->stops[piece] - start);
      *to++ = (uint8_t)entry;
      if (entry >> 12) *to++ = (uint8_t)word;
      start += length_of(entry);
    }
    block->ends[piece] = to - out;
  }
  return to;
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
  if (sample < 0) return size + (int64_t)sizeof(Block);
  const int64_t candidates = candidates_of(sample);
  size += 8 * 256 + 256;                      /* symbols and lengths */
  size += 2 * KINDS * KINDS * 4;              /* counts of neighbours */
  size += 2 * sample * 4;                     /* neighbours that were met */
  size += candidates * (int64_t)sizeof(Candidate);
  size += places_of(candidates) * 4;
  return size + 64;
}

/* Cut values into the pieces of a block, from `value` and `place` on, both of which move on. Behind
 * each value stands in `out_offsets` how many pieces there are up to it. */
static int64_t cut(Block *block, const uint8_t *data, const int64_t *offsets, int64_t values,
                   int64_t *value, int64_t *place, int64_t *out_offsets) {
  int64_t pieces = 0, i = *value, at = *place;
  while (i < values) {
    const int64_t end = offsets[i + 1];
    for (; at < end && pieces < PIECES; pieces++) {
      at = end - at > SEGMENT ? at + SEGMENT : end;
      block->stops[pieces] = data + at;
    }
    if (at < end) break;
    out_offsets[++i] = pieces;
  }
  *value = i;
  *place = at;
  return pieces;
}

/* Codes of all values. `symbols` and `lengths` describe `count` symbols, `room` is of
 * lt_fsst_room(-1) bytes, `out` holds twice the text. Returns the bytes written. */
int64_t lt_fsst_encode(const uint64_t *symbols, const uint8_t *lengths, int64_t count,
                       const uint8_t *data, int64_t size, const int64_t *offsets, int64_t values,
                       void *room, uint8_t *out, int64_t *out_offsets) {
  Matcher *matcher = room;
  Block *block = (Block *)(matcher + 1);
  uint8_t *to = out;
  int64_t value = 0, place = offsets[0];
  fill_matcher(matcher, symbols, lengths, count);
  out_offsets[0] = 0;
  while (value < values) {
    const int64_t start = place, first = value, before = to - out;
    const int64_t pieces = cut(block, data, offsets, values, &value, &place, out_offsets);
    to = encode_block(matcher, block, data + start, pieces, data + size, to, out);
    for (int64_t i = first + 1; i <= value; i++)
      out_offsets[i] = out_offsets[i] ? block->ends[out_offsets[i] - 1] : before;
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
      const uint64_t word = load(data + place, data + size);
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
