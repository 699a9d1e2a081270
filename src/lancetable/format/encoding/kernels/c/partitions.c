/* Search of partitions of a vector index, with or without graphs; see index/vector/search.py. */

#include <stdint.h>

#include "records.h"
#include "vectors.h"

enum { BLOCK = 128, BYTE_CODES = 256 };

/* What does not change while one partition is searched for one query. */
typedef struct {
  const probing_t *search;
  const partition_t *of;
  const void *query;
  const float *rotated;
  float base, slope, total;
} probe_t;

INLINED int is_live(const probing_t *search, uint64_t row) {
  if (!search->spans) return 1;
  const int64_t upper = (int64_t)(row >> 32), lower = (int64_t)(row & 0xffffffffu);
  int64_t low = 0, high = search->span_count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (search->spans[3 * middle] < upper)
      low = middle + 1;
    else
      high = middle;
  }
  const int64_t *span = search->spans + 3 * low;
  if (low == search->span_count || span[0] != upper || lower >= span[2]) return 0;
  return span[1] < 0 || search->live[span[1] + lower];
}

INLINED float plain_distance(const probe_t *probe, int64_t type, int64_t place) {
  const probing_t *search = probe->search;
  const int64_t dim = search->dim, first = place * dim;
  if (type == OF_FLOAT64)
    return distance64((const double *)(const void *)probe->of->codes + first, probe->query, dim,
                      search->metric);
  if (type == OF_UINT8) return hamming(probe->of->codes + first, probe->query, dim);
  if (search->metric == L2)
    return squared_distance(probe->of->codes, type, first, probe->query, dim);
  return 1 - product(probe->of->codes, type, first, probe->query, dim);
}

INLINED float scalar_distance(const probe_t *probe, int64_t place) {
  const probing_t *search = probe->search;
  const int64_t dim = search->dim;
  const uint8_t *codes = probe->of->codes + place * dim;
  if (search->metric != L2)
    return probe->base - probe->slope * product(codes, OF_UINT8, 0, probe->query, dim);
  const uint8_t *query = (const uint8_t *)(const void *)search->tables;
  int32_t sum = 0;
  for (int64_t at = 0; at < dim; at++) {
    const int32_t d = (int32_t)codes[at] - (int32_t)query[at];
    sum += d * d;
  }
  return (float)(uint32_t)sum * probe->slope;
}

INLINED float rotated_distance(const probe_t *probe, int64_t kind, int64_t place) {
  const probing_t *search = probe->search;
  const partition_t *of = probe->of;
  const int64_t dim = search->dim;
  float dot = 0;
  if (kind == ROTATED_CODES) {
    dot = product(of->codes, OF_UINT8, place * dim, probe->rotated, dim);
  } else {
    const uint16_t *codes = (const uint16_t *)(const void *)of->codes + place * dim;
    for (int64_t at = 0; at < dim; at++) dot += (float)codes[at] * probe->rotated[at];
  }
  const float add = of->factors[place], scale = of->factors[of->length + place];
  const float scaled = scale * (dot - search->parameters[0] * probe->total);
  return search->metric == L2 ? add + probe->base + scaled
                              : 1 - probe->base * (2 - add) + scaled;
}

/* Of codes by rows, as graphs have them. */
INLINED float product_distance(const probe_t *probe, int64_t place) {
  const probing_t *search = probe->search;
  const int64_t width = search->sub_vectors * search->code_bits / 8;
  const uint8_t *code = probe->of->codes + place * width;
  float sum = probe->base;
  for (int64_t byte = 0; byte < width; byte++)
    sum += search->tables[byte * BYTE_CODES + code[byte]];
  return sum;
}

INLINED float distance_of(const probe_t *probe, int64_t kind, int64_t type, int64_t place) {
  switch (kind) {
    case PLAIN_VECTORS: return plain_distance(probe, type, place);
    case PRODUCT_CODES: return product_distance(probe, place);
    case SCALAR_CODES: return scalar_distance(probe, place);
    default: return rotated_distance(probe, kind, place);
  }
}

/* The distance of a part of the query to each value that a byte of a code may have. */
INLINED void fill_tables(const probing_t *search, const float *query, const float *centroid) {
  const int64_t parts = search->sub_vectors, dim = search->dim / parts;
  const int64_t codes = (int64_t)1 << search->code_bits;
  float sums[BYTE_CODES];
  for (int64_t part = 0; part < parts; part++) {
    float *table = search->code_bits == 8 ? search->tables + part * codes : sums;
    for (int64_t code = 0; code < codes; code++) table[code] = 0;
    for (int64_t at = part * dim; at < (part + 1) * dim; at++) {
      const float *values = search->codebook + at * codes;
      const float wanted = search->metric == L2 ? query[at] - centroid[at] : query[at];
      if (search->metric == L2)
        for (int64_t code = 0; code < codes; code++) {
          const float d = wanted - values[code];
          table[code] += d * d;
        }
      else
        for (int64_t code = 0; code < codes; code++) table[code] -= wanted * values[code];
    }
    if (search->code_bits == 8) continue;
    /* Two codes of four bits make a byte, the first one its low half. */
    float *whole = search->tables + part / 2 * BYTE_CODES;
    for (int64_t byte = 0; byte < BYTE_CODES; byte++)
      whole[byte] = part % 2 ? whole[byte] + sums[byte >> 4] : sums[byte & 15];
  }
}

