/*
 * command: whatever is typed, in a /dev/shm of the program's own: the command
 * answers with a status that it documents, and says something when it fails.
 *
 *	input  commands, a line each, words between blanks; a tab in a word stands for a blank. Behind a line `--`
 *stands the file f, which they may read
 *
 * Nothing gets out: the mounts are private, and so is the folder that it runs in,
 * which has no folders; words that could lead elsewhere are not run. It neither
 * sleeps nor starts programs, and what does not end by itself is not run.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <ctype.h>
#include <getopt.h>

#include "../../process/process.h"
#include "command.h"
#include "fail.h"
#include "fuzz.h"
#include "print.h"

#define WORDS_MAX 24
#define SKIPPED 77

int shmlimit_main(int argc, char **argv);
int __wrap_plot_check(void);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left);

static int home, shm;
static FILE *said;

int __wrap_plot_check(void)
{
	return fail("--plot: not here");
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
	(void)clock;
	(void)flags;
	(void)until;
	(void)left;
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int nothing;

	(void)argc;
	(void)argv;
	if (private_shm("size=4m") != 0) {
		dprintf(STDERR_FILENO, "no /dev/shm of one's own is permitted\n");
		_exit(SKIPPED);
	}
	home = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	shm = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	law(home >= 0 && shm >= 0, "no folder");
	stdout = fopen("/dev/null", "w");
	stderr = said = tmpfile();
	if (said == NULL)
		stderr = said = fopen("/dev/null", "w");
	nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	law(nothing >= 0 && dup2(nothing, STDIN_FILENO) == STDIN_FILENO, "no /dev/null");
	return 0;
}

/* In the folder without folders a path leads nowhere else unless it begins at the root or goes up. */
static int stays_here(const char *word)
{
	if (strstr(word, "..") != NULL)
		return 0;
	for (const char *slash = word; (slash = strchr(slash, '/')) != NULL; slash++)
		if (slash == word || !isalnum((unsigned char)slash[-1]))
			return 0;
	return 1;
}

static void sweep(void)
{
	DIR *folder = opendir("/dev/shm");
	struct dirent *entry;

	while ((entry = readdir(folder)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			(void)unlinkat(dirfd(folder), entry->d_name, 0);
	closedir(folder);
}

static void type(char *line)
{
	char *argv[WORDS_MAX + 2] = { "shmlimit" }, *next = line;
	int argc = 1, status, is_check = 0;
	long before;

	for (; argc <= WORDS_MAX && (argv[argc] = strsep(&next, " ")) != NULL; argc++) {
		if (strcmp(argv[argc], "stat") == 0 || strcmp(argv[argc], "exec") == 0)
			return;
		is_check |= strcmp(argv[argc], "check") == 0;
		for (char *tab = argv[argc]; (tab = strchr(tab, '\t')) != NULL;)
			*tab = ' ';
		if (!stays_here(argv[argc]))
			return;
	}
	argv[argc] = NULL;
	rewind(said);
	before = ftell(said);
	optind = 0;
	status = shmlimit_main(argc, argv);
	fflush(said);
	law(status >= STATUS_OK && status <= STATUS_MISSING, "status %d", status);
	/* What check finds it says on standard output, as its callers expect. */
	law(status < STATUS_ERROR || is_check || ftell(said) > before, "status %d without a word", status);
	law(!ferror(stdout), "standard output");
}

static void write_file(const char *text, size_t len)
{
	int fd = open("f", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	law(fd >= 0 && write(fd, text, len) == (ssize_t)len, "no file f");
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *file, *line, *next = text;

	memcpy(text, data, size);
	text[size] = '\0';
	file = memmem(text, size, "\n--\n", 4);
	law(fchdir(shm) == 0, "no folder");
	if (file != NULL) {
		write_file(file + 4, size - (size_t)(file + 4 - text));
		*file = '\0';
		size = (size_t)(file - text);
	}
	for (char *nul = text; (nul = memchr(nul, '\0', size - (size_t)(nul - text))) != NULL;)
		*nul = '\t';
	while ((line = strsep(&next, "\n")) != NULL)
		type(line);
	sweep();
	law(fchdir(home) == 0, "no way back");
	free(text);
	return 0;
}
