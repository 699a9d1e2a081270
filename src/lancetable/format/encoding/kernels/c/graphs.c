/* Graphs of near neighbours: vectors are inserted one after the other; see
 * index/vector/graph_build.py. */

#include <stdint.h>

#include "vectors.h"

/* The graph so far. A vector has a row for each of its levels: that of the lowest level has the
 * number of the vector, the others follow from `upper` on. */
typedef struct {
  const void *vectors;
  int64_t type, dim, metric;
  const int64_t *upper;
  const int64_t *starts; /* where the links of each row start, and where the last ones end */
  uint32_t *ids;
  float *distances;
  int32_t *counts;
  uint32_t *visited;
  uint32_t mark;
  float *heap, *picked;
  uint64_t *heap_rows;
  uint32_t *picked_ids;
  int64_t count, ef;
} graph_t;

INLINED float between(const graph_t *graph, int64_t type, int64_t one, int64_t other) {
  const int64_t dim = graph->dim;
  if (type == OF_UINT8) {
    const uint8_t *data = graph->vectors;
    return hamming(data + one * dim, data + other * dim, dim);
  }
  const float *data = graph->vectors;
  if (graph->metric == L2) return squared_distance(data, OF_FLOAT32, one * dim, data + other * dim, dim);
  return 1 - product(data, OF_FLOAT32, one * dim, data + other * dim, dim);
}

INLINED int64_t row_of(const graph_t *graph, int64_t vector, int64_t level) {
  return level ? graph->upper[vector] + level - 1 : vector;
}

/* Keeps at most `most` of the sorted neighbours of a vector: first those that are nearer to it than
 * to any kept one, then the nearest of the others. Returns how many there are. */
INLINED int64_t chosen(const graph_t *graph, int64_t type, const float *distances,
                       const uint32_t *ids, int64_t count, int64_t most, float *kept_distances,
                       uint32_t *kept_ids) {
  int64_t kept = 0, filled = 0;
  for (int64_t i = 0; i < count && kept < most; i++) {
    int is_apart = count > most;
    for (int64_t k = 0; is_apart && k < kept; k++)
      is_apart = distances[i] < between(graph, type, ids[i], kept_ids[k]);
    if (!is_apart && count > most) continue;
    kept_distances[kept] = distances[i];
    kept_ids[kept++] = ids[i];
  }
  filled = kept;
  for (int64_t i = 0; i < count && filled < most; i++) {
    int is_kept = 0;
    for (int64_t k = 0; !is_kept && k < kept; k++) is_kept = kept_ids[k] == ids[i];
    if (is_kept) continue;
    kept_distances[filled] = distances[i];
    kept_ids[filled++] = ids[i];
  }
  return filled;
}

INLINED void insertion_sort(float *distances, uint32_t *ids, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    const float distance = distances[i];
    const uint32_t id = ids[i];
    int64_t at = i;
    for (; at && (distances[at - 1] > distance || (distances[at - 1] == distance && ids[at - 1] > id));
         at--) {
      distances[at] = distances[at - 1];
      ids[at] = ids[at - 1];
    }
    distances[at] = distance;
    ids[at] = id;
  }
}

/* Writes the nearest vectors of a level in order, `ef` at most, and returns how many they are. */
INLINED int64_t near(graph_t *graph, int64_t type, int64_t vector, int64_t level, int64_t start,
                     float start_distance) {
  nearest_t open = {graph->heap, graph->heap_rows, 0, graph->count, -INFINITY, NAN};
  nearest_t found = {graph->heap + graph->count, graph->heap_rows + graph->count, 0, graph->ef,
                     -INFINITY, NAN};
  graph->mark++;
  graph->visited[start] = graph->mark;
  add_near(&open, -start_distance, (uint64_t)start);
  add_near(&found, start_distance, (uint64_t)start);
  while (open.count) {
    const float nearest = -open.distances[0];
    const int64_t place = (int64_t)open.rows[0];
    if (found.count == found.most && nearest > found.distances[0]) break;
    open.count--;
    if (open.count) sift_down(&open, open.distances[open.count], open.rows[open.count]);
    const int64_t row = row_of(graph, place, level), first = graph->starts[row];
    for (int64_t edge = first; edge < first + graph->counts[row]; edge++) {
      const int64_t other = graph->ids[edge];
      if (graph->visited[other] == graph->mark) continue;
      graph->visited[other] = graph->mark;
      const float distance = between(graph, type, vector, other);
      if (found.count == found.most && !(distance < found.distances[0])) continue;
      add_near(&open, -distance, (uint64_t)other);
      add_near(&found, distance, (uint64_t)other);
    }
  }
  /* Taking the farthest away again and again leaves them in order. */
  const int64_t count = found.count;
  while (found.count) {
    const int64_t last = found.count - 1;
    graph->picked[last] = found.distances[0];
    graph->picked_ids[last] = (uint32_t)found.rows[0];
    found.count = last;
    if (last) sift_down(&found, found.distances[last], found.rows[last]);
  }
  return count;
}

