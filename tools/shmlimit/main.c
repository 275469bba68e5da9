/*
 * main.c: what stands before the command, and whether all that it printed arrived.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "fail.h"
#include "named_segment.h"

static const struct option options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ "owner", required_argument, NULL, 'o' },
	{ 0 },
};

static int run(int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:hVo:", options, NULL)) == 'o')
		if (segment_trust(optarg) != STATUS_OK)
			return STATUS_ERROR;
	switch (option) {
	case 'h':
		commands_help("");
		return STATUS_OK;
	case 'V':
		puts("shmlimit " SHMLIMIT_VERSION);
		return STATUS_OK;
	case -1:
		break;
	case ':':
		return fail("--owner: missing value (usage: --owner USER)");
	default:
		return fail("%s: no such option (shmlimit --help lists commands and options)", argv[optind - 1]);
	}
	if (optind == argc)
		return fail("a command is missing (shmlimit --help lists them)");
	return commands_run(argc - optind, argv + optind);
}

/*
 * A standard stream that was closed gets a file on which its use fails: else
 * the segment's file would become descriptor 1, and be printed into.
 */
static void occupy_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
			(void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static int nobody_reads(int fd)
{
	struct pollfd output = { .fd = fd, .events = POLLOUT };
	struct stat there;

	return fstat(fd, &there) == 0 && (S_ISFIFO(there.st_mode) || S_ISSOCK(there.st_mode)) &&
	       poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

static int check_output(int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	/*
	 * A pipe whose reader has seen enough. WHY NOT earlier: what changes several things is not
	 * to end between them.
	 */
	if (nobody_reads(STDOUT_FILENO)) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	return fail("standard output: not all could be written%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
}

/*
 * It says what of a key can be printed; where that is not UTF-8, only ASCII: JSON knows nothing
 * else.
 */
static void set_locale(void)
{
	if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C");
}

int main(int argc, char **argv)
{
	occupy_standard_streams();
	set_locale();
	/* Errors, of which we say what is wrong. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return check_output(run(argc, argv));
}
