/* Single rows of flat columns as one Arrow array of structs, in a single call.
 *
 * A few rows are found in a microsecond or two; what takes time is everything around it. So all of
 * it happens here, and the result is handed over through Arrow's C data interface. Columns with
 * levels above their values, and all that cannot be read at once, take the way round through
 * format/encoding/gather.py. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "gather.h"

enum { ALIGNED = 64, ASCII_END = 128 };

/* The memory of a result, freed with the last array that uses it. */
typedef struct {
  int64_t users;
  uint8_t *values, *text;
} owner_t;

/* A column, and the items of its lists of fixed size. */
typedef struct {
  arrow_array_t array, items;
  arrow_array_t *children[1];
  const void *buffers[3], *item_buffers[2];
} leaf_t;

typedef struct {
  owner_t owner;
  const void *buffers[1];
  leaf_t leaves[];
} batch_t;

static void release(arrow_array_t *array) {
  owner_t *owner = array->private_data;
  for (int64_t i = 0; i < array->n_children; i++)
    if (array->children[i]->release) array->children[i]->release(array->children[i]);
  array->release = NULL;
  if (__atomic_sub_fetch(&owner->users, 1, __ATOMIC_ACQ_REL)) return;
  free(owner->values);
  free(owner->text);
  free(owner);
}

static void describe(arrow_array_t *array, owner_t *owner, int64_t length, const void **buffers,
                     int64_t count) {
  array->length = length;
  array->buffers = buffers;
  array->n_buffers = count;
  array->release = release;
  array->private_data = owner;
  owner->users++;
}

static uint8_t *aligned(uint8_t *memory) {
  return memory + (ALIGNED - (uintptr_t)memory % ALIGNED) % ALIGNED;
}

static void describe_leaf(leaf_t *leaf, owner_t *owner, const column_t *column, int64_t rows) {
  const int is_list = column->list_size > 0, is_text = column->out == TEXT_OUT;
  describe(&leaf->array, owner, rows, leaf->buffers, is_list ? 1 : is_text ? 3 : 2);
  if (column->any_level) {
    /* The bitmap takes the place of the levels. */
    leaf->array.null_count = mark_zeros(column->def, rows, (uint8_t *)column->def);
    if (leaf->array.null_count) leaf->buffers[0] = column->def;
  }
  leaf->buffers[1] = column->values;
  if (is_text) leaf->buffers[2] = column->text;
  if (is_list) {
    describe(&leaf->items, owner, rows * column->list_size, leaf->item_buffers, 2);
    leaf->item_buffers[1] = column->values;
    leaf->children[0] = &leaf->items;
    leaf->array.children = leaf->children;
    leaf->array.n_children = 1;
  }
}

/* Rows that were in memory so often will be there again: one place is looked at then, of another
 * column each time. For a few rows even that look takes longer than finding them, and only every
 * fourth take has one. */
static void look_ahead(take_t *take, const column_t *columns, const int64_t *positions,
                       const int64_t *offsets, int64_t rows) {
  enum { SURE = 16, FEW_ROWS = 8, SELDOM = 4 };
  const int64_t warm = __atomic_load_n(&take->warm, __ATOMIC_RELAXED);
  int64_t asked = 0;
  if (warm >= SURE && (rows > FEW_ROWS || warm % SELDOM == 0))
    asked = lt_gather_ahead(columns + warm / SELDOM % take->count, 1, positions, offsets, rows, 1);
  if (warm < SURE || asked)
    asked += lt_gather_ahead(columns, take->count, positions, offsets, rows, take->samples);
  __atomic_store_n(&take->warm, asked ? 0 : warm + 1, __ATOMIC_RELAXED);
}

/* Whether the files of all rows are open. */
static int are_ready(const take_t *take, const int64_t *positions, int64_t rows) {
  for (int64_t i = 0; i < rows; i++)
    if (positions[i] < 0 || positions[i] >= take->fragments || !take->ready[positions[i]]) return 0;
  return 1;
}

/* Takes rows by the positions of their fragments and their offsets in them; without positions by
 * their numbers in the table. Up to so many threads share the work. Returns 0, or 1 when text is not
 * plain ASCII; a negative number, and no array, when there is no such row or something has to be
 * opened first. */
int64_t lt_take(take_t *take, const int64_t *positions, const int64_t *offsets, int64_t rows,
                int64_t threads, arrow_array_t *out) {
  const int64_t count = take->count;
  int64_t sizes[2], outcome = -1;
  uint8_t *meanwhile = NULL, *values = NULL, *text = NULL;
  batch_t *batch = NULL;
  column_t *columns = malloc((size_t)count * sizeof(column_t) + (positions ? 0 : (size_t)rows * 16));
  if (!columns) return -1;
  if (!positions) {
    int64_t *places = (int64_t *)(columns + count);
    if (lt_gather_places(offsets, rows, take->starts, take->fragments, take->ready, places,
                         places + rows))
      goto done;
    positions = places;
    offsets = places + rows;
  } else if (!are_ready(take, positions, rows)) {
    goto done;
  }
  memcpy(columns, take->columns, (size_t)count * sizeof(column_t));
  look_ahead(take, columns, positions, offsets, rows);
  lt_gather_layout(columns, count, rows, sizes);
  values = malloc((size_t)sizes[0] + ALIGNED);
  meanwhile = malloc((size_t)sizes[1] + 1);
  if (!values || !meanwhile) goto done;
  const int64_t bytes = lt_gather_values(columns, count, positions, offsets, rows, aligned(values),
                                         meanwhile, threads);
  if (bytes < 0) goto done;
  text = malloc((size_t)bytes + ALIGNED);
  batch = calloc(1, sizeof(batch_t) + (size_t)count * (sizeof(leaf_t) + sizeof(arrow_array_t *)));
  if (!text || !batch) goto done;
  if (lt_gather_text(columns, count, rows, aligned(text), threads) < 0) goto done;
  outcome = 0;
  memset(out, 0, sizeof *out);
  describe(out, &batch->owner, rows, batch->buffers, 1);
  out->children = (arrow_array_t **)(batch->leaves + count);
  out->n_children = count;
  for (int64_t i = 0; i < count; i++) {
    describe_leaf(batch->leaves + i, &batch->owner, columns + i, rows);
    out->children[i] = &batch->leaves[i].array;
    outcome |= columns[i].is_text && columns[i].any_byte >= ASCII_END;
  }
  batch->owner.values = values;
  batch->owner.text = text;
done:
  if (outcome < 0) {
    free(values);
    free(text);
    free(batch);
  }
  free(meanwhile);
  free(columns);
  return outcome;
}
