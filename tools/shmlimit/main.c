/*
 * main.c: which command was meant, and whether all that it printed arrived.
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

static const struct command *const commands[] = {
	&command_size,
	&command_replay,
	&command_create,
	&command_destroy,
	&command_grow,
	&command_list,
	&command_rule_set,
	&command_rule_show,
	&command_rule_list,
	&command_rule_remove,
	&command_rule_export,
	&command_apply_all,    /* before what its name begins with */
	&command_apply,
	&command_take,
	&command_peek,
	&command_reserve,
	&command_acquire,
	&command_charge,
	&command_refund,
	&command_throttle,
	&command_reset,
	&command_global_take,
	&command_global_inspect,
	&command_global_ping,
	&command_global_reset,
	&command_enable,
	&command_disable,
	&command_inspect,
	&command_keys,
	&command_top,
	&command_stat,
	&command_metrics,
	&command_verify,
	&command_save,
	&command_load,
	NULL,
};

static const struct option options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ "owner", required_argument, NULL, 'o' },
	{ 0 },
};

/* How many of the words at argv[0] spell the name: 0, 1 or 2. */
static int words_spelling(const char *name, char **argv)
{
	size_t len = strcspn(name, " ");

	if (argv[0] == NULL || strlen(argv[0]) != len || strncmp(name, argv[0], len) != 0)
		return 0;
	if (name[len] == '\0')
		return 1;
	return argv[1] != NULL && strcmp(name + len + 1, argv[1]) == 0 ? 2 : 0;
}

/* Words that need a second one. */
static const struct group {
	const char *word, *verbs;
} groups[] = {
	{ "rule", "rule set, show, list, remove or export" },
	{ "global", "global take, inspect, ping or reset" },
};

/* The first word, without or with a second that is none of ours. */
static int run_group(const struct group *group, const char *verb)
{
	char prefix[16];

	if (verb == NULL)
		return fail("%s: what to do is missing: must be %s", group->word, group->verbs);
	if (strcmp(verb, "--help") != 0 && strcmp(verb, "-h") != 0)
		return fail("%s %s: no such command: must be %s", group->word, verb, group->verbs);
	snprintf(prefix, sizeof(prefix), "%s ", group->word);
	help_all(commands, prefix);
	return STATUS_OK;
}

static int dispatch(int argc, char **argv)
{
	for (const struct command *const *c = commands; *c != NULL; c++) {
		int words = words_spelling((*c)->name, argv);

		if (words > 0)
			return command_run(*c, argc - words + 1, argv + words - 1);
	}
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (strcmp(argv[0], groups[i].word) == 0)
			return run_group(&groups[i], argv[1]);
	return fail("%s: no such command (shmlimit --help lists them)", argv[0]);
}

static int run(int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:hVo:", options, NULL)) == 'o')
		if (segment_trust(optarg) != STATUS_OK)
			return STATUS_ERROR;
	switch (option) {
	case 'h':
		help_all(commands, "");
		return STATUS_OK;
	case 'V':
		puts("shmlimit " SHMLIMIT_VERSION);
		return STATUS_OK;
	case -1:
		break;
	case ':':
		return fail("--owner: a user is missing: must be --owner USER");
	default:
		return fail("%s: no such option: must be --help, --version, --owner USER or a command", argv[optind - 1]);
	}
	if (optind == argc)
		return fail("a command is missing (shmlimit --help lists them)");
	return dispatch(argc - optind, argv + optind);
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

	return fstat(fd, &there) == 0 && (S_ISFIFO(there.st_mode) || S_ISSOCK(there.st_mode)) && poll(&output, 1, 0) > 0 &&
	       (output.revents & (POLLERR | POLLHUP)) != 0;
}

static int check_output(int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	/* A pipe whose reader has seen enough. WHY NOT earlier: what changes several things is not to end between them. */
	if (nobody_reads(STDOUT_FILENO)) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	return fail("standard output: not all could be written%s%s: must be open, and on a disk with room",
	            errno ? ": " : "", errno ? strerror(errno) : "");
}

/* It says what of a key can be printed; where that is not UTF-8, only ASCII: JSON knows nothing else. */
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
