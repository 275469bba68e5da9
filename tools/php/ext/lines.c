/*
 * lines: what gates report, until a call passes it on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "gate.h"

/* What is to be reported. Any thread adds a line, such as that of agent=thread, and a call on the gate takes them all. */
struct line {
	struct line *next; /* the line before this one */
	char text[];
};

/*
 * Lines are passed on when the call is over: PHP code could leave it by a jump. ORDER releases the line to lines_take(). Without
 * memory there is no line.
 */
void lines_add(void *arg, int bad, const char *text)
{
	struct gate *gate = arg;
	size_t size = strlen(text) + 1;
	struct line *line = malloc(sizeof(*line) + size);

	(void)bad;
	if (line == NULL)
		return;
	memcpy(line->text, text, size);
	line->next = __atomic_load_n(&gate->lines, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&gate->lines, &line->next, line, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

void lines_drop(struct line *line)
{
	while (line != NULL) {
		struct line *next = line->next;

		free(line);
		line = next;
	}
}

/* All lines, the first one first. ORDER acquires the lines from lines_add(). */
static struct line *lines_take(struct line **lines)
{
	struct line *latest = __atomic_exchange_n(lines, NULL, __ATOMIC_ACQUIRE), *first = NULL;

	while (latest != NULL) {
		struct line *next = latest->next;

		latest->next = first;
		first = latest;
		latest = next;
	}
	return first;
}

/* The line is freed first: PHP code may end the request by a jump, and then the lines after it are lost. */
static void report_line(struct line *line, zval *callable)
{
	zval text, ignored;

	ZVAL_STRING(&text, line->text);
	free(line);
	ZVAL_UNDEF(&ignored);
	if (Z_TYPE_P(callable) == IS_UNDEF)
		php_log_err(Z_STRVAL(text));
	else
		call_user_function(NULL, NULL, callable, &ignored, 1, &text);
	zval_ptr_dtor(&ignored);
	zval_ptr_dtor(&text);
}

void lines_report(struct gate *gate, zval *callable)
{
	struct line *line = lines_take(&gate->lines);

	while (line != NULL && !EG(exception)) {
		struct line *next = line->next;

		report_line(line, callable);
		line = next;
	}
	lines_drop(line);
}
