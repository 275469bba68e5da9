/*
 * keys: the keys and the costs of one request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "native.h"

/* The tokens of a limit: a number, or a function of the request. 0 on an exception, and if the request costs nothing. */
static uint64_t read_cost(PyObject *cost, PyObject *request)
{
	PyObject *number = PyLong_Check(cost) ? shared(cost) : PyObject_CallFunctionObjArgs(cost, request, NULL);
	int over = 0;
	long long tokens = number == NULL ? -1 : PyLong_AsLongLongAndOverflow(number, &over);
	unsigned long long large = 0;

	if (over > 0) {
		large = PyLong_AsUnsignedLongLong(number);
		if (PyErr_Occurred()) { /* more than any limit has */
			PyErr_Clear();
			large = UINT64_MAX;
		}
	} else if (tokens >= 0) {
		large = (unsigned long long)tokens;
	} else if (!PyErr_Occurred()) {
		PyErr_SetString(PyExc_ValueError, "a cost must not be negative");
	}
	Py_XDECREF(number);
	return large;
}

/* The bytes of a key, in *held a reference that keeps them; NULL on an exception. An empty key is one NUL byte. */
static const char *read_key(PyObject **held, Py_ssize_t *length)
{
	const char *bytes = key_bytes(*held, length);

	if (bytes == NULL && PyUnicode_Check(*held)) {
		static const char *const surrogates[] = { "surrogateescape", "surrogatepass" };
		PyObject *encoded = NULL;

		for (int i = 0; i < 2 && encoded == NULL && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError); i++) {
			PyErr_Clear();
			encoded = PyUnicode_AsEncodedString(*held, "utf-8", surrogates[i]);
		}
		if (encoded != NULL && keep(held, encoded) == 0)
			bytes = key_bytes(*held, length);
	} else if (bytes == NULL && (PyByteArray_Check(*held) || PyMemoryView_Check(*held))) {
		if (keep(held, PyBytes_FromObject(*held)) == 0)
			bytes = key_bytes(*held, length);
	} else if (bytes == NULL && !PyErr_Occurred()) {
		PyErr_Format(PyExc_TypeError, "a key must be str, bytes, bytearray or memoryview, and not %R",
		             (PyObject *)Py_TYPE(*held));
	}
	if (bytes != NULL && *length > UINT32_MAX) {
		PyErr_SetString(PyExc_ValueError, "a key must be shorter than 4 GiB");
		return NULL;
	}
	if (bytes == NULL || *length > 0)
		return bytes;
	*length = 1;
	return "";
}

int keys_read(PyObject *limits, PyObject *request, struct gate_key *keys, PyObject **held)
{
	Py_ssize_t limit_count = PyTuple_Size(limits), length;
	int n = 0;

	for (Py_ssize_t i = 0; i < limit_count && i < REQUESTS_MAX; i++) {
		PyObject *pair = PyTuple_GetItem(limits, i);
		PyObject *key = PyObject_CallFunctionObjArgs(PyTuple_GetItem(pair, 0), request, NULL);

		if (key == NULL)
			goto fail;
		held[n] = key;
		if (key == Py_None) {
			Py_DECREF(key);
			continue;
		}
		keys[n] = (struct gate_key){ .limit = (uint32_t)i };
		keys[n].bytes = read_key(&held[n], &length);
		n++;
		if (keys[n - 1].bytes == NULL)
			goto fail;
		keys[n - 1].length = (uint32_t)length;
		keys[n - 1].cost = read_cost(PyTuple_GetItem(pair, 1), request);
		if (keys[n - 1].cost == 0) {
			if (PyErr_Occurred())
				goto fail;
			Py_DECREF(held[--n]);
		}
	}
	return n;
fail:
	while (n > 0)
		Py_XDECREF(held[--n]);
	return -1;
}
