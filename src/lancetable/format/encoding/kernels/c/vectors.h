/* Distances of vectors, and the nearest few of many. */

#ifndef LANCETABLE_VECTORS_H
#define LANCETABLE_VECTORS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The widest registers that the processor has; see wide.h. */
#define VECTOR
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#if __has_attribute(target_clones) && __GNUC__ >= 12
#undef VECTOR
#define VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#endif

#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif

enum { OF_FLOAT32, OF_FLOAT16, OF_FLOAT64, OF_UINT8, OF_BFLOAT16 };
enum { L2, COSINE, DOT, HAMMING };
enum { LANES = 16 };

INLINED float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

/* A float of 16 bits: scaled by a power of two, as its exponent has another offset. */
INLINED float of_half(uint16_t half) {
  const uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
  const uint32_t special = (half & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
  const float scaled = of_bits(magnitude) * 5.192296858534828e33f;
  uint32_t bits;
  memcpy(&bits, &scaled, 4);
  bits = special ? special | (magnitude & 0x7fffffu) : bits;
  return of_bits(bits | (uint32_t)(half & 0x8000) << 16);
}

INLINED float value_at(const void *data, int64_t type, int64_t at) {
  switch (type) {
    case OF_FLOAT32: return ((const float *)data)[at];
    case OF_FLOAT16: return of_half(((const uint16_t *)data)[at]);
    case OF_BFLOAT16: return of_bits((uint32_t)((const uint16_t *)data)[at] << 16);
    case OF_UINT8: return ((const uint8_t *)data)[at];
    default: return (float)((const double *)data)[at];
  }
}

INLINED float sum_of(const float *lanes) {
  float sums[8];
  for (int lane = 0; lane < 8; lane++) sums[lane] = lanes[lane] + lanes[lane + 8];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/* The squared distance of a vector and a query, and their product; `type` is a constant where this
 * is inlined. */
INLINED float squared_distance(const void *data, int64_t type, int64_t first, const float *query,
                               int64_t dim) {
  float lanes[LANES] = {0};
  int64_t at = 0;
  for (; at + LANES <= dim; at += LANES)
    for (int lane = 0; lane < LANES; lane++) {
      const float d = value_at(data, type, first + at + lane) - query[at + lane];
      lanes[lane] += d * d;
    }
  float sum = sum_of(lanes);
  for (; at < dim; at++) {
    const float d = value_at(data, type, first + at) - query[at];
    sum += d * d;
  }
  return sum;
}

INLINED float product(const void *data, int64_t type, int64_t first, const float *query,
                      int64_t dim) {
  float lanes[LANES] = {0};
  int64_t at = 0;
  for (; at + LANES <= dim; at += LANES)
    for (int lane = 0; lane < LANES; lane++)
      lanes[lane] += value_at(data, type, first + at + lane) * query[at + lane];
  float sum = sum_of(lanes);
  for (; at < dim; at++) sum += value_at(data, type, first + at) * query[at];
  return sum;
}

INLINED float squared_length(const void *data, int64_t type, int64_t first, int64_t dim) {
  float lanes[LANES] = {0};
  int64_t at = 0;
  for (; at + LANES <= dim; at += LANES)
    for (int lane = 0; lane < LANES; lane++) {
      const float x = value_at(data, type, first + at + lane);
      lanes[lane] += x * x;
    }
  float sum = sum_of(lanes);
  for (; at < dim; at++) {
    const float x = value_at(data, type, first + at);
    sum += x * x;
  }
  return sum;
}

/* A vector of 64-bit floats is compared in that precision, with a query of the same. */
INLINED float distance64(const double *x, const double *query, int64_t dim, int64_t metric) {
  double l2 = 0, dot = 0, own = 0, other = 0;
  for (int64_t at = 0; at < dim; at++) {
    const double d = x[at] - query[at];
    l2 += d * d;
    dot += x[at] * query[at];
    own += x[at] * x[at];
    other += query[at] * query[at];
  }
  if (metric == L2) return (float)l2;
  return (float)(1 - (metric == DOT ? dot : dot / (sqrt(own) * sqrt(other))));
}

INLINED float hamming(const uint8_t *x, const uint8_t *query, int64_t dim) {
  int64_t bits = 0, at = 0;
  for (; at + 8 <= dim; at += 8) {
    uint64_t a, b;
    memcpy(&a, x + at, 8);
    memcpy(&b, query + at, 8);
    bits += __builtin_popcountll(a ^ b);
  }
  for (; at < dim; at++) bits += __builtin_popcount((unsigned)(x[at] ^ query[at]));
  return (float)bits;
}

/* The nearest rows so far: a heap with the farthest on top, of equal ones the largest row. */
typedef struct {
  float *distances;
  uint64_t *rows;
  int64_t count, most;
  float least, below; /* the range of distances; `below` is NaN when it has no end */
} nearest_t;

INLINED int is_farther(float a, uint64_t row, float b, uint64_t other) {
  return a > b || (a == b && row > other);
}

INLINED void sift_down(nearest_t *top, float distance, uint64_t row) {
  int64_t at = 0;
  for (int64_t child = 1; child < top->count; child = 2 * at + 1) {
    if (child + 1 < top->count && is_farther(top->distances[child + 1], top->rows[child + 1],
                                             top->distances[child], top->rows[child]))
      child++;
    if (!is_farther(top->distances[child], top->rows[child], distance, row)) break;
    top->distances[at] = top->distances[child];
    top->rows[at] = top->rows[child];
    at = child;
  }
  top->distances[at] = distance;
  top->rows[at] = row;
}

/* Whether a row at a distance would be among the nearest; never when the distance is NaN. */
INLINED int is_near(const nearest_t *top, float distance, uint64_t row) {
  if (!(distance >= top->least) || distance >= top->below) return 0;
  return top->count < top->most ||
         (top->most &&
          is_farther(top->distances[0], top->rows[0], distance, row));
}

INLINED void add_near(nearest_t *top, float distance, uint64_t row) {
  if (top->count == top->most) {
    sift_down(top, distance, row);
    return;
  }
  int64_t at = top->count++;
  while (at) {
    const int64_t parent = (at - 1) / 2;
    if (!is_farther(distance, row, top->distances[parent], top->rows[parent])) break;
    top->distances[at] = top->distances[parent];
    top->rows[at] = top->rows[parent];
    at = parent;
  }
  top->distances[at] = distance;
  top->rows[at] = row;
}

#endif
