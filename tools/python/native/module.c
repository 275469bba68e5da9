/*
 * module: the module _native, and what bind() gives it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "native.h"

#include <string.h>

#define FUNCTIONS ((Py_ssize_t)(sizeof(struct functions) / sizeof(void *)))

/* bind(addresses of the functions, Result, Count, names of outcomes, said) */
static PyObject *bind(PyObject *module, PyObject *args)
{
	struct state *s = PyModule_GetState(module);
	PyObject *addresses, *result, *count, *outcomes, *said;

	if (!PyArg_ParseTuple(args, "O!OOO!O", &PyTuple_Type, &addresses, &result, &count, &PyTuple_Type, &outcomes,
	                      &said))
		return NULL;
	if (PyTuple_Size(addresses) != FUNCTIONS || PyTuple_Size(outcomes) != OUTCOMES) {
		PyErr_SetString(PyExc_ValueError, "the extension is of another version");
		return NULL;
	}
	if (keep(&s->make, PyObject_GetAttrString((PyObject *)&PyTuple_Type, "__new__")) != 0 ||
	    answer_make_names(s) != 0)
		return NULL;
	for (Py_ssize_t i = 0; i < OUTCOMES; i++)
		(void)keep(&s->outcomes[i], shared(PyTuple_GetItem(outcomes, i)));
	(void)keep(&s->result, shared(result));
	(void)keep(&s->count, shared(count));
	(void)keep(&s->said, shared(said));
	for (Py_ssize_t i = 0; i < FUNCTIONS; i++) {
		void *address = PyLong_AsVoidPtr(PyTuple_GetItem(addresses, i));

		if (address == NULL && PyErr_Occurred())
			return NULL;
		memcpy((char *)&s->f + (size_t)i * sizeof(address), &address, sizeof(address));
	}
	Py_RETURN_NONE;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
	struct state *s = PyModule_GetState(module);

	if (s != NULL) {
		Py_VISIT(s->result);
		Py_VISIT(s->count);
		Py_VISIT(s->make);
		Py_VISIT(s->said);
	}
	return 0;
}

static int clear(PyObject *module)
{
	struct state *s = PyModule_GetState(module);

	if (s != NULL) {
		Py_CLEAR(s->result);
		Py_CLEAR(s->count);
		Py_CLEAR(s->make);
		Py_CLEAR(s->said);
		for (size_t i = 0; i < OUTCOMES; i++)
			Py_CLEAR(s->outcomes[i]);
		for (size_t i = 0; i < NAMES; i++) {
			Py_CLEAR(s->text_names[i]);
			Py_CLEAR(s->byte_names[i]);
		}
	}
	return 0;
}

static void release(void *module)
{
	clear(module);
}

#define FAST(f) (PyCFunction)(void (*)(void)) f
static PyMethodDef methods[] = {
	{ "bind", bind, METH_VARARGS, NULL },
	{ "take", FAST(limiter_take), METH_FASTCALL, NULL },
	{ "peek", FAST(limiter_peek), METH_FASTCALL, NULL },
	{ "count", FAST(limiter_count), METH_FASTCALL, NULL },
	{ "ask", FAST(gate_ask), METH_FASTCALL, NULL },
	{ "leave", FAST(gate_leave), METH_FASTCALL, NULL },
	{ "attach", gate_attach, METH_VARARGS, NULL },
	{ "watch", gate_watch, METH_O, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot slots[] = {
	{ 0, NULL },
};

/* clang-format off */
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
/* clang-format on */

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void)
{
	return PyModuleDef_Init(&definition);
}
