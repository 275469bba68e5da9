/*
 * limiter: decisions on a limiter.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "native.h"

#include <limits.h>
#include <string.h>

/* The id of a rule that is a name or an id; negative: none, or left to limiter.py. */
static int rule_id(const struct state *s, void *limiter, PyObject *rule)
{
	if (PyUnicode_Check(rule)) {
		Py_ssize_t length;
		const char *name = PyUnicode_AsUTF8AndSize(rule, &length);

		return name == NULL || strlen(name) != (size_t)length ? -1 : s->f.rule_find(limiter, name);
	}
	if (PyLong_Check(rule)) {
		long id = PyLong_AsLong(rule);

		return id < 0 || id > INT_MAX ? -1 : (int)id;
	}
	return -1;
}

/* A named tuple of these values; takes their references. */
static PyObject *make_answer(const struct state *s, PyObject *type, PyObject *const values[], Py_ssize_t n)
{
	PyObject *tuple = make_tuple(values, n);
	PyObject *made = tuple == NULL ? NULL : PyObject_CallFunctionObjArgs(s->make, type, tuple, NULL);

	Py_XDECREF(tuple);
	return made;
}

static PyObject *left_to_python(void)
{
	PyErr_Clear();
	Py_RETURN_NONE;
}

/* take(handle, rule, key, cost[, address of the call's limit]), and the same of peek */
static PyObject *decide(PyObject *const *args, Py_ssize_t n, const struct state *s, enum verb verb)
{
	struct request q = { .limit = NULL };
	struct result r;
	Py_ssize_t length = 0;
	void *limiter;
	int answer;

	if (n < 4 || n > 5 || s->f.decide == NULL || !PyLong_Check(args[0]) || !PyLong_Check(args[3]))
		Py_RETURN_NONE;
	if (n == 5)
		q.limit = PyLong_AsVoidPtr(args[4]);
	limiter = PyLong_AsVoidPtr(args[0]);
	q.cost = PyLong_AsUnsignedLongLong(args[3]);
	q.key = PyErr_Occurred() ? NULL : key_bytes(args[2], &length);
	q.key_len = (size_t)length;
	q.rule = q.key == NULL ? -1 : rule_id(s, limiter, args[1]);
	answer = q.rule < 0 ? q.rule : s->f.decide(limiter, verb, &q, &r);
	if (answer < 0)
		return left_to_python();
	PyObject *values[] = {
		PyBool_FromLong(answer == 0),
		PyLong_FromUnsignedLongLong(r.limit),
		PyLong_FromUnsignedLongLong(r.remaining),
		PyLong_FromUnsignedLongLong(r.wait_ns),
		PyLong_FromUnsignedLongLong(r.retry_after_ns),
		PyLong_FromUnsignedLongLong(r.reset_after_ns),
	};

	return make_answer(s, s->result, values, 6);
}

PyObject *limiter_take(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	return decide(args, n, PyModule_GetState(module), VERB_TAKE);
}

PyObject *limiter_peek(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	return decide(args, n, PyModule_GetState(module), VERB_PEEK);
}

/* count(handle, rule, key, n, ttl_ns, bound, flags) */
PyObject *limiter_count(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	const struct state *s = PyModule_GetState(module);
	struct count c = { .struct_size = sizeof(c) };
	struct count_request asked = { .struct_size = sizeof(asked) };
	Py_ssize_t length;
	const char *key;
	void *limiter;
	int id, answer;

	if (n != 7 || s->f.count == NULL || !PyLong_Check(args[0]))
		Py_RETURN_NONE;
	for (int i = 3; i < 7; i++)
		if (!PyLong_Check(args[i]))
			Py_RETURN_NONE;
	limiter = PyLong_AsVoidPtr(args[0]);
	asked.n = PyLong_AsLongLong(args[3]);
	asked.ttl_ns = PyLong_AsUnsignedLongLong(args[4]);
	asked.bound = PyLong_AsLongLong(args[5]);
	asked.flags = (uint32_t)PyLong_AsLong(args[6]);
	key = PyErr_Occurred() ? NULL : key_bytes(args[2], &length);
	id = key == NULL ? -1 : rule_id(s, limiter, args[1]);
	answer = id < 0 ? id : s->f.count(limiter, id, key, (size_t)length, &asked, &c);
	if (answer < 0)
		return left_to_python();
	PyObject *values[] = {
		PyBool_FromLong(answer == 0),
		PyLong_FromLongLong(c.count),
		PyLong_FromLongLong(c.applied),
		PyLong_FromUnsignedLongLong(c.ttl_ns),
	};

	return make_answer(s, s->count, values, 4);
}
