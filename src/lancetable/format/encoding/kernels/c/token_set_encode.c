/* Tokens of a full-text index into the map of a finite-state transducer; see
 * kernels/token_set.py for its bytes.
 *
 * Tokens come in ascending order. Nodes on the way to the last token are kept open; they are written
 * once a token leaves them, each after all nodes that it leads to. Equal nodes are written once, as
 * far as a table of some recent ones knows them. */

#include <stdint.h>
#include <string.h>

enum { HEADER = 16, MOST_IN_STATE = 63, MOST_WITHOUT_TABLE = 32, WAYS = 4 };

static const char COMMON[] = "te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHGWU";

typedef struct {
  uint64_t output, target;
  uint8_t input;
} step_t;

typedef struct {
  int64_t first; /* the first of its steps; they stop where those of the next node begin */
  uint64_t final_output;
  int is_final;
} node_t;

typedef struct {
  uint8_t *out;
  int64_t size, last; /* bytes written, and the address of the node before */
  step_t *steps;
  int64_t count; /* of steps */
  uint64_t *known;
  uint64_t mask;
  uint8_t places[256]; /* the number of each common input byte */
} map_t;

static int width(uint64_t value) {
  int bytes = 1;
  while (bytes < 8 && value >> 8 * bytes) bytes++;
  return bytes;
}

static void put(map_t *map, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) map->out[map->size++] = (uint8_t)(value >> 8 * i);
}

static void put_one(map_t *map, const step_t *step, int64_t start) {
  const uint8_t place = map->places[step->input];
  if (step->target == (uint64_t)map->last && step->output == 0) {
    if (!place) put(map, step->input, 1);
    put(map, 0xC0u | place, 1);
    return;
  }
  const uint64_t back = step->target ? (uint64_t)start - step->target : 0;
  const int target = width(back), output = step->output ? width(step->output) : 0;
  put(map, step->output, output);
  put(map, back, target);
  put(map, (uint64_t)(target << 4 | output), 1);
  if (!place) put(map, step->input, 1);
  put(map, 0x80u | place, 1);
}

static void put_many(map_t *map, const node_t *node, const step_t *steps, int64_t count,
                     int64_t start) {
  int target = 0, output = node->final_output ? width(node->final_output) : 0;
  for (int64_t i = 0; i < count; i++) {
    const int back = width(steps[i].target ? (uint64_t)start - steps[i].target : 0);
    const int own = steps[i].output ? width(steps[i].output) : 0;
    target = back > target ? back : target;
    output = own > output ? own : output;
  }
  if (node->is_final) put(map, node->final_output, output);
  for (int64_t i = count; i-- > 0;) put(map, steps[i].output, output);
  for (int64_t i = count; i-- > 0;)
    put(map, steps[i].target ? (uint64_t)start - steps[i].target : 0, target);
  for (int64_t i = count; i-- > 0;) put(map, steps[i].input, 1);
  if (count > MOST_WITHOUT_TABLE) {
    memset(map->out + map->size, 255, 256);
    for (int64_t i = 0; i < count; i++) map->out[map->size + steps[i].input] = (uint8_t)i;
    map->size += 256;
  }
  put(map, (uint64_t)(target << 4 | output), 1);
  const int fits = count > 0 && count <= MOST_IN_STATE;
  if (!fits) put(map, count == 256 ? 1 : (uint64_t)count, 1);
  put(map, (uint64_t)((node->is_final ? 0x40 : 0) | (fits ? count : 0)), 1);
}

static uint64_t hash_of(const node_t *node, const step_t *steps, int64_t count) {
  uint64_t hash = node->final_output * 2 + (uint64_t)node->is_final;
  for (int64_t i = 0; i < count; i++) {
    hash = (hash ^ steps[i].target ^ (uint64_t)steps[i].input << 48) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 32 ^ steps[i].output) * 0xD6E8FEB86659FD93u;
  }
  return hash ^ hash >> 32;
}

/* Whether a written node is the same: it would be written in the same bytes at its own place. */
static int is_same(map_t *map, uint64_t address, const node_t *node, const step_t *steps,
                   int64_t count, int64_t start, int64_t before) {
  const int64_t size = map->size, last = map->last;
  if (start > (int64_t)address) return 0;
  map->last = before;
  if (count == 1 && !node->is_final) {
    put_one(map, steps, start);
  } else {
    put_many(map, node, steps, count, start);
  }
  const int64_t bytes = map->size - size;
  const int same = bytes == (int64_t)address + 1 - start &&
                   memcmp(map->out + size, map->out + start, (size_t)bytes) == 0;
  map->size = size;
  map->last = last;
  return same;
}

/* Writes a node, or finds an equal one; returns its address. A known node is three words:
 * its address, half of its hash above its size less 1, and the address of the node before it. */