/* Adds a link to a row; too many are cut to the best of them. */
INLINED void link_back(graph_t *graph, int64_t type, int64_t row, uint32_t id, float distance,
                       int64_t ef) {
  const int64_t first = graph->starts[row], room = graph->starts[row + 1] - first - 1;
  int64_t count = graph->counts[row];
  graph->ids[first + count] = id;
  graph->distances[first + count++] = distance;
  if (count > room) {
    float *kept = graph->picked + ef;
    uint32_t *kept_ids = graph->picked_ids + ef;
    insertion_sort(graph->distances + first, graph->ids + first, count);
    count = chosen(graph, type, graph->distances + first, graph->ids + first, count, room, kept,
                   kept_ids);
    memcpy(graph->ids + first, kept_ids, (size_t)count * 4);
    memcpy(graph->distances + first, kept, (size_t)count * 4);
  }
  graph->counts[row] = (int32_t)count;
}

INLINED void insert(graph_t *graph, int64_t type, int64_t vector, int64_t level, int64_t entry,
                    int64_t top, int64_t m) {
  int64_t current = entry;
  float distance = between(graph, type, vector, current);
  for (int64_t at = top; at > level; at--)
    for (int is_better = 1; is_better;) {
      is_better = 0;
      const int64_t row = row_of(graph, current, at), first = graph->starts[row];
      for (int64_t edge = first; edge < first + graph->counts[row]; edge++) {
        const float d = between(graph, type, vector, graph->ids[edge]);
        if (d < distance) {
          distance = d;
          current = graph->ids[edge];
          is_better = 1;
        }
      }
    }
  for (int64_t at = level < top ? level : top; at >= 0; at--) {
    const int64_t found = near(graph, type, vector, at, current, distance);
    const int64_t row = row_of(graph, vector, at), first = graph->starts[row];
    current = graph->picked_ids[0];
    distance = graph->picked[0];
    const int64_t count = chosen(graph, type, graph->picked, graph->picked_ids, found, m,
                                 graph->distances + first, graph->ids + first);
    graph->counts[row] = (int32_t)count;
    for (int64_t edge = first; edge < first + count; edge++)
      link_back(graph, type, row_of(graph, graph->ids[edge], at), (uint32_t)vector,
                graph->distances[edge], graph->ef);
  }
}

#define BUILD(NAME, TYPE)                                                                     \
  VECTOR static int64_t NAME(graph_t *graph, const uint8_t *levels, int64_t m) {              \
    int64_t entry = 0, top = levels[0];                                                       \
    for (int64_t vector = 1; vector < graph->count; vector++) {                               \
      insert(graph, TYPE, vector, levels[vector], entry, top, m);                             \
      if (levels[vector] > top) {                                                             \
        top = levels[vector];                                                                 \
        entry = vector;                                                                       \
      }                                                                                       \
    }                                                                                         \
    return entry;                                                                             \
  }

BUILD(build_floats, OF_FLOAT32)
BUILD(build_bytes, OF_UINT8)

/* Builds the graph of vectors and returns the one to enter it by. `levels` has the highest level of
 * each; each row has room for one link more than it keeps; `counts` and `visited` are 0. There is
 * room for `count` + `ef` numbers in the heaps, and for `ef` and one row more in what is picked. */
int64_t lt_build_graph(const void *vectors, int64_t type, int64_t count, int64_t dim,
                       int64_t metric, const uint8_t *levels, const int64_t *upper,
                       const int64_t *starts, int64_t m, int64_t ef, uint32_t *ids,
                       float *distances, int32_t *counts, uint32_t *visited, float *heap,
                       uint64_t *heap_rows, float *picked, uint32_t *picked_ids) {
  graph_t graph = {vectors, type,   dim,  metric, upper,     starts,     ids,   distances, counts,
                   visited, 0,      heap, picked, heap_rows, picked_ids, count, ef};
  if (count < 1) return 0;
  return type == OF_UINT8 ? build_bytes(&graph, levels, m) : build_floats(&graph, levels, m);
}
