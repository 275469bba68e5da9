/*
 * replay_plot.c: what replay found, as a picture that gnuplot draws. Of what
 * was typed only a rule gets into its script, which has no quotes in it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atomic_file.h"
#include "fail.h"
#include "print.h"
#include "replay.h"

/* Run gnuplot between two files. Returns 0, an errno, or -1: it failed. */
static int run_gnuplot(int from, int to)
{
	char program[] = "gnuplot", dash[] = "-";
	char *argv[] = { program, dash, NULL };
	posix_spawn_file_actions_t actions;
	int error, end;
	pid_t pid;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return ENOMEM;
	error = posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO);
	if (error == 0)
		error = posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
	if (error == 0)
		error = posix_spawnp(&pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error != 0)
		return error;
	while (waitpid(pid, &end, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(end) && WEXITSTATUS(end) == 0 ? 0 : -1;
}

static void print_script(FILE *to, const struct replay *r)
{
	const struct replay_steps *s = &r->steps;

	fputs("set terminal svg size 1000,500 noenhanced background 'white'\n"
	      "set xdata time\nset timefmt '%s'\nset format x \"%Y-%m-%d\\n%H:%M\"\nset xlabel 'UTC'\n"
	      "set ylabel 'requests a second'\nset yrange [0:*]\nset key outside below\nset grid\n",
	      to);
	fprintf(to, "set xrange ['%" PRId64 "':'%" PRId64 "']\n$steps << END\n", s->from_s,
	        s->from_s + (int64_t)(s->count * s->step_s));
	for (size_t i = 0; i < s->count; i++) {
		fprintf(to, "%" PRId64 " %g", s->from_s + (int64_t)((uint64_t)i * s->step_s),
		        (double)s->requests[i] / (double)s->step_s);
		for (size_t rule = 0; rule < r->rules; rule++)
			fprintf(to, " %g", (double)s->denied[rule][i] / (double)s->step_s);
		putc('\n', to);
	}
	fputs("END\nplot $steps using 1:2 with fillsteps fillstyle solid 0.2 title 'requests'", to);
	for (size_t rule = 0; rule < r->rules; rule++)
		fprintf(to, ", $steps using 1:%zu with steps linewidth 2 title 'denied by %s'", rule + 3,
		        r->rule[rule].text);
	putc('\n', to);
}

static int fail_plot(int error)
{
	if (error == ENOENT)
		return fail("--plot: gnuplot is not installed (on Debian: apt install gnuplot-nox)");
	return fail("--plot: gnuplot: %s (it must be able to draw SVG)", error > 0 ? strerror(error) : "failed");
}

int plot_check(void)
{
	FILE *nothing = fopen("/dev/null", "r+");
	int error = nothing != NULL ? run_gnuplot(fileno(nothing), fileno(nothing)) : errno;

	if (nothing != NULL)
		fclose(nothing);
	return error == 0 ? STATUS_OK : fail_plot(error);
}

int replay_plot(const struct replay *r, const char *path)
{
	struct atomic_file picture;
	FILE *script = tmpfile();
	int error, status;

	if (r->steps.count == 0) {
		if (script != NULL)
			fclose(script);
		return fail("--plot: nothing to draw: no requests in the log");
	}
	if (script == NULL)
		return fail("--plot: cannot create a temporary file: %s", strerror(errno));
	status = atomic_file_open(&picture, path);
	if (status == STATUS_OK) {
		fflush(picture.to);
		print_script(script, r);
		error = fflush(script) == 0 && lseek(fileno(script), 0, SEEK_SET) == 0
		                ? run_gnuplot(fileno(script), fileno(picture.to))
		                : errno;
		if (error == 0) {
			status = atomic_file_commit(&picture);
		} else {
			atomic_file_drop(&picture);
			status = fail_plot(error);
		}
	}
	fclose(script);
	return status;
}
