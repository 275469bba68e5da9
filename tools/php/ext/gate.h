/*
 * gate: what the files of class Gate share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_PHP_GATE_H
#define SHMLIMIT_PHP_GATE_H

#include "php_shmlimit.h"
#include "zend_smart_str.h"

/* ---- gate.c ---- */

/* The spec's limit of a rule. */
struct known {
	uint32_t place;
	zend_string *rate; /* NULL: none */
	bool is_gcra;      /* requests bring their limits */
	bool is_settled;   /* requests bring their estimates */
	bool is_shared;    /* requests bring their shares */
};

struct gate {
	struct shared shared;
	zend_string *base;          /* the spec before its first rule= */
	HashTable known;            /* struct known, by the rule's name */
	struct shmlimit_gate *gate; /* NULL before the first limit */
	struct line *lines;         /* the latest */
};

/* The gate of this configuration, with a reference. */
struct gate *gate_find(const zend_string *spec);

/* Make a new gate that also has this limit. Returns NULL after throwing, and then nothing was changed. */
struct known *gate_learn(struct gate *gate, zend_object *limit);

static zend_always_inline struct known *gate_know(struct gate *gate, zend_object *limit)
{
	zend_string *rule = Z_STR_P(LIMIT_RULE(limit));
	struct known *known = zend_hash_find_ptr(&gate->known, rule);
	zval *rate = LIMIT_RATE(limit);
	bool brings = Z_TYPE_P(LIMIT_LIMIT(limit)) == IS_STRING, estimates = Z_TYPE_P(LIMIT_ESTIMATE(limit)) == IS_LONG;

	if (EXPECTED(known != NULL && (!brings || known->is_gcra) && (!estimates || known->is_settled) &&
	             (Z_TYPE_P(LIMIT_SHARE(limit)) != IS_DOUBLE || known->is_shared) &&
	             (Z_TYPE_P(rate) != IS_STRING ||
	              (known->rate != NULL && zend_string_equals(known->rate, Z_STR_P(rate))))))
		return known;
	return gate_learn(gate, limit);
}

/* ---- spec.c ---- */

/* Add word="value" and a space. */
void spec_append(smart_str *spec, const char *word, const zend_string *value);

/* Throw Error: where the spec is wrong, and why. */
void spec_throw(const char *spec, int error);

/* ---- lines.c ---- */

/* A gate calls it, in any thread. */
void lines_add(void *arg, int bad, const char *text);

/* Pass all lines that there are to the callable, or to PHP's log if there is none. */
void lines_report(struct gate *gate, zval *callable);

/* Lose all lines. */
void lines_drop(struct line *line);

/* ---- places.c ---- */

/* The places that a request holds, as a string; NULL: none. */
zend_string *places_pack(const struct shmlimit_gate_held *held, const struct shmlimit_gate_key *keys, uint32_t n);

/* Returns 0, or -EINVAL: the string is none of places_pack(). */
int places_leave(struct gate *gate, const zend_string *packed);

/* Settle by `used`, an array of ints by the rules' names. *packed becomes the places as they are then. Returns as places_leave(). */
int places_settle(struct gate *gate, HashTable *used, zend_string **packed);

/* The same of all that are kept. */
int places_settle_kept(struct gate *gate, HashTable *used);

/* Leave them when the request ends. Takes the reference. */
void places_keep(struct gate *gate, zend_string *places);

#endif
