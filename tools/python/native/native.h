/*
 * native: the calls that are made for each request, without ctypes. It is built where pip finds a compiler and Python's
 * headers, over the limited API, so one file serves Python 3.10 and later (3.9 gets one of its own); without it limiter.py
 * and _c_gate.py do the same by ctypes, some ten times slower.
 *
 * It needs neither the libraries nor their headers: bind() gets the addresses that ctypes has found. Decisions on a limiter
 * leave whatever is not plain, and every error, to limiter.py: they then return None, and have taken nothing.
 *
 * The interpreter's lock stays taken: a decision is shorter than handing the lock over. A gate that may wait for a Redis
 * server releases it. So all calls on one gate hold the lock, or none does: a thread that holds it may wait for one that
 * looks at the segment, which therefore must never need it. That is why lines_add() only keeps the text.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_PYTHON_NATIVE_H
#define SHMLIMIT_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "library.h"

#define OUTCOMES 7
#define NAMES 6 /* of header fields */

/* Each interpreter has its own. */
struct state {
	struct functions f;
	PyObject *result, *count; /* types */
	PyObject *make;           /* tuple.__new__ */
	PyObject *said;           /* logs a line of a gate */
	PyObject *outcomes[OUTCOMES];
	PyObject *text_names[NAMES], *byte_names[NAMES];
};

/* ---- objects ---- */

/* A new reference in *to, in place of an old one. */
static inline int keep(PyObject **to, PyObject *object)
{
	PyObject *old = *to;

	*to = object;
	Py_XDECREF(old);
	return object != NULL ? 0 : -1;
}

static inline PyObject *shared(PyObject *object)
{
	Py_XINCREF(object);
	return object;
}

/* A tuple of these objects; takes their references. NULL if one of them is NULL. */
static inline PyObject *make_tuple(PyObject *const objects[], Py_ssize_t n)
{
	PyObject *tuple = PyTuple_New(n);
	int lacks = tuple == NULL;

	for (Py_ssize_t i = 0; i < n; i++) {
		if (tuple == NULL)
			Py_XDECREF(objects[i]);
		else
			PyTuple_SetItem(tuple, i, objects[i]);
		lacks |= objects[i] == NULL;
	}
	if (lacks)
		Py_CLEAR(tuple);
	return tuple;
}

/* The bytes of a str or bytes; NULL: it is neither, or on an exception. */
static inline const char *key_bytes(PyObject *key, Py_ssize_t *length)
{
	char *bytes;

	if (PyUnicode_Check(key))
		return PyUnicode_AsUTF8AndSize(key, length);
	return PyBytes_Check(key) && PyBytes_AsStringAndSize(key, &bytes, length) == 0 ? bytes : NULL;
}

/* ---- limiter.c ---- */

PyObject *limiter_take(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *limiter_peek(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *limiter_count(PyObject *module, PyObject *const *args, Py_ssize_t n);

/* ---- gate.c ---- */

PyObject *gate_ask(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *gate_leave(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *gate_attach(PyObject *module, PyObject *args);
PyObject *gate_watch(PyObject *module, PyObject *gate);

/* ---- lines.c: what gates report ---- */

/* A gate calls it, in any thread. */
void lines_add(void *arg, int bad, const char *text);

/* Log all lines that there are. */
void lines_log(const struct state *s);

/* ---- keys.c ---- */

/* What keeps the bytes of a gate_key; rate may be NULL. */
struct owner {
	PyObject *key, *rate;
};

/* Fill keys from limits, pairs of a function of the request and a cost. Returns how many there are, or -1. */
int keys_read(PyObject *limits, PyObject *request, struct gate_key *keys, struct owner *owners);
void keys_release(struct owner *owners, int n);

/* ---- answer.c ---- */

/* Make the names of header fields. Returns 0, or -1 on an exception. */
int answer_make_names(struct state *s);

/* What leave() needs: the bytes of `held`, and each limit with its key. */
PyObject *answer_make_places(const struct gate_held *held, const struct gate_key *keys, Py_ssize_t n);

/* What ask() returns. Takes the reference to `places`. */
PyObject *answer_make(const struct state *s, const struct gate_answer *answer, int as_bytes, PyObject *places);

/* A request that the host's agent is asked for: (pending, poll_ns, places). Takes the reference to `places`. */
PyObject *answer_make_pending(void *pending, const struct gate_answer *answer, PyObject *places);

#endif
