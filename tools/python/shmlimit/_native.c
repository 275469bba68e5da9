/*
 * _native: the calls that are made for each request, without ctypes. It is built where pip finds a compiler and Python's
 * headers, over the limited API, so one file serves Python 3.10 and later (3.9 gets one of its own); without it limiter.py
 * and _c_gate.py do the same by ctypes, some ten times slower.
 *
 * It needs neither the libraries nor their headers: bind() gets the addresses that ctypes has found. Decisions on a limiter
 * leave whatever is not plain, and every error, to limiter.py: they then return None, and have taken nothing.
 *
 * The interpreter's lock stays taken: a decision is shorter than handing the lock over. A gate that may wait for a Redis
 * server releases it. So all calls on one gate hold the lock, or none does: a thread that holds it may wait for one that
 * looks at the segment, which therefore must never need it. That is why report() only keeps the text.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX 16
#define FIELDS_MAX 36
#define BUFFER_EACH 416
#define BUFFER_REST 128
#define OUTCOMES 5

/* Structures of shmlimit.h and shmlimit_gate.h. */
struct result {
	uint64_t limit, remaining, wait_ns, retry_after_ns, reset_after_ns;
};

struct count {
	uint32_t struct_size, reserved32;
	int64_t count, applied;
	uint64_t ttl_ns;
};

struct gate_key {
	uint32_t limit, length;
	const void *bytes;
	uint64_t cost;
};

struct gate_field {
	const char *name, *value;
	uint32_t name_length, value_length;
};

struct gate_answer {
	uint32_t struct_size, buffer_size;
	char *buffer;
	uint32_t outcome, status;
	int32_t error;
	uint32_t denied_by;
	uint64_t remaining, retry_after_ns;
	uint32_t field_count, reserved32;
	struct gate_field fields[FIELDS_MAX];
};

struct gate_held {
	uint32_t struct_size, count;
	uint64_t segment;
	struct {
		uint32_t key;
		int32_t rule;
		uint32_t struct_size, cell;
		uint64_t value;
	} places[REQUESTS_MAX];
};

