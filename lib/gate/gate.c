/*
 * gate: the public functions of a gate, but those of event loops, which are in pending.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>

#include "global_library.h"
#include "gate_request.h"
#include "export.h"
#include "sized.h"

EXPORT int shmlimit_gate_check(const char *text, struct shmlimit_gate_wrong *out)
{
	struct shmlimit_gate_wrong wrong = { .length = 0 };
	struct spec spec;
	int error;

	if (text == NULL)
		return -EINVAL;
	error = spec_read(text, &spec, &wrong);
	if (error == 0)
		spec_free(&spec);
	else if (error == -EINVAL && out != NULL)
		return sized_out(out, &wrong, sizeof(wrong)) == 0 ? error : -EINVAL;
	return error;
}

EXPORT int shmlimit_gate_open(const char *text, struct shmlimit_gate **out)
{
	struct shmlimit_gate_wrong wrong;
	struct shmlimit_gate *gate;
	int error;

	if (text == NULL || out == NULL)
		return -EINVAL;
	gate = calloc(1, sizeof(*gate));
	if (gate == NULL)
		return -ENOMEM;
	error = spec_read(text, &gate->spec, &wrong);
	if (error == 0) {
		if (gate->spec.backend != NULL)
			global_library_pin();
		error = segment_ref_begin(&gate->segment_ref, &gate->spec);
		if (error == 0) {
			*out = gate;
			return 0;
		}
		spec_free(&gate->spec);
	}
	free(gate);
	return error;
}

EXPORT void shmlimit_gate_close(struct shmlimit_gate *gate)
{
	if (gate == NULL)
		return;
	segment_ref_end(&gate->segment_ref);
	spec_free(&gate->spec);
	free(gate);
}

EXPORT size_t shmlimit_gate_limits(const struct shmlimit_gate *gate)
{
	return gate->spec.limit_count;
}

EXPORT void shmlimit_gate_report(struct shmlimit_gate *gate, void (*report)(void *arg, int bad, const char *text),
                                 void *arg)
{
	gate->segment_ref.report = report;
	gate->segment_ref.arg = arg;
}

EXPORT int shmlimit_gate_attach(struct shmlimit_gate *gate)
{
	return gate == NULL ? -EINVAL : segment_ref_look(&gate->segment_ref);
}

EXPORT int shmlimit_gate_ask(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                             struct shmlimit_gate_answer *out)
{
	struct gate_request q;

	q.held = NULL;
	q.take.steps = 0;
	return gate_request_begin(gate, keys, n, out, &q);
}

EXPORT int shmlimit_gate_enter(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                               struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held)
{
	struct gate_request q;

	if (held == NULL || held->struct_size < HELD_SIZE_1_0)
		return -EINVAL;
	held->count = held->bill_count = 0;
	q.held = held;
	q.take.steps = 0;
	return gate_request_begin(gate, keys, n, out, &q);
}

int gate_has_key(const struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n, uint32_t key)
{
	return key < n && keys[key].limit < gate->spec.limit_count && keys[key].length > 0 && keys[key].bytes != NULL;
}

static void leave(const struct spec *spec, const struct view *view, const struct shmlimit_gate_key *keys,
                  const struct shmlimit_gate_place *place)
{
	const struct shmlimit_gate_key *from = &keys[place->key];
	struct key key;

	key_make(&spec->limits[from->limit], from->bytes, from->length, &key);
	(void)shmlimit_leave(view->limiter, place->rule, key.bytes, key.length, &place->place);
}

EXPORT int shmlimit_gate_leave(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                               struct shmlimit_gate_held *held)
{
	const struct view *view;
	int error;

	if (gate == NULL || (keys == NULL && n > 0) || held == NULL || held->struct_size < HELD_SIZE_1_0 ||
	    held->count > SHMLIMIT_REQUESTS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < held->count; i++)
		if (!gate_has_key(gate, keys, n, held->places[i].key))
			return -EINVAL;
	if (held->count == 0)
		return 0;
	view = segment_ref_enter(&gate->segment_ref, &error);
	for (uint32_t i = 0; view != NULL && view->number == held->segment && i < held->count; i++)
		leave(&gate->spec, view, keys, &held->places[i]);
	segment_ref_leave();
	held->count = 0;
	return 0;
}
