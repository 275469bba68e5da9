/*
 * duration: lengths of time as people write them, and as they are printed: 2s, 1.5s, 500ms, 1h30m,
 * 15 minutes. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_DURATION_H
#define SHMLIMIT_LIB_DURATION_H

#include <stdint.h>

/* the one above is printed as "never" */
#define DURATION_MAX (UINT64_MAX - 1)
#define DURATION_UNITS "ns, us, ms, s, m, h, d, w, month or y" /* a month is 30 days, a year 365 */
#define DURATION_TEXT_MAX 64

/*
 * Read numbers with units, each shorter than the last, with or without spaces: "1h30m", "1.5 s".
 * Words are read in any case, except that M alone is neither a minute nor a month. `bare`: the
 * first may be a unit alone: "m". Returns 0 with *text past the last unit; or, with *text where it
 * is wrong, -EINVAL: no unit, or none of this name; -EILSEQ: not shorter than the last; -EDOM:
 * finer than a nanosecond; -ERANGE: longer than DURATION_MAX.
 */
int duration_scan(const char **text, int bare, uint64_t *ns);

/* Call `each` with every word that stands for a unit. */
void duration_words(void (*each)(void *context, const char *word), void *context);

/*
 * Exactly: "1h30m", "1.5s", "0s"; UINT64_MAX: "never". Needs DURATION_TEXT_MAX bytes; reads back
 * the same.
 */
const char *duration_text(char *text, uint64_t ns);

/* So much of a unit, which is a power of ten of what is counted: "1.5s". Returns the end. */
char *duration_put_fraction(char *to, uint64_t value, uint64_t unit, const char *name);

#endif
