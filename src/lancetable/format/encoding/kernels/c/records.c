/* What Python compares with its own before it calls any other function. */

#include "records.h"

/* Raised whenever a signature changes, so that a stale library is never called. */
int64_t lt_abi(void) { return 20; }

/* The sizes of all records in the order of their declarations; 0 behind the last. */
extern const int64_t lt_record_sizes[];
const int64_t lt_record_sizes[] = {
    sizeof(page_t),      sizeof(slot_t),    sizeof(column_t),      sizeof(take_t),
    sizeof(scan_t),      sizeof(test_t),    sizeof(pair_t),        sizeof(corpus_t),
    sizeof(list_t),      sizeof(partition_t), sizeof(probing_t),   sizeof(arrow_array_t),
    0};