static uint64_t settle(map_t *map, const node_t *node) {
  const step_t *steps = map->steps + node->first;
  const int64_t count = map->count - node->first;
  if (node->is_final && count == 0 && node->final_output == 0) return 0;
  const uint64_t hash = hash_of(node, steps, count);
  uint64_t *slots = map->known + 3 * WAYS * (hash & map->mask);
  for (int way = 0; way < WAYS; way++) {
    const uint64_t *slot = slots + 3 * way;
    if (slot[0] && slot[1] >> 32 == hash >> 32 &&
        is_same(map, slot[0], node, steps, count, (int64_t)(slot[0] - (slot[1] & 0xFFFFFFFFu)),
                (int64_t)slot[2]))
      return slot[0];
  }
  const int64_t start = map->size, before = map->last;
  if (count == 1 && !node->is_final) {
    put_one(map, steps, start);
  } else {
    put_many(map, node, steps, count, start);
  }
  map->last = map->size - 1;
  memmove(slots + 3, slots, sizeof(uint64_t) * 3 * (WAYS - 1));
  slots[0] = (uint64_t)map->last;
  slots[1] = (hash & 0xFFFFFFFF00000000u) | (uint64_t)(map->last - start);
  slots[2] = (uint64_t)before;
  return slots[0];
}

/* Writes the nodes deeper than a level. */
static void close_nodes(map_t *map, const node_t *nodes, int64_t depth, int64_t level) {
  for (; depth > level; depth--) {
    const uint64_t address = settle(map, nodes + depth);
    map->count = nodes[depth].first;
    map->steps[map->count - 1].target = address;
  }
}

static void add_output(map_t *map, node_t *node, int64_t stop, uint64_t more) {
  if (node->is_final) node->final_output += more;
  for (int64_t i = node->first; i < stop; i++) map->steps[i].output += more;
}

static void add_token(map_t *map, node_t *nodes, int64_t *depth, const uint8_t *token, int64_t size,
                      uint64_t value) {
  int64_t level = 0;
  for (; level < *depth && level < size; level++) {
    step_t *last = map->steps + nodes[level + 1].first - 1;
    if (last->input != token[level]) break;
    const uint64_t common = last->output < value ? last->output : value;
    const int64_t stop = level + 2 <= *depth ? nodes[level + 2].first : map->count;
    if (last->output > common)
      add_output(map, nodes + level + 1, stop, last->output - common);
    last->output = common;
    value -= common;
  }
  close_nodes(map, nodes, *depth, level);
  for (*depth = level; *depth < size; (*depth)++) {
    step_t *step = map->steps + map->count++;
    *step = (step_t){value, 0, token[*depth]};
    value = 0;
    nodes[*depth + 1] = (node_t){map->count, 0, 0};
  }
  nodes[size].is_final = 1;
  nodes[size].final_output = value;
}

static uint32_t checksum_of(const uint8_t *data, int64_t size) {
  uint32_t table[256], sum = 0xFFFFFFFFu;
  for (uint32_t i = 0; i < 256; i++) {
    table[i] = i;
    for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82F63B78u : 0);
  }
  for (int64_t i = 0; i < size; i++) sum = sum >> 8 ^ table[(sum ^ data[i]) & 255];
  sum = ~sum;
  return (sum >> 15 | sum << 17) + 0xA282EAD8u;
}

int64_t lt_token_map_node(void) { return sizeof(node_t); }

int64_t lt_token_map_step(void) { return sizeof(step_t); }

/* Writes the map of tokens to numbers; returns its size. Token i is text[edges[i]:edges[i + 1]].
 * There is room for a node for each byte of the longest token and one more, for a step for each token
 * and for each byte of the longest, and for 12 << `digits` words in `known`, which are 0. */
int64_t lt_token_map(const uint8_t *text, const int64_t *edges, int64_t tokens,
                     const int64_t *numbers, void *nodes, void *steps, uint64_t *known,
                     int64_t digits, uint8_t *out) {
  map_t map = {out, HEADER, 1, steps, 0, known, ((uint64_t)1 << digits) - 1, {0}};
  node_t *open = nodes;
  int64_t depth = 0;
  for (int i = 0; i < MOST_IN_STATE; i++) map.places[(uint8_t)COMMON[i]] = (uint8_t)(i + 1);
  memset(out, 0, HEADER);
  out[0] = 3;
  open[0] = (node_t){0, 0, 0};
  for (int64_t i = 0; i < tokens; i++)
    add_token(&map, open, &depth, text + edges[i], edges[i + 1] - edges[i], (uint64_t)numbers[i]);
  close_nodes(&map, open, depth, 0);
  const uint64_t root = settle(&map, open);
  put(&map, (uint64_t)tokens, 8);
  put(&map, root, 8);
  put(&map, checksum_of(out, map.size), 4);
  return map.size;
}
