/* Copies into results that are larger than the caches near a processor.
 *
 * A plain store first reads the line it changes. For a result that is far larger than a cache that
 * doubles the traffic to memory, which is what limits decoding of flat values; a streaming store
 * writes whole lines without reading them. Small results are better kept in the cache, where
 * whoever asked for them finds them. */

#ifndef LANCETABLE_STREAM_H
#define LANCETABLE_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { STREAM_FROM_BYTES = 4 << 20 };

/* Copies a piece of a large result, past the caches where the processor can. */
static inline void stream_copy(uint8_t *to, const uint8_t *from, size_t size) {
#if defined(__SSE2__)
  if (size >= 256) {
    const size_t head = (64 - (uintptr_t)to % 64) % 64;
    memcpy(to, from, head);
    to += head, from += head, size -= head;
    for (; size >= 64; to += 64, from += 64, size -= 64) {
      const __m128i a = _mm_loadu_si128((const __m128i *)from);
      const __m128i b = _mm_loadu_si128((const __m128i *)(from + 16));
      const __m128i c = _mm_loadu_si128((const __m128i *)(from + 32));
      const __m128i d = _mm_loadu_si128((const __m128i *)(from + 48));
      _mm_stream_si128((__m128i *)to, a);
      _mm_stream_si128((__m128i *)(to + 16), b);
      _mm_stream_si128((__m128i *)(to + 32), c);
      _mm_stream_si128((__m128i *)(to + 48), d);
    }
  }
#endif
  memcpy(to, from, size);
}

/* Makes streamed bytes visible to other threads. */
static inline void stream_end(void) {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

#endif
