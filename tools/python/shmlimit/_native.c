/*
 * _native: take(), without ctypes. It is built where pip finds a compiler and Python's headers, over the limited API, so one
 * file serves Python 3.10 and later; without it limiter.py does the same by ctypes, some ten times slower.
 *
 * It needs neither the library nor its header: bind() is handed the addresses of the two functions that ctypes has found.
 * Whatever is not plain, and every error, is left to limiter.py: take() then returns None, and has taken nothing.
 * It keeps the interpreter's lock, for a take is shorter than handing that over.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

/* struct shmlimit_result. */
struct result {
	uint64_t limit, remaining, wait_ns, retry_after_ns, reset_after_ns;
};

/* Each interpreter has its own. */
struct state {
	int (*find)(void *limiter, const char *rule);
	int (*take)(void *limiter, int rule, const void *key, size_t key_len, uint64_t cost, struct result *r);
	PyObject *type;                /* Result */
	PyObject *make;                /* tuple.__new__ */
};

/* bind(address of shmlimit_rule_find, address of shmlimit_take, Result) */
static PyObject *bind(PyObject *module, PyObject *args)
{
	struct state *s = PyModule_GetState(module);
	unsigned long long find, take;
	PyObject *type, *make;

	if (!PyArg_ParseTuple(args, "KKO", &find, &take, &type))
		return NULL;
	make = PyObject_GetAttrString((PyObject *)&PyTuple_Type, "__new__");
	if (make == NULL)
		return NULL;
	s->find = (int (*)(void *, const char *))(uintptr_t)find;
	s->take = (int (*)(void *, int, const void *, size_t, uint64_t, struct result *))(uintptr_t)take;
	Py_INCREF(type);
	Py_XDECREF(s->type);
	Py_XDECREF(s->make);
	s->type = type;
	s->make = make;
	Py_RETURN_NONE;
}

/* The id of a rule that is a name or an id; negative: none, or left to limiter.py. */
static int rule_id(const struct state *s, void *limiter, PyObject *rule)
{
	if (PyUnicode_Check(rule)) {
		Py_ssize_t length;
		const char *name = PyUnicode_AsUTF8AndSize(rule, &length);

		return name == NULL || strlen(name) != (size_t)length ? -1 : s->find(limiter, name);
	}
	if (PyLong_Check(rule)) {
		long id = PyLong_AsLong(rule);

		return id < 0 || id > INT_MAX ? -1 : (int)id;
	}
	return -1;
}

static const char *key_bytes(PyObject *key, Py_ssize_t *length)
{
	char *bytes;

	if (PyUnicode_Check(key))
		return PyUnicode_AsUTF8AndSize(key, length);
	return PyBytes_Check(key) && PyBytes_AsStringAndSize(key, &bytes, length) == 0 ? bytes : NULL;
}

static PyObject *make_result(const struct state *s, int answer, const struct result *r)
{
	const uint64_t numbers[] = { r->limit, r->remaining, r->wait_ns, r->retry_after_ns, r->reset_after_ns };
	PyObject *values = PyTuple_New(6), *made;

	if (values == NULL)
		return NULL;
	PyTuple_SetItem(values, 0, PyBool_FromLong(answer == 0));
	for (Py_ssize_t i = 0; i < 5; i++) {
		PyObject *number = PyLong_FromUnsignedLongLong(numbers[i]);

		if (number == NULL) {
			Py_DECREF(values);
			return NULL;
		}
		PyTuple_SetItem(values, i + 1, number);
	}
	made = PyObject_CallFunctionObjArgs(s->make, s->type, values, NULL);
	Py_DECREF(values);
	return made;
}

/* take(handle, rule, key, cost) */
static PyObject *take(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	const struct state *s = PyModule_GetState(module);
	unsigned long long cost;
	struct result r;
	Py_ssize_t length;
	const char *key;
	void *limiter;
	int id, answer;

	if (n != 4 || s->take == NULL || !PyLong_Check(args[0]) || !PyLong_Check(args[3]))
		Py_RETURN_NONE;
	limiter = PyLong_AsVoidPtr(args[0]);
	cost = PyLong_AsUnsignedLongLong(args[3]);
	key = PyErr_Occurred() ? NULL : key_bytes(args[2], &length);
	id = key == NULL ? -1 : rule_id(s, limiter, args[1]);
	answer = id < 0 ? id : s->take(limiter, id, key, (size_t)length, cost, &r);
	if (answer >= 0)
		return make_result(s, answer, &r);
	PyErr_Clear();
	Py_RETURN_NONE;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
	struct state *s = PyModule_GetState(module);

	if (s != NULL) {
		Py_VISIT(s->type);
		Py_VISIT(s->make);
	}
	return 0;
}

static int clear(PyObject *module)
{
	struct state *s = PyModule_GetState(module);

	if (s != NULL) {
		Py_CLEAR(s->type);
		Py_CLEAR(s->make);
	}
	return 0;
}

static void release(void *module)
{
	clear(module);
}

static PyMethodDef methods[] = {
	{ "bind", bind, METH_VARARGS, NULL },
	{ "take", (PyCFunction)(void (*)(void))take, METH_FASTCALL, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot slots[] = {
	{ 0, NULL },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_native",
	.m_size = sizeof(struct state),
	.m_methods = methods,
	.m_slots = slots,
	.m_traverse = traverse,
	.m_clear = clear,
	.m_free = release,
};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void)
{
	return PyModuleDef_Init(&definition);
}
