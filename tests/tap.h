/*
 * tap: the Test Anything Protocol, as little of it as our tests need.
 *
 * The plan is printed by tap_done() alone, as the program's last line: a crash
 * or an early exit shows as "no plan". Only the process that reported first
 * may report: a forked child that does aborts, and so fails its parent's wait.
 *
 *	ok(2 + 2 == 4, "two and two make four");
 *	is(shmlimit_take(...), SHMLIMIT_ALLOWED, "a new key is admitted");
 *	return tap_done();
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int tap_count, tap_failed;
static pid_t tap_owner;

/*
 * A test starts in the same state whatever started it: no signal is ignored or blocked (a shell's background jobs
 * ignore SIGINT, nohup ignores SIGHUP, some runners ignore SIGPIPE), and the umask is 022. Programs that the test
 * starts inherit that.
 */
__attribute__((constructor)) static void tap_begin(void)
{
	sigset_t none;

	for (int number = 1; number <= SIGRTMAX; number++) {
		struct sigaction action;

		if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			signal(number, SIG_DFL);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(022);
}

__attribute__((unused)) static void tap_claim(void)
{
	if (tap_owner == 0) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		tap_owner = getpid();
	}
	if (tap_owner != getpid())
		abort();
}

__attribute__((unused, format(printf, 1, 2))) static void diag(const char *format, ...)
{
	va_list ap;

	fputs("# ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
}

__attribute__((unused, format(printf, 4, 5))) static int tap_ok(int pass, const char *file, int line, const char *title,
                                                                ...)
{
	va_list ap;

	tap_claim();
	tap_count++;
	printf("%sok %d - ", pass ? "" : "not ", tap_count);
	va_start(ap, title);
	vprintf(title, ap);
	va_end(ap);
	putchar('\n');
	if (!pass) {
		tap_failed++;
		diag("failed at %s:%d", file, line);
	}
	return pass;
}

/* The title is a law, a printf format with its arguments. */
#define ok(condition, ...) tap_ok((condition) ? 1 : 0, __FILE__, __LINE__, __VA_ARGS__)

/* Two integers are equal; says both when they are not. */
#define is(got, want, ...) \
	do { \
		long long tap_got = (long long)(got), tap_want = (long long)(want); \
		if (!tap_ok(tap_got == tap_want, __FILE__, __LINE__, __VA_ARGS__)) \
			diag("got %lld (0x%llx), want %lld (0x%llx)", tap_got, (unsigned long long)tap_got, tap_want, \
			     (unsigned long long)tap_want); \
	} while (0)

/* Two strings are equal. */
#define is_str(got, want, ...) \
	do { \
		const char *tap_got = (got), *tap_want = (want); \
		if (!tap_ok(strcmp(tap_got, tap_want) == 0, __FILE__, __LINE__, __VA_ARGS__)) \
			diag("got \"%s\", want \"%s\"", tap_got, tap_want); \
	} while (0)

__attribute__((unused)) static void tap_skip(const char *title, const char *why)
{
	tap_claim();
	printf("ok %d - %s # SKIP %s\n", ++tap_count, title, why);
}

/* Skip the whole program: call it first, and return what it returns. */
__attribute__((unused)) static int tap_skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 0;
}

/* A test that cannot go on: ends without a plan, so it fails. */
#define bail(...) (diag(__VA_ARGS__), exit(1))

__attribute__((unused)) static int tap_done(void)
{
	tap_claim();
	printf("1..%d\n", tap_count);
	return tap_failed != 0;
}

#endif
