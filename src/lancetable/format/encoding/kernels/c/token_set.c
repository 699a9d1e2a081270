/* Tokens of a full-text index in the map of a finite-state transducer; see kernels/token_set.py.
 *
 * Nodes lead to nodes before them, so every walk ends. Every function checks the bytes it reads and
 * returns a negative number when they are damaged. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { HEADER = 16, FOOTER = 20, ABSENT = -1, DAMAGED = -2, TOO_DEEP = -3 };

static const char COMMON[] = "te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHGWU";

/* A node: its transitions are in descending places, the first is nearest to its end. */
typedef struct {
  int64_t start;   /* the address of its first byte */
  int64_t inputs;  /* the place of the first input byte, -1 when it is in `input` */
  int64_t targets; /* the place of the first target */
  int64_t outputs; /* the place of the first output */
  uint64_t final_output;
  int count, is_final, target_size, output_size;
  uint8_t input;
} node_t;

typedef struct {
  uint8_t input;
  int64_t target;
  uint64_t output;
} step_t;

static uint64_t number(const uint8_t *data, int64_t at, int size) {
  uint64_t value = 0;
  for (int i = size - 1; i >= 0; i--) value = value << 8 | data[at + i];
  return value;
}

/* The sizes of targets and outputs; 0 when they are not valid. */
static int set_sizes(node_t *node, uint8_t sizes) {
  node->target_size = sizes >> 4;
  node->output_size = sizes & 15;
  return node->target_size <= 8 && node->output_size <= 8;
}

static int read_single(const uint8_t *data, int64_t at, uint8_t state, node_t *node) {
  const int common = state & 63;
  node->count = 1;
  node->inputs = -1;
  if (common) {
    node->input = (uint8_t)COMMON[common - 1];
  } else {
    if (--at < HEADER) return 0;
    node->input = data[at];
  }
  if (state & 64) { /* the target ends just before this node */
    node->start = node->targets = node->outputs = at;
    return 1;
  }
  if (--at < HEADER || !set_sizes(node, data[at])) return 0;
  node->targets = at - node->target_size;
  node->start = node->outputs = node->targets - node->output_size;
  return node->start >= HEADER && node->target_size > 0;
}

static int read_many(const uint8_t *data, int64_t at, uint8_t state, node_t *node) {
  node->is_final = state >> 6 & 1;
  node->count = state & 63;
  if (!node->count) {
    if (--at < HEADER) return 0;
    node->count = data[at] == 1 ? 256 : data[at];
  }
  if (--at < HEADER || !set_sizes(node, data[at])) return 0;
  if (node->count > 32) at -= 256;
  node->inputs = at - 1;
  node->targets = at - node->count - node->target_size;
  node->outputs = at - node->count * (1 + node->target_size) - node->output_size;
  node->start = at - node->count * (1 + node->target_size + node->output_size);
  if (node->is_final) node->start -= node->output_size;
  if (node->start < HEADER || (node->count && !node->target_size)) return 0;
  if (node->is_final) node->final_output = number(data, node->start, node->output_size);
  return 1;
}

/* Reads the node that ends at an address below `size`. */
static int read_node(const uint8_t *data, int64_t size, int64_t address, node_t *node) {
  memset(node, 0, sizeof *node);
  if (address == 0) {
    node->is_final = 1;
    return 1;
  }
  if (address < HEADER || address >= size) return 0;
  const uint8_t state = data[address];
  return state & 128 ? read_single(data, address, state, node)
                     : read_many(data, address, state, node);
}

/* Reads one transition of a node. */
static int read_step(const uint8_t *data, const node_t *node, int place, step_t *step) {
  step->output = 0;
  step->input = node->inputs < 0 ? node->input : data[node->inputs - place];
  if (!node->target_size) {
    step->target = node->start - 1;
  } else {
    const uint64_t back =
        number(data, node->targets - (int64_t)place * node->target_size, node->target_size);
    if (back > (uint64_t)node->start) return 0;
    step->target = back ? node->start - (int64_t)back : 0;
    step->output =
        number(data, node->outputs - (int64_t)place * node->output_size, node->output_size);
  }
  return step->target == 0 || step->target >= HEADER;
}

static int64_t root_of(const uint8_t *data, int64_t size) {
  return (int64_t)number(data, size - FOOTER + 8, 8);
}

/* Returns the number of a token, or ABSENT. */
int64_t lt_token_find(const uint8_t *data, int64_t size, const uint8_t *token, int64_t length) {
  const int64_t end = size - FOOTER;
  int64_t address = root_of(data, size);
  uint64_t sum = 0;
  node_t node;
  for (int64_t at = 0;; at++) {
    if (!read_node(data, end, address, &node)) return DAMAGED;
    if (at == length) break;
    step_t step = {0, 0, 0};
    int place = 0;
    for (; place < node.count; place++) {
      if (!read_step(data, &node, place, &step)) return DAMAGED;
      if (step.input == token[at]) break;
    }
    if (place == node.count) return ABSENT;
    sum += step.output;
    address = step.target;
  }
  return node.is_final ? (int64_t)(sum + node.final_output) : ABSENT;
}

/* A walk over all tokens in ascending order, or over those within some edits of a word. */
typedef struct {
  int64_t address;
  uint64_t sum;
  node_t node;
  int place;     /* the next transition */
  int letters;   /* whole characters up to here */
  uint32_t code; /* the bits of a character that has begun */
  int missing;   /* its bytes that are still to come */
} frame_t;

