/* Parts of a job, done by the caller and by helpers that are started for it. */

#ifndef LANCETABLE_SHARE_H
#define LANCETABLE_SHARE_H

#include <stdint.h>

/* Does parts 0 to `parts` - 1 in any order, some of them at the same time; returns when all are
 * done. The caller is one of the threads; alone, or where there are no others, it does the parts one
 * after the other. */
void share_parts(void (*part)(void *work, int64_t number), void *work, int64_t parts,
                 int64_t threads);

#endif
