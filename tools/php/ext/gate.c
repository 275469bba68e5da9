/*
 * gate: gates of one configuration share one C gate, which stays open from request to request. PHP passes the limits of
 * a request with the request: a limit that the gate does not know yet makes a new gate.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "gate.h"

#include <errno.h>

static void known_drop(zval *entry)
{
	struct known *known = Z_PTR_P(entry);

	if (known->rate != NULL)
		zend_string_release(known->rate);
	pefree(known, 1);
}

static void gate_destroy(struct shared *shared)
{
	struct gate *gate = (struct gate *)shared;

	if (gate->gate != NULL) {
		shmlimit_gate_report(gate->gate, NULL, NULL);
		shmlimit_gate_close(gate->gate);
	}
	zend_hash_destroy(&gate->known);
	lines_drop(gate->lines);
	zend_string_release(gate->base);
	pefree(gate, 1);
}

struct gate *gate_find(const zend_string *spec)
{
	struct gate *gate = (struct gate *)shared_find(&SHMLIMIT_G(gates), spec);

	if (gate != NULL)
		return gate;
	gate = pecalloc(1, sizeof(*gate), 1);
	gate->shared.destroy = gate_destroy;
	gate->base = zend_string_init(ZSTR_VAL(spec), ZSTR_LEN(spec), 1);
	zend_hash_init(&gate->known, 8, NULL, known_drop, 1);
	shared_add(&SHMLIMIT_G(gates), spec, &gate->shared);
	return gate;
}

/* The spec of all known limits, in the order of their places, which are those in the table. */
static zend_string *full_spec(struct gate *gate)
{
	smart_str spec = { 0 };
	struct known *known;
	zend_string *rule;

	smart_str_append(&spec, gate->base);
	ZEND_HASH_FOREACH_STR_KEY_PTR(&gate->known, rule, known)
	{
		spec_append(&spec, "rule", rule);
		if (known->rate != NULL)
			spec_append(&spec, "rate", known->rate);
		if (known->is_gcra)
			smart_str_appends(&spec, "algorithm=gcra ");
		/* What a request takes comes with it. */
		if (known->is_settled)
			smart_str_appends(&spec, "estimate=1 ");
		if (known->is_shared)
			smart_str_appends(&spec, "share=1 ");
	}
	ZEND_HASH_FOREACH_END();
	smart_str_0(&spec);
	return spec.s;
}

struct known *gate_learn(struct gate *gate, zend_object *limit)
{
	zend_string *rule = Z_STR_P(LIMIT_RULE(limit));
	zend_string *rate = Z_TYPE_P(LIMIT_RATE(limit)) == IS_STRING ? Z_STR_P(LIMIT_RATE(limit)) : NULL;
	struct known *known = zend_hash_find_ptr(&gate->known, rule);
	zend_string *before = known == NULL ? NULL : known->rate, *name, *spec;
	bool is_new = known == NULL, was_gcra = !is_new && known->is_gcra, was_settled = !is_new && known->is_settled;
	bool was_shared = !is_new && known->is_shared;
	struct shmlimit_gate *opened;
	int error;

	if (is_new) {
		known = pecalloc(1, sizeof(*known), 1);
		known->place = zend_hash_num_elements(&gate->known);
		name = zend_string_init(ZSTR_VAL(rule), ZSTR_LEN(rule), 1);
		zend_hash_add_new_ptr(&gate->known, name, known);
		zend_string_release(name);
	}
	if (rate == NULL)
		known->rate = before == NULL ? NULL : zend_string_copy(before);
	else
		known->rate = zend_string_init(ZSTR_VAL(rate), ZSTR_LEN(rate), 1);
	known->is_gcra = was_gcra || Z_TYPE_P(LIMIT_LIMIT(limit)) == IS_STRING;
	known->is_settled = was_settled || Z_TYPE_P(LIMIT_ESTIMATE(limit)) == IS_LONG;
	known->is_shared = was_shared || Z_TYPE_P(LIMIT_SHARE(limit)) == IS_DOUBLE;
	spec = full_spec(gate);
	error = strlen(ZSTR_VAL(spec)) != ZSTR_LEN(spec) ? -EINVAL : shmlimit_gate_open(ZSTR_VAL(spec), &opened);
	if (error == 0) {
		shmlimit_gate_report(opened, lines_add, gate);
		if (gate->gate != NULL) {
			shmlimit_gate_report(gate->gate, NULL, NULL);
			shmlimit_gate_close(gate->gate);
		}
		gate->gate = opened;
		if (before != NULL)
			zend_string_release(before);
	} else {
		spec_throw(ZSTR_VAL(spec), error);
		if (is_new) {
			zend_hash_del(&gate->known, rule);
		} else {
			if (known->rate != NULL)
				zend_string_release(known->rate);
			known->rate = before;
			known->is_gcra = was_gcra;
			known->is_settled = was_settled;
			known->is_shared = was_shared;
		}
		known = NULL;
	}
	zend_string_release(spec);
	return known;
}
