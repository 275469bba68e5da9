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

/*
 * A function of keys may return (key, limit): the limit of this request, as text. owner->key becomes the key, and owner->rate
 * keeps the text. Returns 0, or -1 on an exception.
 */
static int read_rate(struct owner *owner, struct gate_key *key)
{
	Py_ssize_t length;
	PyObject *pair = owner->key;

	if (!PyTuple_Check(pair))
		return 0;
	if (PyTuple_Size(pair) != 2) {
		PyErr_SetString(PyExc_TypeError, "a key with its limit must be (key, limit)");
		return -1;
	}
	owner->key = shared(PyTuple_GetItem(pair, 0));
	owner->rate = shared(PyTuple_GetItem(pair, 1));
	Py_DECREF(pair);
	if (owner->rate == Py_None)
		return 0;
	if (!PyUnicode_Check(owner->rate)) {
		PyErr_Format(PyExc_TypeError, "a limit must be str, and not %R", (PyObject *)Py_TYPE(owner->rate));
		return -1;
	}
	key->rate = PyUnicode_AsUTF8AndSize(owner->rate, &length);
	if (key->rate == NULL || length > UINT32_MAX) { /* surrogates: no limit, as the gate reports */
		PyErr_Clear();
		key->rate = "?";
		length = 1;
	}
	key->rate_length = (uint32_t)length;
	return 0;
}

void keys_release(struct owner *owners, int n)
{
	while (n-- > 0) {
		Py_XDECREF(owners[n].key);
		Py_XDECREF(owners[n].rate);
	}
}

/* One limit. Returns 1; 0 if it does not apply; or -1 on an exception. The owner is filled in any case. */
static int read_one(PyObject *pair, PyObject *request, struct gate_key *key, struct owner *owner)
{
	Py_ssize_t length;

	*owner = (struct owner){ PyObject_CallFunctionObjArgs(PyTuple_GetItem(pair, 0), request, NULL), NULL };
	if (owner->key == NULL || read_rate(owner, key) != 0)
		return -1;
	if (owner->key == Py_None)
		return 0;
	key->bytes = read_key(&owner->key, &length);
	if (key->bytes == NULL)
		return -1;
	key->length = (uint32_t)length;
	key->cost = read_cost(PyTuple_GetItem(pair, 1), request);
	return key->cost != 0 ? 1 : PyErr_Occurred() ? -1 : 0;
}

int keys_read(PyObject *limits, PyObject *request, struct gate_key *keys, struct owner *owners)
{
	Py_ssize_t limit_count = PyTuple_Size(limits);
	int n = 0;

	for (Py_ssize_t i = 0; i < limit_count && i < REQUESTS_MAX; i++) {
		int is_limited;

		keys[n] = (struct gate_key){ .limit = (uint32_t)i };
		is_limited = read_one(PyTuple_GetItem(limits, i), request, &keys[n], &owners[n]);
		if (is_limited == 1) {
			n++;
			continue;
		}
		keys_release(&owners[n], 1);
		if (is_limited < 0) {
			keys_release(owners, n);
			return -1;
		}
	}
	return n;
}
