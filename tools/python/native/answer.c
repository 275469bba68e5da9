/*
 * answer: what ask() returns.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "native.h"

#include <string.h>

/* Names of header fields: as WSGI has them, and in small letters as bytes, as ASGI has them. */
static const char *const names[NAMES] = {
	"RateLimit-Policy",      "RateLimit",         "Retry-After", "X-RateLimit-Limit",
	"X-RateLimit-Remaining", "X-RateLimit-Reset",
};

int answer_make_names(struct state *s)
{
	for (size_t i = 0; i < NAMES; i++) {
		PyObject *lower;

		if (keep(&s->text_names[i], PyUnicode_InternFromString(names[i])) != 0)
			return -1;
		lower = PyObject_CallMethod(s->text_names[i], "lower", NULL);
		if (lower == NULL || keep(&s->byte_names[i], PyUnicode_AsASCIIString(lower)) != 0) {
			Py_XDECREF(lower);
			return -1;
		}
		Py_DECREF(lower);
	}
	return 0;
}

static PyObject *make_name(const struct state *s, const struct gate_field *field, int as_bytes)
{
	for (size_t i = 0; i < NAMES; i++)
		if (strlen(names[i]) == field->name_length && memcmp(names[i], field->name, field->name_length) == 0)
			return shared(as_bytes ? s->byte_names[i] : s->text_names[i]);
	return as_bytes ? PyBytes_FromStringAndSize(field->name, field->name_length)
	                : PyUnicode_FromStringAndSize(field->name, field->name_length);
}

static PyObject *make_fields(const struct state *s, const struct gate_answer *answer, int as_bytes)
{
	PyObject *fields = PyList_New(answer->field_count);

	for (uint32_t i = 0; fields != NULL && i < answer->field_count; i++) {
		const struct gate_field *field = &answer->fields[i];
		PyObject *parts[] = {
			make_name(s, field, as_bytes),
			as_bytes ? PyBytes_FromStringAndSize(field->value, field->value_length)
				 : PyUnicode_FromStringAndSize(field->value, field->value_length),
		};
		PyObject *pair = make_tuple(parts, 2);

		if (pair == NULL)
			Py_CLEAR(fields);
		else
			PyList_SetItem(fields, i, pair);
	}
	return fields;
}

PyObject *answer_make_places(const struct gate_held *held, const struct gate_key *keys, Py_ssize_t n)
{
	PyObject *made = PyTuple_New(1 + 3 * n);

	for (Py_ssize_t i = 0; made != NULL && i < 1 + 3 * n; i++) {
		const struct gate_key *key = &keys[(i - 1) / 3];
		PyObject *part = i == 0       ? PyByteArray_FromStringAndSize((const char *)held, sizeof(*held))
		                 : i % 3 == 1 ? PyLong_FromUnsignedLong(key->limit)
		                 : i % 3 == 2 ? PyBytes_FromStringAndSize(key->bytes, key->length)
		                              : PyBytes_FromStringAndSize(key->rate, key->rate_length);

		if (part == NULL || PyTuple_SetItem(made, i, part) != 0)
			Py_CLEAR(made);
	}
	return made;
}

PyObject *answer_make(const struct state *s, const struct gate_answer *answer, int as_bytes, PyObject *places)
{
	PyObject *parts[] = {
		shared(s->outcomes[answer->outcome < OUTCOMES ? answer->outcome : OUTCOMES - 1]),
		PyLong_FromUnsignedLong(answer->status),
		make_fields(s, answer, as_bytes),
		PyLong_FromUnsignedLongLong(answer->retry_after_ns),
		PyLong_FromUnsignedLongLong(answer->remaining),
		places,
	};

	return make_tuple(parts, 6);
}

PyObject *answer_make_pending(void *pending, const struct gate_answer *answer, PyObject *places)
{
	PyObject *parts[] = {
		PyLong_FromVoidPtr(pending),
		PyLong_FromUnsignedLongLong(answer->retry_after_ns),
		places,
	};

	return make_tuple(parts, 3);
}
