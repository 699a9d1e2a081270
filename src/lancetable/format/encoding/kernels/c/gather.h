/* Records of columns, as format/encoding/kernels/addressing.py writes them, and what is done
 * with them in gather.c. */

#ifndef LANCETABLE_GATHER_H
#define LANCETABLE_GATHER_H

#include <stdint.h>

#include "pages.h"

enum { FIXED_OUT = 1, BITS_OUT, TEXT_OUT };

typedef struct {
  const page_t *pages;
  int64_t count;
} slot_t;

/* Where a value is: first its chunk and its number there, later its bytes. */
typedef struct {
  const page_t *page;
  union {
    int64_t chunk;
    const uint8_t *at;
  };
  union {
    int64_t inside;
    int64_t size;
  };
} place_t;

typedef struct {
  const slot_t *slots;
  int64_t out, width, has_lists;
  int64_t entries, items, bytes;   /* levels, values and bytes of text of the result */
  int64_t any_level, any_byte;     /* what all definition levels, all bytes of text have set */
  uint8_t *values;
  void *offsets;
  uint16_t *rep, *def;
  place_t *places;                 /* of the values; with lists or text */
  uint8_t *text;
  int64_t is_unreadable;           /* some page of it has a shape of its own */
  int64_t list_size, is_text;      /* items of a list of fixed size; whether bytes must be UTF-8 */
} column_t;

int64_t lt_gather_places(const int64_t *rows, int64_t count, const int64_t *starts,
                         int64_t fragments, const uint8_t *ready, int64_t *positions,
                         int64_t *offsets);
int64_t lt_gather_ahead(const column_t *columns, int64_t count, const int64_t *positions,
                        const int64_t *offsets, int64_t rows, int64_t samples);
void lt_gather_layout(column_t *columns, int64_t count, int64_t rows, int64_t *sizes);
int64_t lt_gather_values(column_t *columns, int64_t count, const int64_t *positions,
                         const int64_t *offsets, int64_t rows, uint8_t *memory,
                         uint8_t *meanwhile);
int64_t lt_gather_text(column_t *columns, int64_t count, int64_t rows, uint8_t *memory);

#endif
