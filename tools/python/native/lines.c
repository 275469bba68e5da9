/*
 * lines: what gates report, until a call logs it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "native.h"

#include <stdlib.h>
#include <string.h>

struct line {
	struct line *next;
	int bad;
	char text[];
};

/* Lines that no call has logged yet, the latest first. Any thread adds, and any call on a gate takes them all. */
static struct line *lines;

void lines_add(void *arg, int bad, const char *text)
{
	struct line *line = malloc(sizeof(*line) + strlen(text) + 1);

	(void)arg;
	if (line == NULL)
		return;
	line->bad = bad;
	strcpy(line->text, text);
	line->next = __atomic_load_n(&lines, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&lines, &line->next, line, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

void lines_log(const struct state *s)
{
	struct line *latest, *first = NULL;

	if (__atomic_load_n(&lines, __ATOMIC_RELAXED) == NULL)
		return;
	latest = __atomic_exchange_n(&lines, NULL, __ATOMIC_ACQUIRE);
	while (latest != NULL) {
		struct line *next = latest->next;

		latest->next = first;
		first = latest;
		latest = next;
	}
	while (first != NULL) {
		struct line *next = first->next;
		PyObject *text = PyUnicode_DecodeUTF8(first->text, (Py_ssize_t)strlen(first->text), "replace");
		PyObject *none = text == NULL ? NULL
		                              : PyObject_CallFunctionObjArgs(s->said, first->bad ? Py_True : Py_False,
		                                                             text, NULL);

		if (none == NULL)
			PyErr_WriteUnraisable(s->said);
		Py_XDECREF(text);
		Py_XDECREF(none);
		free(first);
		first = next;
	}
}
