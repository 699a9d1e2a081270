/* The documents of a full-text index that suit a query best; see kernels/ranking.py.
 *
 * Lists of postings were checked when they were decoded: documents ascend and are below the number
 * of documents. Nothing is checked here. */

#include <stdint.h>
#include <string.h>

#include "records.h"

enum { BLOCK = 128, WINDOW = 2048, FULL_WORD = 64, NEAR = 16, FEW = 128 };

/* How far a list was read, and the most it can add to a score here. */
typedef struct {
  const list_t *list;
  const uint32_t *ids, *frequencies;
  const double *maxima;
  int64_t at, behind, count;
  double weight, most, bound, added;
  double upto; /* the bounds of this list and of those before it in the sorted order */
} cursor_t;

/* The best rows so far; the worst of them is the first. */
typedef struct {
  float *scores;
  uint64_t *rows;
  int64_t count, most;
} best_t;

typedef struct {
  const corpus_t *corpus;
  cursor_t *cursors; /* in the order of the query */
  cursor_t **sorted;
  int64_t count;
  const float *norms;
  best_t *best;
  int64_t slop; /* -1 without a phrase */
  uint32_t *reached[2];
} search_t;

static int is_worse(const best_t *best, int64_t a, int64_t b) {
  if (best->scores[a] != best->scores[b]) return best->scores[a] < best->scores[b];
  return best->rows[a] > best->rows[b];
}

static void swap(best_t *best, int64_t a, int64_t b) {
  const float score = best->scores[a];
  const uint64_t row = best->rows[a];
  best->scores[a] = best->scores[b];
  best->rows[a] = best->rows[b];
  best->scores[b] = score;
  best->rows[b] = row;
}

static void push(best_t *best, float score, uint64_t row) {
  int64_t at = 0;
  if (best->count < best->most) {
    at = best->count++;
    best->scores[at] = score;
    best->rows[at] = row;
    for (int64_t up = (at - 1) / 2; at > 0 && is_worse(best, at, up); at = up, up = (at - 1) / 2)
      swap(best, at, up);
    return;
  }
  best->scores[0] = score;
  best->rows[0] = row;
  for (;;) {
    int64_t worst = at;
    const int64_t left = 2 * at + 1;
    if (left < best->count && is_worse(best, left, worst)) worst = left;
    if (left + 1 < best->count && is_worse(best, left + 1, worst)) worst = left + 1;
    if (worst == at) return;
    swap(best, at, worst);
    at = worst;
  }
}

/* Whether a document from `first` on with at most this score may be among the best. Sums of bounds
 * may be rounded to less than the score. */
static inline int may_enter(const search_t *search, double bound, int64_t first) {
  const best_t *best = search->best;
  if (best->count < best->most) return 1;
  const float score = (float)(bound * (1 + 1e-12));
  if (score != best->scores[0]) return score > best->scores[0];
  return !search->corpus->ascending || search->corpus->rows[first] < best->rows[0];
}

/* Moves to the first document that is not before one: among the next few without a branch, else
 * galloping. */
static inline int64_t seek(const uint32_t *ids, int64_t at, int64_t count, uint32_t wanted) {
  if (at + NEAR <= count && ids[at + NEAR - 1] >= wanted) {
    uint32_t before = 0;
    for (int i = 0; i < NEAR; i++) before += ids[at + i] < wanted;
    return at + before;
  }
  if (at >= count || ids[at] >= wanted) return at;
  int64_t step = 1, low = at;
  while (low + step < count && ids[low + step] < wanted) {
    low += step;
    step *= 2;
  }
  int64_t high = low + step < count ? low + step : count; /* ids[low] < wanted <= ids[high] */
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (ids[middle] < wanted)
      low = middle;
    else
      high = middle;
  }
  return high;
}

static inline double share_of(const cursor_t *cursor, int64_t at, const float *norms) {
  const double frequency = cursor->frequencies[at];
  return cursor->weight * (frequency / (frequency + norms[cursor->ids[at]]));
}