INLINED void prepare(probe_t *probe, int64_t kind) {
  const probing_t *search = probe->search;
  const float *query = probe->query;
  const int64_t dim = search->dim;
  const int is_l2 = search->metric == L2;
  if (kind == PRODUCT_CODES) {
    fill_tables(search, query, probe->of->centroid);
    probe->base = is_l2 ? 0 : 1;
  } else if (kind == SCALAR_CODES) {
    const float start = search->parameters[0], step = search->parameters[1];
    uint8_t *codes = (uint8_t *)(void *)search->tables;
    float total = 0;
    for (int64_t at = 0; at < dim; at++) {
      const float code = (query[at] - start) / step;
      codes[at] = (uint8_t)(code >= 255 ? 255 : code > 0 ? code : 0);
      total += query[at];
    }
    /* A code stands for the middle of its step. */
    probe->base = 1 - (start + step / 2) * total;
    probe->slope = is_l2 ? step * step : step;
  } else if (kind != PLAIN_VECTORS) {
    probe->base = is_l2 ? squared_distance(query, OF_FLOAT32, 0, probe->of->centroid, dim)
                        : product(query, OF_FLOAT32, 0, probe->of->centroid, dim);
    probe->total = 0;
    for (int64_t at = 0; at < dim; at++) probe->total += probe->rotated[at];
  }
}

INLINED void offer(const probe_t *probe, nearest_t *top, float distance, int64_t place) {
  const uint64_t row = probe->of->rows[place];
  if (is_near(top, distance, row) && is_live(probe->search, row)) add_near(top, distance, row);
}

/* Codes by bytes: the table of a byte stays in the cache for many rows. */
INLINED void scan_product_codes(const probe_t *probe, nearest_t *top) {
  const probing_t *search = probe->search;
  const int64_t width = search->sub_vectors * search->code_bits / 8, length = probe->of->length;
  for (int64_t first = 0; first < length; first += BLOCK) {
    const int64_t count = length - first < BLOCK ? length - first : BLOCK;
    float sums[BLOCK];
    for (int64_t i = 0; i < count; i++) sums[i] = probe->base;
    for (int64_t byte = 0; byte < width; byte++) {
      const float *table = search->tables + byte * BYTE_CODES;
      const uint8_t *codes = probe->of->codes + byte * length + first;
      for (int64_t i = 0; i < count; i++) sums[i] += table[codes[i]];
    }
    for (int64_t i = 0; i < count; i++) offer(probe, top, sums[i], first + i);
  }
}

