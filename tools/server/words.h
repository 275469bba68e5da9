/*
 * words: the spec of a gate (shmlimit_gate(3)), made of the words of a server's configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_SERVER_WORDS_H
#define SHMLIMIT_SERVER_WORDS_H

#include "shmlimit_gate.h"

/*
 * Write a space and the word, with a backslash before each character that a spec would take for something else. Writes no
 * NUL. Returns the number of bytes; `to` NULL: only that.
 */
size_t words_write(char *to, const char *word);

/* Can a segment, or a rule, have this name? Returns NULL, or what would be right. */
const char *words_check_segment(const char *name);
const char *words_check_rule(const char *name);

/*
 * Is the word right as an option of a gate, or of a limit? Returns NULL, or what would be right, which may be in *wrong. The
 * rule's name is no option.
 */
const char *words_check_gate(const char *word, struct shmlimit_gate_wrong *wrong);
const char *words_check_limit(const char *word, struct shmlimit_gate_wrong *wrong);

/*
 * What a request used: the sum of the numbers in the text, such as "1234" or "0.120, 1.052 : -", times `scale`, rounded up.
 * SHMLIMIT_GATE_NOT_KNOWN: there is no number, or anything else.
 */
uint64_t words_used(const char *text, size_t length, uint64_t scale);

/* Is the text of a rate= a number of places, such as "20 at once"? */
int words_has_places(const char *rate);

/*
 * The share of a request, such as "4" or "0.5", in thousandths, at most 1000000000; 0: it is none. *wrong: and not empty or
 * "-", which is a value that is missing.
 */
uint32_t words_share(const char *text, size_t length, int *wrong);

/*
 * What an error log says of a request that was denied or delayed, or would have been in a dry run, before "by rule"; NULL of all
 * others. *delayed: it was not denied, and is logged one level lower.
 */
const char *words_event(const struct shmlimit_gate_answer *answer, int *delayed);

/*
 * The header fields in which proxies name the client; NULL ends them. For shmlimit_gate_forwarded().
 */
extern const char *const words_forwarded[];

/* What became of a request, for logs: "PASSED" ...; NULL if there was no limit. */
const char *words_outcome(const struct shmlimit_gate_answer *answer);

#endif