/* The most that a list adds to the score of a document of a range, -1 when it has none of them. */
static double bound_in(cursor_t *cursor, int64_t from, int64_t to) {
  cursor->at = seek(cursor->ids, cursor->at, cursor->count, (uint32_t)from);
  if (cursor->at == cursor->count || cursor->ids[cursor->at] >= to) return -1;
  double most = 0;
  int64_t block = cursor->at / BLOCK;
  do {
    if (cursor->maxima[block] > most) most = cursor->maxima[block];
    block++;
  } while (block * BLOCK < cursor->count && cursor->ids[block * BLOCK] < to);
  return most * cursor->most;
}

/* Whether the positions of the lists at their cursors have the phrase. */
static int has_phrase(const search_t *search) {
  int64_t count = 0;
  for (int64_t i = 0; i < search->count; i++) {
    const cursor_t *cursor = search->cursors + i;
    const list_t *list = cursor->list;
    const uint32_t *positions = list->positions + list->starts[cursor->at];
    const int64_t here = list->starts[cursor->at + 1] - list->starts[cursor->at];
    const uint32_t *before = search->reached[i & 1];
    uint32_t *reached = search->reached[!(i & 1)];
    int64_t found = 0, from = 0;
    for (int64_t k = 0; k < here; k++) {
      const int64_t position = positions[k];
      if (i == 0) {
        reached[found++] = positions[k];
        continue;
      }
      while (from < count && before[from] + list->gap + search->slop < position) from++;
      if (from < count && before[from] + list->gap <= position) reached[found++] = positions[k];
    }
    if (!found) return 0;
    count = found;
  }
  return 1;
}

/* Adds up what the lists add to the score of a document, in the order of the query. */
static void offer(const search_t *search, int64_t id) {
  double sum = 0;
  best_t *best = search->best;
  const uint64_t row = search->corpus->rows[id];
  for (int64_t i = 0; i < search->count; i++) sum += search->cursors[i].added;
  const float score = (float)sum;
  if (best->count == best->most &&
      (score < best->scores[0] || (score == best->scores[0] && row > best->rows[0])))
    return;
  if (search->slop < 0 || has_phrase(search)) push(best, score, row);
}

/* Asks the lists that alone cannot bring a document among the best; the strongest first. */
static int ask_rest(const search_t *search, int64_t rest, double sum, int64_t id) {
  for (int64_t i = rest - 1; i >= 0; i--) {
    cursor_t *cursor = search->sorted[i];
    cursor->added = 0;
    if (cursor->bound < 0) continue;
    if (!may_enter(search, sum + cursor->upto, id)) return 0;
    cursor->at = seek(cursor->ids, cursor->at, cursor->count, (uint32_t)id);
    if (cursor->at < cursor->count && cursor->ids[cursor->at] == id) {
      cursor->added = share_of(cursor, cursor->at, search->norms);
      sum += cursor->added;
    }
  }
  return may_enter(search, sum, id);
}

static inline int is_allowed(const search_t *search, int64_t id) {
  return !search->corpus->allowed || search->corpus->allowed[id];
}

/* One list whose documents may be among the best; the `rest` others add to their scores. */
static void lead_window(const search_t *search, int64_t rest, double bound, int64_t to) {
  cursor_t *lead = search->sorted[search->count - 1];
  while (lead->at < lead->count && lead->ids[lead->at] < to) {
    const int64_t block = lead->at / BLOCK;
    int64_t stop = (block + 1) * BLOCK;
    if (stop > lead->count) stop = lead->count;
    if (!may_enter(search, lead->maxima[block] * lead->most + bound, lead->ids[lead->at])) {
      lead->at = stop;
      continue;
    }
    for (; lead->at < stop && lead->ids[lead->at] < to; lead->at++) {
      const int64_t id = lead->ids[lead->at];
      lead->added = share_of(lead, lead->at, search->norms);
      if (!may_enter(search, lead->added + bound, id) || !is_allowed(search, id)) continue;
      if (ask_rest(search, rest, lead->added, id)) offer(search, id);
    }
  }
}

