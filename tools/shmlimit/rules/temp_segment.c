/*
 * temp_segment.c: a segment of this process alone. It loses its name before anything
 * is decided in it, so that nothing has to be cleaned up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "fail.h"
#include "number_text.h"
#include "segment_options.h"
#include "temp_segment.h"

static int fail_trial(const char *called, const struct shmlimit_rule *rule, int error)
{
	if (error == -ERANGE)
		return fail_exact(called, rule);
	if (error == -EFBIG)
		return fail("rule %s: window too large: must be %d or less", called, SHMLIMIT_WINDOW_MAX);
	return fail("rule %s: %s", called, shmlimit_strerror(error));
}

static int set_rules(struct shmlimit *limiter, const struct shmlimit_rule *rule, const char *const *called,
                     size_t rules)
{
	char name[TEXT_LEN];

	for (size_t i = 0; i < rules; i++) {
		int error;

		snprintf(name, sizeof(name), "%zu", i);
		error = shmlimit_rule_set(limiter, name, &rule[i]);
		if (error < 0)
			return fail_trial(called[i], &rule[i], error);
	}
	return STATUS_OK;
}

/* A name that no other process can guess, and so not take first. A status. */
static int name_make(char name[TEXT_LEN])
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return fail("cannot get random numbers: %s", strerror(errno));
	snprintf(name, TEXT_LEN, "shmlimit-scratch.%ld.%016" PRIx64, (long)getpid(), number);
	return STATUS_OK;
}

static int make(const struct shmlimit_options *options, const struct shmlimit_rule *rule, const char *const *called,
                size_t rules, struct shmlimit **out)
{
	char name[TEXT_LEN];
	int error, status = name_make(name);

	if (status != STATUS_OK)
		return status;
	error = shmlimit_create(name, options, out);
	if (error < 0)
		return fail("/dev/shm: %s: must have room for a segment of %" PRIu64 " slots (use fewer --slots)",
		            strerror(-error), options->slots);
	status = set_rules(*out, rule, called, rules);
	shmlimit_destroy(name);
	if (status != STATUS_OK) {
		shmlimit_close(*out);
		*out = NULL;
	}
	return status;
}

static int make_read_only(const char *called, const struct shmlimit_options *options, struct shmlimit **out)
{
	char name[TEXT_LEN];
	int error, status = name_make(name);

	if (status != STATUS_OK)
		return status;
	error = shmlimit_create(name, options, NULL);
	if (error < 0)
		return segment_options_fail(called, error);
	error = shmlimit_open(name, SHMLIMIT_OPEN_READ_ONLY, NULL, out);
	shmlimit_destroy(name);
	return error < 0 ? fail_segment(called, error) : STATUS_OK;
}

static void hold_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, before);
}

int temp_segment_open(const struct shmlimit_options *options, const struct shmlimit_rule *rule,
                      const char *const *called, size_t rules, struct shmlimit **out)
{
	sigset_t before;
	int status;

	hold_signals(&before);
	status = make(options, rule, called, rules, out);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}

int temp_segment_open_read_only(const char *called, const struct shmlimit_options *options, struct shmlimit **out)
{
	sigset_t before;
	int status;

	hold_signals(&before);
	status = make_read_only(called, options, out);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}
