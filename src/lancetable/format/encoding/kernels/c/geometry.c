/* Boxes of geometries and their order on a curve; see kernels/wkb.py and kernels/hilbert.py. */

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { POINT = 1, LINE, POLYGON, FIRST_COLLECTION, LAST_COLLECTION = 7, DEEPEST = 32 };
static const uint32_t HAS_Z = 0x80000000u, HAS_M = 0x40000000u, HAS_SRID = 0x20000000u;

typedef struct {
  const uint8_t *at, *end;
  double *box;
  int is_little;
} reader_t;

static int take_u32(reader_t *reader, uint32_t *number) {
  const uint8_t *const at = reader->at;
  if (reader->end - at < 4) return 0;
  memcpy(number, at, sizeof *number);
  if (!reader->is_little) *number = __builtin_bswap32(*number);
  reader->at += 4;
  return 1;
}

static double number_at(const uint8_t *at, int is_little) {
  uint64_t bits;
  double number;
  memcpy(&bits, at, sizeof bits);
  if (!is_little) bits = __builtin_bswap64(bits);
  memcpy(&number, &bits, sizeof number);
  return number;
}

static int take_points(reader_t *reader, uint32_t count, int64_t width) {
  double *const box = reader->box;
  if (count > (reader->end - reader->at) / (8 * width)) return 0;
  for (uint32_t i = 0; i < count; i++, reader->at += 8 * width) {
    const double x = number_at(reader->at, reader->is_little);
    const double y = number_at(reader->at + 8, reader->is_little);
    if (isnan(x) || isnan(y)) continue;
    if (!(box[0] <= x)) box[0] = x; /* also in place of NaN */
    if (!(box[1] <= y)) box[1] = y;
    if (!(box[2] >= x)) box[2] = x;
    if (!(box[3] >= y)) box[3] = y;
  }
  return 1;
}

/* Widens the box by a geometry and moves behind it; 0 when it is not one. */
static int take_geometry(reader_t *reader, int depth) {
  uint32_t kind, count, ignored;
  if (reader->at == reader->end) return 0;
  reader->is_little = *reader->at++ != 0;
  const int is_little = reader->is_little;
  if (!take_u32(reader, &kind)) return 0;
  if (kind & HAS_SRID && !take_u32(reader, &ignored)) return 0;
  const uint32_t code = kind & ~(HAS_Z | HAS_M | HAS_SRID), thousands = code / 1000;
  const int64_t width = 2 + !!(kind & HAS_Z) + !!(kind & HAS_M) + (thousands > 0) + (thousands > 2);
  const uint32_t type = code % 1000;
  if (type == POINT) return take_points(reader, 1, width);
  if (type < LINE || type > LAST_COLLECTION || !take_u32(reader, &count)) return 0;
  if (type == LINE) return take_points(reader, count, width);
  if (type >= FIRST_COLLECTION && depth >= DEEPEST) return 0;
  for (uint32_t i = 0; i < count; i++) {
    if (type >= FIRST_COLLECTION) {
      if (!take_geometry(reader, depth + 1)) return 0;
      reader->is_little = is_little;
    } else {
      uint32_t points;
      if (!take_u32(reader, &points) || !take_points(reader, points, width)) return 0;
    }
  }
  return 1;
}

/* Writes the box of each geometry, NaN for those without points; those that `validity` does not
 * have are left as they are. Returns how many were read: fewer when the next is no geometry. */
int64_t lt_wkb_boxes(const uint8_t *data, const int64_t *edges, const uint8_t *validity,
                     int64_t count, double *boxes) {
  for (int64_t i = 0; i < count; i++) {
    double *const box = boxes + 4 * i;
    reader_t reader = {data + edges[i], data + edges[i + 1], box, 1};
    if (!validity[i]) continue;
    for (int side = 0; side < 4; side++) box[side] = NAN;
    if (!take_geometry(&reader, 0)) return i;
  }
  return count;
}

/* Writes the places of points with coordinates of 16 bits on a Hilbert curve. */
void lt_hilbert(const uint16_t *x, const uint16_t *y, int64_t count, uint32_t *places) {
  for (int64_t i = 0; i < count; i++) {
    uint32_t a = x[i], b = y[i], place = 0;
    for (int bit = 15; bit >= 0; bit--) {
      const uint32_t in_a = a >> bit & 1, in_b = b >> bit & 1;
      const uint32_t turn = (0u - (in_a & (in_b ^ 1))) & 65535, swap = 0u - (in_b ^ 1);
      place = place << 2 | ((3 * in_a) ^ in_b);
      a ^= turn;
      b ^= turn;
      const uint32_t both = (a ^ b) & swap;
      a ^= both;
      b ^= both;
    }
    places[i] = place;
  }
}