/* Where a vector stands in a level; -1 when it is not there. */
INLINED int64_t place_in(const partition_t *of, int64_t level, uint32_t id) {
  int64_t low = of->levels[level], high = of->levels[level + 1];
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (of->ids[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < of->levels[level + 1] && of->ids[low] == id ? low : -1;
}

/* The vector of the upper levels from which no neighbour is nearer. */
INLINED int64_t descend(const probe_t *probe, int64_t kind, int64_t type, float *distance) {
  const partition_t *of = probe->of;
  int64_t current = of->entry;
  *distance = distance_of(probe, kind, type, current);
  for (int64_t level = of->level_count - 1; level > 0; level--) {
    for (int is_better = 1; is_better;) {
      is_better = 0;
      const int64_t place = place_in(of, level, (uint32_t)current);
      if (place < 0) break;
      for (int64_t edge = of->edges[place]; edge < of->edges[place + 1]; edge++) {
        const int64_t other = of->neighbours[edge];
        if (other >= of->length) continue;
        const float d = distance_of(probe, kind, type, other);
        if (d < *distance) {
          *distance = d;
          current = other;
          is_better = 1;
        }
      }
    }
  }
  return current;
}

INLINED void search_graph(const probe_t *probe, int64_t kind, int64_t type, nearest_t *top) {
  const probing_t *search = probe->search;
  const partition_t *of = probe->of;
  if (of->entry >= of->length) return;
  /* Those to go on from have the sign of their distances changed, so that the nearest is on top. */
  nearest_t open = {search->heap, search->heap_rows, 0, of->length, -INFINITY, NAN};
  nearest_t found = {search->heap + of->length, search->heap_rows + of->length, 0, search->ef,
                     -INFINITY, NAN};
  memset(search->visited, 0, (size_t)of->length);
  float distance;
  const int64_t start = descend(probe, kind, type, &distance);
  search->visited[start] = 1;
  add_near(&open, -distance, (uint64_t)start);
  if (is_live(search, of->rows[start])) add_near(&found, distance, (uint64_t)start);
  while (open.count) {
    const float nearest = -open.distances[0];
    const int64_t place = (int64_t)open.rows[0];
    if (found.count == found.most && nearest > found.distances[0]) break;
    open.count--;
    if (open.count) sift_down(&open, open.distances[open.count], open.rows[open.count]);
    for (int64_t edge = of->edges[place]; edge < of->edges[place + 1]; edge++) {
      const int64_t other = of->neighbours[edge];
      if (other >= of->length || search->visited[other]) continue;
      search->visited[other] = 1;
      const float d = distance_of(probe, kind, type, other);
      if (found.count == found.most && !(d < found.distances[0])) continue;
      add_near(&open, -d, (uint64_t)other);
      if (is_live(search, of->rows[other])) add_near(&found, d, (uint64_t)other);
    }
  }
  for (int64_t i = 0; i < found.count; i++)
    offer(probe, top, found.distances[i], (int64_t)found.rows[i]);
}

#define SEARCH(NAME, KIND, TYPE)                                                              \
  VECTOR static void NAME(probe_t *probe, nearest_t *top) {                                   \
    prepare(probe, KIND);                                                                     \
    if (probe->of->level_count)                                                               \
      search_graph(probe, KIND, TYPE, top);                                                   \
    else if (KIND == PRODUCT_CODES)                                                           \
      scan_product_codes(probe, top);                                                         \
    else                                                                                      \
      for (int64_t place = 0; place < probe->of->length; place++)                             \
        offer(probe, top, distance_of(probe, KIND, TYPE, place), place);                      \
  }

SEARCH(search_float32, PLAIN_VECTORS, OF_FLOAT32)
SEARCH(search_float16, PLAIN_VECTORS, OF_FLOAT16)
SEARCH(search_float64, PLAIN_VECTORS, OF_FLOAT64)
SEARCH(search_uint8, PLAIN_VECTORS, OF_UINT8)
SEARCH(search_product_codes, PRODUCT_CODES, OF_FLOAT32)
SEARCH(search_scalar_codes, SCALAR_CODES, OF_FLOAT32)
SEARCH(search_rotated_codes, ROTATED_CODES, OF_FLOAT32)
SEARCH(search_wide_rotated_codes, WIDE_ROTATED_CODES, OF_FLOAT32)

static void (*searcher(const probing_t *search))(probe_t *, nearest_t *) {
  switch (search->kind) {
    case PRODUCT_CODES: return search_product_codes;
    case SCALAR_CODES: return search_scalar_codes;
    case ROTATED_CODES: return search_rotated_codes;
    case WIDE_ROTATED_CODES: return search_wide_rotated_codes;
    default: break;
  }
  switch (search->type) {
    case OF_FLOAT16: return search_float16;
    case OF_FLOAT64: return search_float64;
    case OF_UINT8: return search_uint8;
    default: return search_float32;
  }
}

/* Searches partitions for queries: those `chosen` from `starts[q]` to `starts[q + 1]` for query q.
 * Takes the rows into the nearest of each query, of which there are `found` so far. Queries are
 * 64-bit floats or bytes when the vectors are, else 32-bit floats. */
void lt_search_partitions(const probing_t *search, const partition_t *partitions,
                          const int64_t *chosen, const int64_t *starts, int64_t asked,
                          const uint8_t *queries, float *top_distances, uint64_t *top_rows,
                          int64_t *found) {
  const int64_t dim = search->dim;
  int64_t item = 4;
  if (search->kind == PLAIN_VECTORS && search->type == OF_FLOAT64) item = 8;
  if (search->kind == PLAIN_VECTORS && search->type == OF_UINT8) item = 1;
  void (*const run)(probe_t *, nearest_t *) = searcher(search);
  for (int64_t q = 0; q < asked; q++) {
    nearest_t top = {top_distances + q * search->most, top_rows + q * search->most, found[q],
                     search->most, search->range[0], search->range[1]};
    for (int64_t at = starts[q]; at < starts[q + 1]; at++) {
      probe_t probe = {search, partitions + chosen[at], queries + q * dim * item,
                       search->rotated ? search->rotated + q * dim : NULL, 0, 0, 0};
      if (probe.of->length) run(&probe, &top);
    }
    found[q] = top.count;
  }
}