/* Several lists whose documents may be among the best: their sums are made for a window at once. */
static void sum_window(const search_t *search, int64_t rest, double bound, int64_t from,
                       int64_t to) {
  double sums[WINDOW];
  uint64_t marks[WINDOW / FULL_WORD] = {0};
  memset(sums, 0, (size_t)(to - from) * sizeof *sums);
  for (int64_t i = rest; i < search->count; i++) {
    cursor_t *cursor = search->sorted[i];
    cursor->behind = cursor->at;
    for (; cursor->at < cursor->count && cursor->ids[cursor->at] < to; cursor->at++) {
      const int64_t place = cursor->ids[cursor->at] - from;
      sums[place] += share_of(cursor, cursor->at, search->norms);
      marks[place / FULL_WORD] |= (uint64_t)1 << place % FULL_WORD;
    }
  }
  for (int64_t word = 0; word * FULL_WORD < to - from; word++) {
    for (uint64_t left = marks[word]; left; left &= left - 1) {
      const int64_t place = word * FULL_WORD + __builtin_ctzll(left), id = from + place;
      if (!may_enter(search, sums[place] + bound, id) || !is_allowed(search, id)) continue;
      if (!ask_rest(search, rest, sums[place], id)) continue;
      for (int64_t i = rest; i < search->count; i++) {
        cursor_t *cursor = search->sorted[i];
        cursor->behind = seek(cursor->ids, cursor->behind, cursor->count, (uint32_t)id);
        const int is_here = cursor->behind < cursor->count && cursor->ids[cursor->behind] == id;
        cursor->added = is_here ? share_of(cursor, cursor->behind, search->norms) : 0;
      }
      offer(search, id);
    }
  }
}

/* A window in which few documents are allowed: they are looked up in all lists. */
static void few_window(const search_t *search, int64_t from, int64_t to) {
  for (int64_t id = from; id < to; id++) {
    if (!search->corpus->allowed[id]) continue;
    int is_found = 0;
    for (int64_t i = 0; i < search->count; i++) {
      cursor_t *cursor = search->cursors + i;
      cursor->at = seek(cursor->ids, cursor->at, cursor->count, (uint32_t)id);
      const int is_here = cursor->at < cursor->count && cursor->ids[cursor->at] == id;
      cursor->added = is_here ? share_of(cursor, cursor->at, search->norms) : 0;
      is_found |= is_here;
    }
    if (is_found) offer(search, id);
  }
}

/* How many documents of a window are allowed. */
static int64_t allowed_in(const search_t *search, int64_t from, int64_t to) {
  const uint8_t *allowed = search->corpus->allowed;
  int64_t sum = 0;
  if (!allowed) return to - from;
  for (int64_t id = from; id < to; id++) sum += allowed[id];
  return sum;
}

/* Documents with any of the lists. */
static void any_of(const search_t *search) {
  cursor_t **sorted = search->sorted;
  const int64_t documents = search->corpus->documents;
  for (int64_t from = 0; from < documents; from += WINDOW) {
    const int64_t to = documents - from < WINDOW ? documents : from + WINDOW;
    double total = 0;
    const int64_t allowed = allowed_in(search, from, to);
    if (!allowed) continue;
    for (int64_t i = 0; i < search->count; i++) {
      cursor_t *cursor = search->cursors + i;
      cursor->added = 0;
      cursor->bound = bound_in(cursor, from, to);
      if (cursor->bound > 0) total += cursor->bound;
    }
    for (int64_t i = 1; i < search->count; i++) {
      cursor_t *moved = sorted[i];
      int64_t place = i;
      for (; place > 0 && sorted[place - 1]->bound > moved->bound; place--)
        sorted[place] = sorted[place - 1];
      sorted[place] = moved;
    }
    if (sorted[search->count - 1]->bound < 0 || !may_enter(search, total, from)) continue;
    if (search->corpus->allowed && allowed < FEW) {
      few_window(search, from, to);
      continue;
    }
    int64_t rest = 0;
    double bound = 0;
    for (; rest < search->count - 1; rest++) {
      const double more = sorted[rest]->bound > 0 ? bound + sorted[rest]->bound : bound;
      if (sorted[rest]->bound >= 0 && may_enter(search, more, from)) break;
      bound = sorted[rest]->upto = more;
    }
    if (rest == search->count - 1)
      lead_window(search, rest, bound, to);
    else
      sum_window(search, rest, bound, from, to);
  }
}

