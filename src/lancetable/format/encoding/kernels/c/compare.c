/* Neighbouring values of mapped pages, compared with constants chunk by chunk; see
 * format/encoding/compiled_range.py. Returns -1 when a page has a shape of its own or bytes contradict each
 * other: the NumPy kernels then read the page, or say what is wrong. */

#include "bits.h"
#include "pages.h"
#include "walk.h"
#include "wide.h"

/* Keeps in `mask`, or writes there, what passes a test. */
#define EACH(CONDITION)                                                                            \
  if (is_first)                                                                                    \
    for (int64_t i = 0; i < count; i++) mask[i] = (uint8_t)(CONDITION) ^ flip;                     \
  else                                                                                             \
    for (int64_t i = 0; i < count; i++) mask[i] &= (uint8_t)(CONDITION) ^ flip;

#define TEST(NAME, TYPE, FIELD)                                                                    \
  WIDE static void test_##NAME(const TYPE *values, int64_t count, const test_t *test, int is_first,\
                          uint8_t *mask) {                                                         \
    const TYPE constant = (TYPE)test->constant.FIELD;                                              \
    const uint8_t flip = test->is_opposite != 0;                                                   \
    if (test->op == LESS) {                                                                        \
      EACH(values[i] < constant)                                                                   \
    } else if (test->op == LESS_OR_EQUAL) {                                                        \
      EACH(values[i] <= constant)                                                                  \
    } else {                                                                                       \
      EACH(values[i] == constant)                                                                  \
    }                                                                                              \
  }

TEST(i8, int8_t, whole)
TEST(i16, int16_t, whole)
TEST(i32, int32_t, whole)
TEST(i64, int64_t, whole)
TEST(u8, uint8_t, natural)
TEST(u16, uint16_t, natural)
TEST(u32, uint32_t, natural)
TEST(u64, uint64_t, natural)
TEST(f32, float, real)
TEST(f64, double, real)

#define CASE(CODE, WIDTH, NAME, TYPE)                                                              \
  case (CODE) * 16 + (WIDTH):                                                                      \
    test_##NAME((const TYPE *)values, count, test, is_first, mask);                                \
    return 0;

/* Values that are aligned for their type. */
static int compare(const void *values, int64_t width, int64_t count, const test_t *test,
                   int is_first, uint8_t *mask) {
  switch (test->type * 16 + width) {
    CASE(SIGNED, 1, i8, int8_t)
    CASE(SIGNED, 2, i16, int16_t)
    CASE(SIGNED, 4, i32, int32_t)
    CASE(SIGNED, 8, i64, int64_t)
    CASE(UNSIGNED, 1, u8, uint8_t)
    CASE(UNSIGNED, 2, u16, uint16_t)
    CASE(UNSIGNED, 4, u32, uint32_t)
    CASE(UNSIGNED, 8, u64, uint64_t)
    CASE(REAL, 4, f32, float)
    CASE(REAL, 8, f64, double)
  }
  return -1;
}

/* How many of some bytes are 1; the others are 0. */
static int64_t ones(const uint8_t *mask, int64_t count) {
  int64_t found = 0, i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t word;
    memcpy(&word, mask + i, 8);
    found += (int64_t)(word * 0x0101010101010101u >> 56);
  }
  for (; i < count; i++) found += mask[i];
  return found;
}

/* Which of the rows `start` to `stop` of a column pass all tests, a byte for each; a null passes
 * none. Returns how many do. */
int64_t lt_stretch_compare(const page_t *pages, int64_t count, int64_t start, int64_t stop,
                           int64_t width, const test_t *tests, int64_t test_count, uint8_t *mask) {
  uint64_t block[BLOCK];
  uint8_t bits[MOST_VALUES / 8 + 1];
  walk_t walk = {pages, pages + count, start, stop, -1};
  part_t part;
  int64_t found = 0;
  int more;
  while ((more = next_part(&walk, &part)) > 0) {
    const page_t *page = walk.page;
    if (page->width != width || page->kind == BITS || page->items || test_count < 1) return -1;
    const uint8_t *from = part.chunk.values + part.skip * width;
    if (page->kind == PACKED) {
      unpack_part(page, &part, block);
      from = (const uint8_t *)block + part.skip * width;
    }
    const int is_aligned = (uintptr_t)from % (uintptr_t)width == 0;
    /* Values that lie anywhere are brought to an aligned place, a block at a time. */
    const int64_t step = is_aligned ? part.count : BLOCK;
    for (int64_t first = 0; first < part.count; first += step) {
      const int64_t size = part.count - first < step ? part.count - first : step;
      const void *values = from + first * width;
      if (!is_aligned) values = memcpy(block, values, (size_t)(size * width));
      for (int64_t i = 0; i < test_count; i++)
        if (compare(values, width, size, tests + i, i == 0, mask + first)) return -1;
    }
    if (page->def_kind) {
      if (present(page, &part, bits) < 0) return -1;
      for (int64_t i = 0; i < part.count; i++) mask[i] &= (uint8_t)bit_at(bits, i);
    }
    found += ones(mask, part.count);
    mask += part.count;
  }
  return more < 0 ? -1 : found;
}