#ifdef SHMLIMIT_GATE_H /* tests/server/python_native.sh includes it */
#define SAME(s, m) \
	_Static_assert(sizeof(struct s) == sizeof(struct shmlimit_##s) && \
	                       offsetof(struct s, m) == offsetof(struct shmlimit_##s, m), \
	               #s)
SAME(result, reset_after_ns);
SAME(count, ttl_ns);
SAME(gate_key, cost);
SAME(gate_field, value_length);
SAME(gate_answer, fields);
SAME(gate_held, places);
_Static_assert(BUFFER_EACH == SHMLIMIT_GATE_BUFFER_EACH && REQUESTS_MAX == SHMLIMIT_REQUESTS_MAX, "constants");
#endif

/* The library's functions, in the order of limiter.py's tuple. */
struct functions {
	int (*rule_find)(void *limiter, const char *rule);
	int (*take)(void *limiter, int rule, const void *key, size_t key_len, uint64_t cost, struct result *r);
	int (*peek)(void *limiter, int rule, const void *key, size_t key_len, uint64_t cost, struct result *r);
	int (*count)(void *limiter, int rule, const void *key, size_t key_len, int64_t n, uint64_t ttl_ns,
	             int64_t bound, uint32_t flags, struct count *out);
	int (*gate_ask)(void *gate, const struct gate_key *keys, size_t n, struct gate_answer *out);
	int (*gate_enter)(void *gate, const struct gate_key *keys, size_t n, struct gate_answer *out,
	                  struct gate_held *held);
	int (*gate_begin)(void *gate, const struct gate_key *keys, size_t n, struct gate_answer *out,
	                  struct gate_held *held, void **pending);
	int (*gate_leave)(void *gate, const struct gate_key *keys, size_t n, struct gate_held *held);
	int (*gate_attach)(void *gate);
	void (*gate_report)(void *gate, void (*report)(void *arg, int bad, const char *text), void *arg);
};
#define FUNCTIONS ((Py_ssize_t)(sizeof(struct functions) / sizeof(void *)))

/* Names of header fields: as WSGI has them, and in small letters as bytes, as ASGI has them. */
static const char *const names[] = {
	"RateLimit-Policy",      "RateLimit",         "Retry-After", "X-RateLimit-Limit",
	"X-RateLimit-Remaining", "X-RateLimit-Reset",
};
#define NAMES (sizeof(names) / sizeof(names[0]))

/* Each interpreter has its own. */
struct state {
	struct functions f;
	PyObject *result, *count; /* types */
	PyObject *make;           /* tuple.__new__ */
	PyObject *said;           /* logs a line of a gate */
	PyObject *outcomes[OUTCOMES];
	PyObject *text_names[NAMES], *byte_names[NAMES];
};

/* ---- what gates report ---- */

struct line {
	struct line *next;
	int bad;
	char text[];
};

/* Lines that no call has logged yet, the latest first. Any thread adds, and any call on a gate takes them all. */
static struct line *lines;

static void report(void *arg, int bad, const char *text)
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

static void log_lines(const struct state *s)
{
	struct line *latest = __atomic_exchange_n(&lines, NULL, __ATOMIC_ACQUIRE), *first = NULL;

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

/* ---- bind ---- */

/* A new reference in *to, in place of an old one. */
static int keep(PyObject **to, PyObject *object)
{
	PyObject *old = *to;

	*to = object;
	Py_XDECREF(old);
	return object != NULL ? 0 : -1;
}

static PyObject *shared(PyObject *object)
{
	Py_XINCREF(object);
	return object;
}

static int make_names(struct state *s)
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
	if (keep(&s->make, PyObject_GetAttrString((PyObject *)&PyTuple_Type, "__new__")) != 0 || make_names(s) != 0)
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

/* ---- decisions on a limiter ---- */

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

static const char *key_bytes(PyObject *key, Py_ssize_t *length)
{
	char *bytes;

	if (PyUnicode_Check(key))
		return PyUnicode_AsUTF8AndSize(key, length);
	return PyBytes_Check(key) && PyBytes_AsStringAndSize(key, &bytes, length) == 0 ? bytes : NULL;
}

/* A named tuple of an answer and n numbers; takes the numbers' references. */
static PyObject *make_answer(const struct state *s, PyObject *type, int answer, PyObject *const numbers[], Py_ssize_t n)
{
	PyObject *values = PyTuple_New(n + 1), *made;
	int lacks = values == NULL;

	if (!lacks)
		PyTuple_SetItem(values, 0, PyBool_FromLong(answer == 0));
	for (Py_ssize_t i = 0; i < n; i++) {
		if (values == NULL)
			Py_XDECREF(numbers[i]);
		else
			PyTuple_SetItem(values, i + 1, numbers[i]);
		lacks |= numbers[i] == NULL;
	}
	made = lacks ? NULL : PyObject_CallFunctionObjArgs(s->make, type, values, NULL);
	Py_XDECREF(values);
	return made;
}

static PyObject *left_to_python(void)
{
	PyErr_Clear();
	Py_RETURN_NONE;
}

/* take(handle, rule, key, cost), and the same of peek */
static PyObject *decide(PyObject *const *args, Py_ssize_t n, const struct state *s, int peek)
{
	unsigned long long cost;
	struct result r;
	Py_ssize_t length;
	const char *key;
	void *limiter;
	int id, answer;

	if (n != 4 || s->f.take == NULL || !PyLong_Check(args[0]) || !PyLong_Check(args[3]))
		Py_RETURN_NONE;
	limiter = PyLong_AsVoidPtr(args[0]);
	cost = PyLong_AsUnsignedLongLong(args[3]);
	key = PyErr_Occurred() ? NULL : key_bytes(args[2], &length);
	id = key == NULL ? -1 : rule_id(s, limiter, args[1]);
	answer = id < 0 ? id : (peek ? s->f.peek : s->f.take)(limiter, id, key, (size_t)length, cost, &r);
	if (answer < 0)
		return left_to_python();
	PyObject *numbers[] = {
		PyLong_FromUnsignedLongLong(r.limit),          PyLong_FromUnsignedLongLong(r.remaining),
		PyLong_FromUnsignedLongLong(r.wait_ns),        PyLong_FromUnsignedLongLong(r.retry_after_ns),
		PyLong_FromUnsignedLongLong(r.reset_after_ns),
	};

	return make_answer(s, s->result, answer, numbers, 5);
}

static PyObject *take(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	return decide(args, n, PyModule_GetState(module), 0);
}

static PyObject *peek(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	return decide(args, n, PyModule_GetState(module), 1);
}

/* count(handle, rule, key, n, ttl_ns, bound, flags) */
static PyObject *count(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	const struct state *s = PyModule_GetState(module);
	struct count c = { .struct_size = sizeof(c) };
	unsigned long long ttl_ns;
	long long by, bound;
	Py_ssize_t length;
	const char *key;
	void *limiter;
	long flags;
	int id, answer;

	if (n != 7 || s->f.count == NULL || !PyLong_Check(args[0]))
		Py_RETURN_NONE;
	for (int i = 3; i < 7; i++)
		if (!PyLong_Check(args[i]))
			Py_RETURN_NONE;
	limiter = PyLong_AsVoidPtr(args[0]);
	by = PyLong_AsLongLong(args[3]);
	ttl_ns = PyLong_AsUnsignedLongLong(args[4]);
	bound = PyLong_AsLongLong(args[5]);
	flags = PyLong_AsLong(args[6]);
	key = PyErr_Occurred() ? NULL : key_bytes(args[2], &length);
	id = key == NULL ? -1 : rule_id(s, limiter, args[1]);
	answer = id < 0 ? id : s->f.count(limiter, id, key, (size_t)length, by, ttl_ns, bound, (uint32_t)flags, &c);
	if (answer < 0)
		return left_to_python();
	PyObject *numbers[] = {
		PyLong_FromLongLong(c.count),
		PyLong_FromLongLong(c.applied),
		PyLong_FromUnsignedLongLong(c.ttl_ns),
	};

	return make_answer(s, s->count, answer, numbers, 3);
}

/* ---- gates ---- */

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

	if (bytes == NULL && PyUnicode_Check(*held) && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
		PyErr_Clear();
		if (keep(held, PyUnicode_AsEncodedString(*held, "utf-8", "surrogateescape")) == 0)
			bytes = key_bytes(*held, length);
	} else if (bytes == NULL && !PyErr_Occurred()) {
		PyErr_SetString(PyExc_TypeError, "a key must be str, bytes or None");
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

/* Fill keys from limits, pairs of a function of the request and a cost. Returns how many there are, or -1. */
static int read_keys(PyObject *limits, PyObject *request, struct gate_key *keys, PyObject **held)
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
		keys[n].limit = (uint32_t)i;
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
		PyObject *pair = PyTuple_New(2), *name = make_name(s, field, as_bytes);
		PyObject *value = as_bytes ? PyBytes_FromStringAndSize(field->value, field->value_length)
		                           : PyUnicode_FromStringAndSize(field->value, field->value_length);

		if (pair == NULL || name == NULL || value == NULL) {
			Py_XDECREF(pair);
			Py_XDECREF(name);
			Py_XDECREF(value);
			Py_DECREF(fields);
			return NULL;
		}
		PyTuple_SetItem(pair, 0, name);
		PyTuple_SetItem(pair, 1, value);
		PyList_SetItem(fields, i, pair);
	}
	return fields;
}

/* What leave() needs: the bytes of `held`, and each limit with its key. */
static PyObject *make_places(const struct gate_held *held, const struct gate_key *keys, Py_ssize_t n)
{
	PyObject *made = PyTuple_New(1 + 2 * n);

	for (Py_ssize_t i = 0; made != NULL && i < 1 + 2 * n; i++) {
		const struct gate_key *key = &keys[(i - 1) / 2];
		PyObject *part = i == 0       ? PyBytes_FromStringAndSize((const char *)held, sizeof(*held))
		                 : i % 2 == 1 ? PyLong_FromUnsignedLong(key->limit)
		                              : PyBytes_FromStringAndSize(key->bytes, key->length);

		if (part == NULL || PyTuple_SetItem(made, i, part) != 0)
			Py_CLEAR(made);
	}
	return made;
}

/* Takes the reference to `places`. */
static PyObject *make_gate_answer(const struct state *s, const struct gate_answer *answer, int as_bytes,
                                  PyObject *places)
{
	PyObject *made = PyTuple_New(6), *fields = make_fields(s, answer, as_bytes);
	PyObject *status = PyLong_FromUnsignedLong(answer->status);
	PyObject *retry_after_ns = PyLong_FromUnsignedLongLong(answer->retry_after_ns);
	PyObject *remaining = PyLong_FromUnsignedLongLong(answer->remaining);

	if (made == NULL || fields == NULL || status == NULL || retry_after_ns == NULL || remaining == NULL ||
	    places == NULL) {
		Py_XDECREF(places);
		Py_XDECREF(made);
		Py_XDECREF(fields);
		Py_XDECREF(status);
		Py_XDECREF(retry_after_ns);
		Py_XDECREF(remaining);
		return NULL;
	}
	PyTuple_SetItem(made, 0, shared(s->outcomes[answer->outcome < OUTCOMES ? answer->outcome : OUTCOMES - 1]));
	PyTuple_SetItem(made, 1, status);
	PyTuple_SetItem(made, 2, fields);
	PyTuple_SetItem(made, 3, retry_after_ns);
	PyTuple_SetItem(made, 4, remaining);
	PyTuple_SetItem(made, 5, places);
	return made;
}

static PyObject *raise(int error)
{
	errno = -error;
	return PyErr_SetFromErrno(PyExc_OSError);
}

/* A request that the host's agent is asked for: (pending, poll_ns, places). */
static PyObject *make_pending(void *pending, const struct gate_answer *answer, PyObject *places)
{
	PyObject *made = places == NULL ? NULL : PyTuple_New(3), *address = PyLong_FromVoidPtr(pending);
	PyObject *poll_ns = PyLong_FromUnsignedLongLong(answer->retry_after_ns);

	if (made == NULL || address == NULL || poll_ns == NULL) {
		Py_XDECREF(places);
		Py_XDECREF(made);
		Py_XDECREF(address);
		Py_XDECREF(poll_ns);
		return NULL;
	}
	PyTuple_SetItem(made, 0, address);
	PyTuple_SetItem(made, 1, poll_ns);
	PyTuple_SetItem(made, 2, places);
	return made;
}

/*
 * ask(gate, limits, request, as_bytes, waits, enters): (outcome, status, fields, retry_after_ns, remaining, places).
 * enters None: begin, which may return what make_pending() does.
 */
static PyObject *ask(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	const struct state *s = PyModule_GetState(module);
	_Alignas(8) char buffer[REQUESTS_MAX * BUFFER_EACH + BUFFER_REST];
	struct gate_held held = { .struct_size = sizeof(held) };
	struct gate_key keys[REQUESTS_MAX];
	struct gate_answer answer;
	PyObject *objects[REQUESTS_MAX], *made, *places;
	void *gate, *pending = NULL;
	int count, error;

	if (n != 6 || s->f.gate_ask == NULL || !PyLong_Check(args[0]) || !PyTuple_Check(args[1])) {
		PyErr_SetString(PyExc_TypeError, "ask(gate, limits, request, as_bytes, waits, enters)");
		return NULL;
	}
	gate = PyLong_AsVoidPtr(args[0]);
	count = read_keys(args[1], args[2], keys, objects);
	if (count < 0)
		return NULL;
	answer.struct_size = sizeof(answer);
	answer.buffer = buffer;
	answer.buffer_size = sizeof(buffer);
#define ASK \
	(args[5] == Py_None   ? s->f.gate_begin(gate, keys, (size_t)count, &answer, &held, &pending) \
	 : args[5] == Py_True ? s->f.gate_enter(gate, keys, (size_t)count, &answer, &held) \
	                      : s->f.gate_ask(gate, keys, (size_t)count, &answer))
	if (args[4] == Py_True) {
		Py_BEGIN_ALLOW_THREADS error = ASK;
		Py_END_ALLOW_THREADS
	} else {
		error = ASK;
	}
#undef ASK
	if (__atomic_load_n(&lines, __ATOMIC_RELAXED) != NULL)
		log_lines(s);
	if (error < 0) {
		made = raise(error);
	} else if (pending != NULL) {
		/* Without memory the request is forgotten, as that of a process that was killed. */
		made = make_pending(pending, &answer, make_places(&held, keys, count));
	} else {
		places = held.count == 0 ? shared(Py_None) : make_places(&held, keys, count);
		made = make_gate_answer(s, &answer, args[3] == Py_True, places);
		if (made == NULL)
			(void)s->f.gate_leave(gate, keys, (size_t)count, &held);
	}
	while (count > 0)
		Py_DECREF(objects[--count]);
	return made;
}

/* leave(gate, places): the places that ask() returned. */
static PyObject *leave(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	const struct state *s = PyModule_GetState(module);
	struct gate_key keys[REQUESTS_MAX];
	struct gate_held held;
	Py_ssize_t parts, length;
	char *bytes;
	int error;

	if (n != 2 || s->f.gate_leave == NULL || !PyLong_Check(args[0]) || !PyTuple_Check(args[1]) ||
	    (parts = PyTuple_Size(args[1])) % 2 != 1 || parts > 1 + 2 * REQUESTS_MAX) {
		PyErr_SetString(PyExc_TypeError, "leave(gate, places)");
		return NULL;
	}
	if (PyBytes_AsStringAndSize(PyTuple_GetItem(args[1], 0), &bytes, &length) != 0)
		return NULL;
	if (length != sizeof(held))
		return raise(-EINVAL);
	memcpy(&held, bytes, sizeof(held));
	for (Py_ssize_t i = 0; i < parts / 2; i++) {
		keys[i].limit = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GetItem(args[1], 1 + 2 * i));
		if (PyErr_Occurred() ||
		    PyBytes_AsStringAndSize(PyTuple_GetItem(args[1], 2 + 2 * i), &bytes, &length) != 0)
			return NULL;
		keys[i].bytes = bytes;
		keys[i].length = (uint32_t)length;
	}
	error = s->f.gate_leave(PyLong_AsVoidPtr(args[0]), keys, (size_t)parts / 2, &held);
	if (error < 0)
		return raise(error);
	if (__atomic_load_n(&lines, __ATOMIC_RELAXED) != NULL)
		log_lines(s);
	Py_RETURN_NONE;
}

/* attach(gate, waits): the error, negative, or 0 */
static PyObject *attach(PyObject *module, PyObject *args)
{
	const struct state *s = PyModule_GetState(module);
	unsigned long long gate;
	int waits, error;

	if (!PyArg_ParseTuple(args, "Kp", &gate, &waits))
		return NULL;
	if (waits) {
		Py_BEGIN_ALLOW_THREADS error = s->f.gate_attach((void *)(uintptr_t)gate);
		Py_END_ALLOW_THREADS
	} else {
		error = s->f.gate_attach((void *)(uintptr_t)gate);
	}
	log_lines(s);
	return PyLong_FromLong(error);
}

/* watch(gate): log its reports */
static PyObject *watch(PyObject *module, PyObject *gate)
{
	const struct state *s = PyModule_GetState(module);
	void *address = PyLong_AsVoidPtr(gate);

	if (address == NULL)
		return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no gate");
	s->f.gate_report(address, report, NULL);
	Py_RETURN_NONE;
}

/* ---- the module ---- */

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
	{ "take", FAST(take), METH_FASTCALL, NULL },
	{ "peek", FAST(peek), METH_FASTCALL, NULL },
	{ "count", FAST(count), METH_FASTCALL, NULL },
	{ "ask", FAST(ask), METH_FASTCALL, NULL },
	{ "leave", FAST(leave), METH_FASTCALL, NULL },
	{ "attach", attach, METH_VARARGS, NULL },
	{ "watch", watch, METH_O, NULL },
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