/* Documents with all of the lists; the shortest is the first in the sorted order. */
static void all_of(const search_t *search) {
  cursor_t **sorted = search->sorted, *lead = sorted[0];
  for (int64_t first = 0; first < lead->count; first += BLOCK) {
    const int64_t stop = lead->count - first < BLOCK ? lead->count : first + BLOCK;
    const int64_t from = lead->ids[first], to = (int64_t)lead->ids[stop - 1] + 1;
    double bound = lead->maxima[first / BLOCK] * lead->most;
    int is_possible = 1;
    for (int64_t i = 1; i < search->count && is_possible; i++) {
      const double more = bound_in(sorted[i], from, to);
      is_possible = more >= 0;
      bound += more;
    }
    if (!is_possible || !may_enter(search, bound, from)) continue;
    for (int64_t k = first; k < stop; k++) {
      const int64_t id = lead->ids[k];
      if (!is_allowed(search, id)) continue;
      int64_t i = 1;
      for (; i < search->count; i++) {
        cursor_t *cursor = sorted[i];
        cursor->at = seek(cursor->ids, cursor->at, cursor->count, (uint32_t)id);
        if (cursor->at == cursor->count || cursor->ids[cursor->at] != id) break;
      }
      if (i < search->count) continue;
      lead->at = k;
      for (i = 0; i < search->count; i++)
        sorted[i]->added = share_of(sorted[i], sorted[i]->at, search->norms);
      offer(search, id);
    }
  }
}

/* Marks which of some ascending rows are among others. */
void lt_mark_rows(const uint64_t *rows, int64_t count, const uint64_t *wanted, int64_t wanted_count,
                  uint8_t *marks) {
  int64_t at = 0;
  for (int64_t i = 0; i < wanted_count && at < count; i++) {
    int64_t step = 1, low = at - 1; /* rows[low] < wanted[i] */
    while (low + step < count && rows[low + step] < wanted[i]) {
      low += step;
      step *= 2;
    }
    int64_t high = low + step < count ? low + step : count;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      if (rows[middle] < wanted[i])
        low = middle;
      else
        high = middle;
    }
    at = high;
    if (at < count && rows[at] == wanted[i]) marks[at] = 1;
  }
}

int64_t lt_rank_cursor(void) { return sizeof(cursor_t) + sizeof(cursor_t *); }

/* Writes the best rows of all corpora and their scores, in no order; returns how many there are.
 *
 * Each corpus has `count` lists. Documents have all of them with `needs_all`, else any. With a
 * `slop` that is not negative the lists make a phrase. `reached` has twice `room` positions, as many
 * as a document has of a list. `cursors` has room for a cursor for each list. */
int64_t lt_rank(const corpus_t *corpora, int64_t corpus_count, const list_t *lists, int64_t count,
                int64_t needs_all, int64_t slop, uint32_t *reached, int64_t room, void *cursors,
                int64_t most, float *scores, uint64_t *rows) {
  best_t best = {scores, rows, 0, most};
  for (int64_t c = 0; c < corpus_count; c++) {
    const corpus_t *corpus = corpora + c;
    cursor_t *own = cursors, **sorted = (cursor_t **)(own + count);
    const search_t search = {corpus,        own,   sorted, count,
                             corpus->norms, &best, slop,   {reached, reached + room}};
    int is_possible = 1;
    for (int64_t i = 0; i < count; i++) {
      const list_t *list = lists + c * count + i;
      const cursor_t made = {list, list->ids, list->frequencies, list->maxima, 0, 0, list->count,
                             list->weight, list->weight * corpus->scale, 0, 0, 0};
      own[i] = made;
      if (list->count == 0) is_possible = 0;
      int64_t place = i;
      for (; place > 0 && sorted[place - 1]->count > made.count; place--)
        sorted[place] = sorted[place - 1];
      sorted[place] = own + i;
    }
    if (count == 0 || most == 0 || (needs_all && !is_possible)) continue;
    if (needs_all)
      all_of(&search);
    else
      any_of(&search);
  }
  return best.count;
}
