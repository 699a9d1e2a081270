/* Exact distances of vectors to queries, and the nearest rows by their distances; see
 * index/vector/distance.py and index/vector/nearest.py. */

#include <stdint.h>

#include "vectors.h"

/* Vectors in the outer loop: each is read once, whatever the number of queries. */
#define DISTANCES(NAME, TYPE)                                                                      \
  VECTOR static void NAME(const void *data, int64_t count, int64_t dim, const float *queries,      \
                          int64_t asked, int64_t metric, const float *lengths, float *out) {       \
    for (int64_t i = 0; i < count; i++) {                                                          \
      const float own = metric == COSINE ? sqrtf(squared_length(data, TYPE, i * dim, dim)) : 0;    \
      for (int64_t q = 0; q < asked; q++) {                                                        \
        const float *query = queries + q * dim;                                                    \
        float distance;                                                                            \
        if (metric == L2) {                                                                        \
          distance = squared_distance(data, TYPE, i * dim, query, dim);                            \
        } else {                                                                                   \
          const float dot = product(data, TYPE, i * dim, query, dim);                              \
          distance = 1 - (metric == DOT ? dot : dot / (own * lengths[q]));                         \
        }                                                                                          \
        out[q * count + i] = distance;                                                             \
      }                                                                                            \
    }                                                                                              \
  }

DISTANCES(distances_float32, OF_FLOAT32)
DISTANCES(distances_float16, OF_FLOAT16)
DISTANCES(distances_bfloat16, OF_BFLOAT16)

VECTOR static void distances_float64(const double *data, int64_t count, int64_t dim,
                                     const double *queries, int64_t asked, int64_t metric,
                                     float *out) {
  for (int64_t i = 0; i < count; i++)
    for (int64_t q = 0; q < asked; q++)
      out[q * count + i] = distance64(data + i * dim, queries + q * dim, dim, metric);
}

VECTOR static void distances_uint8(const uint8_t *data, int64_t count, int64_t dim,
                                   const uint8_t *queries, int64_t asked, float *out) {
  for (int64_t i = 0; i < count; i++)
    for (int64_t q = 0; q < asked; q++)
      out[q * count + i] = hamming(data + i * dim, queries + q * dim, dim);
}

/* Writes the distances of all vectors to each query, one query after the other. Queries are 32-bit
 * floats for vectors of shorter floats, else of the type of the vectors. `lengths` has those of the
 * queries, for the cosine of floats of up to 32 bits. */
void lt_distances(const void *data, int64_t type, int64_t count, int64_t dim, const void *queries,
                  int64_t asked, int64_t metric, const float *lengths, float *out) {
  switch (type) {
    case OF_FLOAT32: distances_float32(data, count, dim, queries, asked, metric, lengths, out); break;
    case OF_FLOAT16: distances_float16(data, count, dim, queries, asked, metric, lengths, out); break;
    case OF_BFLOAT16:
      distances_bfloat16(data, count, dim, queries, asked, metric, lengths, out);
      break;
    case OF_UINT8: distances_uint8(data, count, dim, queries, asked, out); break;
    default: distances_float64(data, count, dim, queries, asked, metric, out);
  }
}

/* Takes rows into the nearest of each query. `distances` has those of all rows to one query after
 * the other; rows whose `mask` is 0 are left out, none without a mask. `found` has how many rows
 * each query has; `range` the least distance, and the one that is too far, which may be NaN. */
void lt_offer(const float *distances, int64_t asked, int64_t count, const uint64_t *rows,
              const uint8_t *mask, const float *range, float *top_distances, uint64_t *top_rows,
              int64_t *found, int64_t most) {
  for (int64_t q = 0; q < asked; q++) {
    nearest_t top = {top_distances + q * most, top_rows + q * most, found[q], most, range[0],
                     range[1]};
    const float *of_query = distances + q * count;
    for (int64_t i = 0; i < count; i++)
      if (is_near(&top, of_query[i], rows[i]) && (!mask || mask[i]))
        add_near(&top, of_query[i], rows[i]);
    found[q] = top.count;
  }
}