typedef struct {
  const uint32_t *word;
  int length, distance, prefix;
  uint16_t *rows; /* of each number of characters, the edits that lead to each part of the word */
} wanted_t;

/* The row of edits behind one more character; returns the smallest. */
static int next_row(const wanted_t *wanted, int letters, uint32_t code) {
  const int width = wanted->length + 1;
  const uint16_t *before = wanted->rows + (int64_t)(letters - 1) * width;
  uint16_t *row = wanted->rows + (int64_t)letters * width;
  int least = row[0] = (uint16_t)letters;
  for (int i = 1; i < width; i++) {
    int edits = before[i - 1] + (wanted->word[i - 1] != code);
    if (before[i] + 1 < edits) edits = before[i] + 1;
    if (row[i - 1] + 1 < edits) edits = row[i - 1] + 1;
    row[i] = (uint16_t)edits;
    if (edits < least) least = edits;
  }
  return least;
}

/* Takes one more byte; 0 when no token behind it can be within the edits. */
static int enter(const wanted_t *wanted, frame_t *frame, uint8_t byte) {
  if (!wanted) return 1;
  if (frame->missing == 0) {
    const int more = byte < 0xC0 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    frame->missing = more;
    frame->code = more ? (uint32_t)byte & (63u >> more) : byte;
  } else {
    frame->missing--;
    frame->code = frame->code << 6 | (byte & 63);
  }
  if (frame->missing) return 1;
  const int letters = ++frame->letters;
  if (letters > wanted->length + wanted->distance) return 0;
  if (letters <= wanted->prefix &&
      (letters > wanted->length || wanted->word[letters - 1] != frame->code))
    return 0;
  return next_row(wanted, letters, frame->code) <= wanted->distance;
}

static int is_wanted(const wanted_t *wanted, const frame_t *frame) {
  if (!wanted) return 1;
  const int width = wanted->length + 1;
  return !frame->missing && frame->letters >= wanted->prefix &&
         wanted->rows[(int64_t)frame->letters * width + wanted->length] <= wanted->distance;
}

/* Where tokens go: token i is text[edges[i]:edges[i + 1]]. */
typedef struct {
  int64_t most, room;
  int64_t *numbers, *edges;
  uint8_t *text;
} found_t;

static int64_t walk(const uint8_t *data, int64_t size, const wanted_t *wanted, int64_t steps,
                    int64_t depth, frame_t *frames, found_t *found) {
  const int64_t end = size - FOOTER;
  int64_t level = 0, count = 0;
  uint8_t *text = found->text;
  memset(frames, 0, sizeof *frames);
  frames->address = root_of(data, size);
  found->edges[0] = 0;
  if (!read_node(data, end, frames->address, &frames->node)) return DAMAGED;
  for (int is_new = 1; level >= 0;) {
    frame_t *frame = frames + level;
    if (is_new && frame->node.is_final && is_wanted(wanted, frame)) {
      const int64_t from = found->edges[count];
      found->numbers[count] = (int64_t)(frame->sum + frame->node.final_output);
      found->edges[++count] = from + level;
      if (count == found->most) return count;
      /* The bytes of the walk so far are those of the next token, too. */
      if (from + 2 * level + depth > found->room) return DAMAGED;
      memmove(text + from + level, text + from, (size_t)level);
    }
    is_new = 0;
    if (frame->place == frame->node.count) {
      level--;
      continue;
    }
    step_t step;
    if (--steps < 0 || !read_step(data, &frame->node, frame->place++, &step)) return DAMAGED;
    if (level + 1 >= depth) return TOO_DEEP;
    frame_t *next = frame + 1;
    next->address = step.target;
    next->sum = frame->sum + step.output;
    next->place = 0;
    next->letters = frame->letters;
    next->code = frame->code;
    next->missing = frame->missing;
    text[found->edges[count] + level] = step.input;
    if (!enter(wanted, next, step.input)) continue;
    if (!read_node(data, end, next->address, &next->node)) return DAMAGED;
    level++;
    is_new = 1;
  }
  return count;
}

int64_t lt_token_frame(void) { return sizeof(frame_t); }

/* Writes all tokens in ascending order; returns how many there are. At most `steps` transitions are
 * taken, and `depth` is more than the bytes of any token; `text` has `room` bytes, which are those
 * of all tokens and twice `depth`. */
int64_t lt_token_list(const uint8_t *data, int64_t size, int64_t steps, int64_t depth, void *frames,
                      int64_t most, int64_t *numbers, int64_t *edges, int64_t room, uint8_t *text) {
  found_t found = {most, room, numbers, edges, text};
  return walk(data, size, NULL, steps, depth, frames, &found);
}

/* Writes the first `most` tokens within some edits of a word whose first `prefix` characters are
 * those of the word. `rows` has room for a row for each number of characters up to those of the
 * word and the edits. */
int64_t lt_token_near(const uint8_t *data, int64_t size, int64_t steps, int64_t depth, void *frames,
                      int64_t most, int64_t *numbers, int64_t *edges, int64_t room, uint8_t *text,
                      const uint32_t *word, int64_t length, int64_t distance, int64_t prefix,
                      uint16_t *rows) {
  found_t found = {most, room, numbers, edges, text};
  const wanted_t wanted = {word, (int)length, (int)distance, (int)prefix, rows};
  for (int64_t i = 0; i <= length; i++) rows[i] = (uint16_t)i;
  return walk(data, size, &wanted, steps, depth, frames, &found);
}
