/* Symbols for FSST, chosen from a sample: the compiled side of kernels/fsst_encode.py, which
 * describes how and gives, byte for byte, the same results. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fsst.h"

enum {
  LITERAL = 256, /* kinds: 256 codes, then 256 bytes without a symbol */
  KINDS = 512,
  MOST_SYMBOLS = 255,
  GENERATIONS = 5,
  SINGLE_BYTE_WEIGHT = 8
};

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

int64_t fsst_train_room(int64_t sample) {
  int64_t size = (int64_t)sizeof(Matcher);
  const int64_t candidates = candidates_of(sample);
  size += 8 * 256 + 256;                      /* symbols and lengths */
  size += 2 * KINDS * KINDS * 4;              /* counts of neighbours */
  size += 2 * sample * 4;                     /* neighbours that were met */
  size += candidates * (int64_t)sizeof(Candidate);
  size += places_of(candidates) * 4;
  return size + 64;
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
