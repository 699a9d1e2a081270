/* Functions that are compiled twice: for processors with wide registers, and for all others.
 *
 * Which of the two runs is decided once, when the library is loaded. It pays for loops that compare
 * or shift 64-bit words, for which the registers that every x86 processor has are made poorly. Other
 * processors and systems have one version only. */

#ifndef LANCETABLE_WIDE_H
#define LANCETABLE_WIDE_H

#define WIDE
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#if __has_attribute(target_clones)
#undef WIDE
#define WIDE __attribute__((target_clones("avx2", "default")))
#endif
#endif

#endif
