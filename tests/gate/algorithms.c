/*
 * algorithms: another process gives a rule another algorithm while a gate decides, as a server does that starts with
 * a changed configuration. No request fails for it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"

#define CHANGES 400

static struct shared {
	_Atomic unsigned changes, errors;
} * shared;

/* In another process: each of the limits' texts in turn, until it is killed. */
static void change(const char *const texts[], size_t n)
{
	struct shmlimit *l;

	if (shmlimit_open(unit_name, 0, NULL, &l) != 0) {
		shared->errors = shared->changes = CHANGES;
		_exit(1);
	}
	for (size_t i = 1;; i++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
		int error = shmlimit_rule_parse(texts[i % n], &rule, NULL);

		if (error == 0)
			error = shmlimit_rule_ensure(l, "page", &rule);
		if (error < 0)
			shared->errors++;
		shared->changes++;
		usleep(200);
	}
}

static void changes(const char *title, const char *const texts[], size_t n)
{
	struct shmlimit_gate_key keys[2] = { { .limit = 0, .bytes = "k", .length = 1 },
		                             { .limit = 1, .bytes = "k", .length = 1 } };
	struct shmlimit_gate_held held = { .struct_size = sizeof(held) };
	long requests = 0, failed = 0, odd = 0;
	char spec[200];
	struct shmlimit_gate *gate;
	pid_t writer;

	snprintf(spec, sizeof(spec), "create=yes slots=64 rule=page rate=\"%s\" rule=other rate=1000000/s", texts[0]);
	gate = gate_new(spec);
	shared->changes = shared->errors = 0;
	writer = fork();
	if (writer == 0)
		change(texts, n);
	if (writer < 0)
		bail("fork");
	for (; shared->changes < CHANGES; requests++) {
		new_out();
		if (shmlimit_gate_enter(gate, keys, 1 + requests % 2, &answer, &held) < 0)
			odd++;
		failed += answer.outcome == SHMLIMIT_GATE_FAILED;
		odd += answer.status != 0 && answer.status != 429;
		if (shmlimit_gate_leave(gate, keys, 1 + requests % 2, &held) != 0)
			odd++;
	}
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
	is(shared->errors, 0, "%s: the rule is changed %u times", title, (unsigned)shared->changes);
	ok(failed == 0 && odd == 0, "%s: none of %ld requests fails (%ld, %ld)", title, requests, failed, odd);
	is(gate_said, 0, "%s: there is nothing to report: %s", title, gate_lines[0]);
	shmlimit_gate_close(gate);
	shmlimit_destroy(unit_name);
}

int main(void)
{
	static const char *const windows[] = { "1000000/s", "1000/s window" };
	/* One size of cells for both: a second, larger one may have to wait until all keys are in the new table. */
	static const char *const places[] = { "1000000/s", "50 at once", "50/s window" };

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		bail("mmap");
	shmlimit_close(unit_create("gate.algorithms", NULL));
	shmlimit_destroy(unit_name);
	changes("a funnel and a window", windows, 2);
	changes("a funnel, places and a window", places, 3);
	return tap_done();
}
