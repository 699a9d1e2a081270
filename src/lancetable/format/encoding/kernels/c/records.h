/* Records that Python fills or reads, as format/encoding/kernels/records.py declares them.
 *
 * They consist of 64-bit words. The number of each word is checked when this is compiled, and tests
 * compare it with that in Python; the size of each record is compared when the library is loaded.
 * Where addresses are shorter, nothing can be compiled, and NumPy does the work. */

#ifndef LANCETABLE_RECORDS_H
#define LANCETABLE_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#define WORD(TYPE, FIELD, NUMBER) \
  _Static_assert(offsetof(TYPE, FIELD) == 8 * (NUMBER), #TYPE "." #FIELD " is not word " #NUMBER)
#define WORDS(TYPE, COUNT) \
  _Static_assert(sizeof(TYPE) == 8 * (COUNT), #TYPE " does not have " #COUNT " words")

enum { UNREADABLE = -1, UNOPENED, FLAT, BITS, PACKED, TEXT, STRIDED, CONSTANT, RUNS };
enum { NO_LEVELS, RAW_LEVELS, INLINE_LEVELS, PACKED_LEVELS, RUN_LEVELS };

/* A page; fields without a meaning for it are 0. */
typedef struct {
  const uint8_t *data;       /* the chunks, the strided values, or the constant value */
  int64_t size;
  const int64_t *starts;     /* where each chunk starts, and where the last one ends */
  const int64_t *firsts;     /* values before each chunk, and of all */
  const int64_t *row_firsts; /* rows that start before each chunk; only with lists */
  int64_t chunks, shift;     /* all chunks but the last hold 1 << shift values; -1: they differ */
  int64_t rows, first_row;
  int64_t kind, width;       /* bytes of a value, or of an offset of text */
  int64_t header, is_large;
  int64_t rep_kind, rep_width, def_kind, def_width;
  const uint16_t *level_map; /* what each definition level is called in the result */
  int64_t max_rep, max_def, max_visible;
  const uint64_t *symbols;   /* of FSST, or none */
  const uint8_t *lengths;
  const uint8_t *items;      /* of a dictionary, or none */
  const int64_t *item_edges; /* when the items are text */
  int64_t item_count, item_width;
} page_t;

WORD(page_t, data, 0); WORD(page_t, size, 1); WORD(page_t, starts, 2); WORD(page_t, firsts, 3);
WORD(page_t, row_firsts, 4); WORD(page_t, chunks, 5); WORD(page_t, shift, 6); WORD(page_t, rows, 7);
WORD(page_t, first_row, 8); WORD(page_t, kind, 9); WORD(page_t, width, 10);
WORD(page_t, header, 11); WORD(page_t, is_large, 12); WORD(page_t, rep_kind, 13);
WORD(page_t, rep_width, 14); WORD(page_t, def_kind, 15); WORD(page_t, def_width, 16);
WORD(page_t, level_map, 17); WORD(page_t, max_rep, 18); WORD(page_t, max_def, 19);
WORD(page_t, max_visible, 20); WORD(page_t, symbols, 21); WORD(page_t, lengths, 22);
WORD(page_t, items, 23); WORD(page_t, item_edges, 24); WORD(page_t, item_count, 25);
WORD(page_t, item_width, 26);
WORDS(page_t, 27);

/* The pages of a column in one data file. */
typedef struct {
  const page_t *pages;
  int64_t count;
} slot_t;

WORD(slot_t, pages, 0); WORD(slot_t, count, 1);
WORDS(slot_t, 2);

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

enum { FIXED_OUT = 1, BITS_OUT, TEXT_OUT };

/* A column of the result: what it is made of, and where it goes. */
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

WORD(column_t, slots, 0); WORD(column_t, out, 1); WORD(column_t, width, 2);
WORD(column_t, has_lists, 3); WORD(column_t, entries, 4); WORD(column_t, items, 5);
WORD(column_t, bytes, 6); WORD(column_t, any_level, 7); WORD(column_t, any_byte, 8);
WORD(column_t, values, 9); WORD(column_t, offsets, 10); WORD(column_t, rep, 11);
WORD(column_t, def, 12); WORD(column_t, places, 13); WORD(column_t, text, 14);
WORD(column_t, is_unreadable, 15); WORD(column_t, list_size, 16); WORD(column_t, is_text, 17);
WORDS(column_t, 18);

/* What to take, whichever rows they are. */
typedef struct {
  const column_t *columns;
  int64_t count;
  const int64_t *starts; /* rows before each fragment, and all of them */
  int64_t fragments;
  const uint8_t *ready;
  int64_t samples; /* places looked at to see whether rows are in memory */
  int64_t warm;    /* takes in a row that found their samples there */
} take_t;

WORD(take_t, columns, 0); WORD(take_t, count, 1); WORD(take_t, starts, 2);
WORD(take_t, fragments, 3); WORD(take_t, ready, 4); WORD(take_t, samples, 5); WORD(take_t, warm, 6);
WORDS(take_t, 7);

/* What is known about the levels of lists before a walk over them, and what it found. */
typedef struct {
  int64_t max_def, max_visible;
  int64_t any_row, any_item; /* set: what all levels written have set */
} scan_t;

WORD(scan_t, max_def, 0); WORD(scan_t, max_visible, 1); WORD(scan_t, any_row, 2);
WORD(scan_t, any_item, 3);
WORDS(scan_t, 4);

enum { SIGNED, UNSIGNED, REAL };
enum { LESS, LESS_OR_EQUAL, EQUAL };

/* A comparison with a constant of a type, or its opposite. */
typedef struct {
  int64_t type, op, is_opposite;
  union {
    int64_t whole;
    uint64_t natural;
    double real;
  } constant;
} test_t;

WORD(test_t, type, 0); WORD(test_t, op, 1); WORD(test_t, is_opposite, 2); WORD(test_t, constant, 3);
WORDS(test_t, 4);

/* A number and where it was found. */
typedef struct {
  uint64_t value;
  int64_t place;
} pair_t;

WORD(pair_t, value, 0); WORD(pair_t, place, 1);
WORDS(pair_t, 2);

/* The documents of a partition of a full-text index. */
typedef struct {
  const float *norms;     /* what their lengths add to frequencies */
  const uint64_t *rows;
  const uint8_t *allowed; /* 1 for those that may be found; NULL when all may */
  int64_t documents;
  int64_t ascending; /* their rows ascend */
  double scale;      /* how much larger shares are than the maxima say, at most */
} corpus_t;

WORD(corpus_t, norms, 0); WORD(corpus_t, rows, 1); WORD(corpus_t, allowed, 2);
WORD(corpus_t, documents, 3); WORD(corpus_t, ascending, 4); WORD(corpus_t, scale, 5);
WORDS(corpus_t, 6);

/* The documents that have a word of a query. */
typedef struct {
  const uint32_t *ids;
  const uint32_t *frequencies;
  const double *maxima; /* the largest share of each 128 documents */
  int64_t count;
  const uint32_t *positions;
  const int64_t *starts; /* the first position of each document */
  int64_t gap;           /* the distance from the word before in the query */
  double weight;
} list_t;

WORD(list_t, ids, 0); WORD(list_t, frequencies, 1); WORD(list_t, maxima, 2);
WORD(list_t, count, 3); WORD(list_t, positions, 4); WORD(list_t, starts, 5);
WORD(list_t, gap, 6); WORD(list_t, weight, 7);
WORDS(list_t, 8);

enum { PLAIN_VECTORS, PRODUCT_CODES, SCALAR_CODES, ROTATED_CODES, WIDE_ROTATED_CODES };

/* One partition of a vector index; without levels there is no graph. */
typedef struct {
  const uint8_t *codes;       /* by rows; product codes without a graph by bytes of the code */
  const uint64_t *rows;
  int64_t length;
  const float *centroid;
  const float *factors;       /* of rotated codes: what is added, then what scales, for all rows */
  const int64_t *levels;      /* where each level starts in the ids, and where the last one ends */
  int64_t level_count;
  const uint32_t *ids;        /* the vectors of each level, ascending */
  const int64_t *edges;       /* where the neighbours of each of these start, and the last end */
  const uint32_t *neighbours;
  int64_t entry;
} partition_t;

WORD(partition_t, codes, 0); WORD(partition_t, rows, 1); WORD(partition_t, length, 2);
WORD(partition_t, centroid, 3); WORD(partition_t, factors, 4); WORD(partition_t, levels, 5);
WORD(partition_t, level_count, 6); WORD(partition_t, ids, 7); WORD(partition_t, edges, 8);
WORD(partition_t, neighbours, 9); WORD(partition_t, entry, 10);
WORDS(partition_t, 11);

/* How partitions are searched. */
typedef struct {
  int64_t kind, type, metric, dim;
  int64_t sub_vectors, code_bits;
  const float *codebook;      /* values of a dimension side by side, one dimension after the other */
  const float *parameters;    /* of scalar codes the least value and the step, of rotated the shift */
  const float *rotated;       /* rotated queries */
  const int64_t *spans;       /* upper half of rows, ascending, where their marks start, how many rows;
                                 a negative start: all are live; without spans all rows are */
  int64_t span_count;
  const uint8_t *live;        /* marks of rows */
  const float *range;         /* the least distance, and the one that is too far */
  int64_t most, ef;
  float *tables;              /* room for the distances of codes */
  float *heap;                /* room for twice as many as the largest graph has vectors, and ef */
  uint64_t *heap_rows;
  uint8_t *visited;           /* room for the largest graph */
} probing_t;

WORD(probing_t, kind, 0); WORD(probing_t, type, 1); WORD(probing_t, metric, 2);
WORD(probing_t, dim, 3); WORD(probing_t, sub_vectors, 4); WORD(probing_t, code_bits, 5);
WORD(probing_t, codebook, 6); WORD(probing_t, parameters, 7); WORD(probing_t, rotated, 8);
WORD(probing_t, spans, 9); WORD(probing_t, span_count, 10); WORD(probing_t, live, 11);
WORD(probing_t, range, 12); WORD(probing_t, most, 13); WORD(probing_t, ef, 14);
WORD(probing_t, tables, 15); WORD(probing_t, heap, 16); WORD(probing_t, heap_rows, 17);
WORD(probing_t, visited, 18);
WORDS(probing_t, 19);

/* The array of Arrow's C data interface. */
typedef struct arrow_array {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void **buffers;
  struct arrow_array **children, *dictionary;
  void (*release)(struct arrow_array *);
  void *private_data;
} arrow_array_t;

WORD(arrow_array_t, length, 0); WORD(arrow_array_t, null_count, 1); WORD(arrow_array_t, offset, 2);
WORD(arrow_array_t, n_buffers, 3); WORD(arrow_array_t, n_children, 4);
WORD(arrow_array_t, buffers, 5); WORD(arrow_array_t, children, 6);
WORD(arrow_array_t, dictionary, 7); WORD(arrow_array_t, release, 8);
WORD(arrow_array_t, private_data, 9);
WORDS(arrow_array_t, 10);

#endif
