/*
 * gate: the calls on a gate.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "native.h"

#include <errno.h>
#include <string.h>

static PyObject *raise(int error)
{
	errno = -error;
	return PyErr_SetFromErrno(PyExc_OSError);
}

/*
 * ask(gate, limits, request, as_bytes, waits, enters): (outcome, status, fields, retry_after_ns, remaining, places).
 * enters None: begin, which may return what answer_make_pending() does.
 */
PyObject *gate_ask(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	const struct state *s = PyModule_GetState(module);
	_Alignas(8) char buffer[REQUESTS_MAX * BUFFER_EACH + BUFFER_REST];
	struct gate_held held = { .struct_size = sizeof(held) };
	struct gate_key keys[REQUESTS_MAX];
	struct gate_answer answer;
	PyThreadState *thread;
	struct owner owners[REQUESTS_MAX];
	PyObject *made, *places;
	void *gate, *pending = NULL;
	int count, error;

	if (n != 6 || s->f.gate_ask == NULL || !PyLong_Check(args[0]) || !PyTuple_Check(args[1])) {
		PyErr_SetString(PyExc_TypeError, "ask(gate, limits, request, as_bytes, waits, enters)");
		return NULL;
	}
	gate = PyLong_AsVoidPtr(args[0]);
	count = keys_read(args[1], args[2], keys, owners);
	if (count < 0)
		return NULL;
	answer.struct_size = sizeof(answer);
	answer.buffer = buffer;
	answer.buffer_size = sizeof(buffer);
	thread = args[4] == Py_True ? PyEval_SaveThread() : NULL;
	error = args[5] == Py_None   ? s->f.gate_begin(gate, keys, (size_t)count, &answer, &held, &pending)
	        : args[5] == Py_True ? s->f.gate_enter(gate, keys, (size_t)count, &answer, &held)
	                             : s->f.gate_ask(gate, keys, (size_t)count, &answer);
	if (thread != NULL)
		PyEval_RestoreThread(thread);
	lines_log(s);
	if (error < 0) {
		made = raise(error);
	} else if (pending != NULL) {
		/* Without memory the request is forgotten, as that of a process that was killed. */
		made = answer_make_pending(pending, &answer, answer_make_places(&held, keys, count));
	} else {
		places = held.count == 0 && held.bill_count == 0 ? shared(Py_None)
		                                                 : answer_make_places(&held, keys, count);
		made = answer_make(s, &answer, args[3] == Py_True, places);
		if (made == NULL)
			(void)s->f.gate_leave(gate, keys, (size_t)count, &held);
	}
	keys_release(owners, count);
	return made;
}

/* leave(gate, places): the places that ask() returned. */
PyObject *gate_leave(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	const struct state *s = PyModule_GetState(module);
	struct gate_key keys[REQUESTS_MAX];
	struct gate_held held;
	Py_ssize_t parts, length;
	char *bytes;
	int error;

	if (n != 2 || s->f.gate_leave == NULL || !PyLong_Check(args[0]) || !PyTuple_Check(args[1]) ||
	    (parts = PyTuple_Size(args[1])) % 3 != 1 || parts > 1 + 3 * REQUESTS_MAX ||
	    !PyByteArray_Check(PyTuple_GetItem(args[1], 0))) {
		PyErr_SetString(PyExc_TypeError, "leave(gate, places)");
		return NULL;
	}
	if (PyByteArray_Size(PyTuple_GetItem(args[1], 0)) != sizeof(held))
		return raise(-EINVAL);
	memcpy(&held, PyByteArray_AsString(PyTuple_GetItem(args[1], 0)), sizeof(held));
	for (Py_ssize_t i = 0; i < parts / 3; i++) {
		keys[i].limit = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GetItem(args[1], 1 + 3 * i));
		if (PyErr_Occurred() ||
		    PyBytes_AsStringAndSize(PyTuple_GetItem(args[1], 2 + 3 * i), &bytes, &length) != 0)
			return NULL;
		keys[i].bytes = bytes;
		keys[i].length = (uint32_t)length;
	}
	error = s->f.gate_leave(PyLong_AsVoidPtr(args[0]), keys, (size_t)parts / 3, &held);
	if (error < 0)
		return raise(error);
	lines_log(s);
	Py_RETURN_NONE;
}

/* attach(gate, waits): the error, negative, or 0 */
PyObject *gate_attach(PyObject *module, PyObject *args)
{
	const struct state *s = PyModule_GetState(module);
	unsigned long long gate;
	PyThreadState *thread;
	int waits, error;

	if (!PyArg_ParseTuple(args, "Kp", &gate, &waits))
		return NULL;
	thread = waits ? PyEval_SaveThread() : NULL;
	error = s->f.gate_attach((void *)(uintptr_t)gate);
	if (thread != NULL)
		PyEval_RestoreThread(thread);
	lines_log(s);
	return PyLong_FromLong(error);
}

/* watch(gate): log its reports */
PyObject *gate_watch(PyObject *module, PyObject *gate)
{
	const struct state *s = PyModule_GetState(module);
	void *address = PyLong_AsVoidPtr(gate);

	if (address == NULL)
		return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no gate");
	s->f.gate_report(address, lines_add, NULL);
	Py_RETURN_NONE;
}
