/*
 * log_files.c: the lines of logs. zlib reads what is compressed by gzip, and
 * what is not. Files are read in the order of their first times, since a shell
 * puts access.log before access.log.1, and access.log.10.gz before
 * access.log.2.gz.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail.h"
#include "log_files.h"

#define BUFFER_SIZE (1u << 18) /* the longest line that is seen whole */
#define BAD_TEXT 160           /* so much of a line is shown */
#define PEEK_LINES 1000        /* this number of lines may precede the first that is one */

struct log_file {
	const char *path; /* NULL: standard input */
	size_t place;     /* on the command line */
	int64_t first_s;
	uint64_t lines, understood;
	uint64_t bad; /* number of the first line that was not understood and is not empty; 0: none */
	char bad_text[BAD_TEXT + 1];
};

static const char *shown(const struct log_file *file)
{
	return file->path != NULL ? file->path : "standard input";
}

static int fail_log(const struct log_file *file, const char *why)
{
	return fail("%s: %s", shown(file), why);
}

static int open_at(struct log_files *files)
{
	const struct log_file *file = &files->file[files->at];
	int fd = file->path != NULL ? open(file->path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);

	if (fd < 0)
		return fail_log(file, strerror(errno));
	files->gz = gzdopen(fd, "rb");
	if (files->gz == NULL) {
		close(fd);
		return fail_memory();
	}
	gzbuffer(files->gz, BUFFER_SIZE);
	files->begin = files->end = 0;
	files->skip = 0;
	return STATUS_OK;
}

static void close_at(struct log_files *files)
{
	if (files->gz != NULL)
		gzclose_r(files->gz);
	files->gz = NULL;
}

/* Returns a status; *got is 0 at the end of the file. */
static int fill(struct log_files *files, int *got)
{
	int code;
	const char *why;

	errno = 0;
	memmove(files->buffer, files->buffer + files->begin, files->end - files->begin);
	files->end -= files->begin;
	files->begin = 0;
	*got = gzread(files->gz, files->buffer + files->end, (unsigned)(BUFFER_SIZE - files->end));
	why = gzerror(files->gz, &code);
	if (code == Z_ERRNO)
		why = strerror(errno);
	if (code == Z_BUF_ERROR)
		why = "cut short";
	if (*got < 0 || (*got == 0 && code != Z_OK && code != Z_STREAM_END))
		return fail_log(&files->file[files->at], why);
	files->end += (size_t)*got;
	return STATUS_OK;
}

/* Hand over `len` bytes, and skip `more` behind them. The rest of a line that was handed over is not another one. */
static void hand_over(struct log_files *files, size_t len, size_t more, struct span *line, int *found)
{
	*line = (struct span){ files->buffer + files->begin, len };
	files->begin += len + more;
	*found = !files->skip;
	files->skip = 0;
}

/* A line of the file that is open. *found is 0 at its end. */
static int line_at(struct log_files *files, struct span *line, int *found)
{
	int status = STATUS_OK, got = 1;

	*found = 0;
	while (status == STATUS_OK && !*found) {
		char *from = files->buffer + files->begin;
		size_t len = files->end - files->begin;
		const char *newline = memchr(from, '\n', len);

		if (newline != NULL) {
			hand_over(files, (size_t)(newline - from), 1, line, found);
		} else if (len == BUFFER_SIZE || (got == 0 && len > 0)) {
			hand_over(files, len, 0, line, found);
			files->skip = got != 0;
		} else if (got == 0) {
			break;
		} else {
			status = fill(files, &got);
		}
	}
	return status;
}

/* The time of the first line that has one; a file without is as good as none. */
static int peek(struct log_files *files)
{
	struct log_file *file = &files->file[files->at];
	struct log_line parsed;
	struct span line;
	struct stat stat_of;
	int found, status = open_at(files);

	file->first_s = INT64_MAX;
	if (status != STATUS_OK)
		return status;
	for (int i = 0; i < PEEK_LINES && file->first_s == INT64_MAX; i++) {
		status = line_at(files, &line, &found);
		if (status != STATUS_OK || !found)
			break;
		if (!log_line_parse(line.at, line.len, &parsed))
			continue;
		file->first_s = parsed.unix_s;
		log_line_free(&parsed);
	}
	close_at(files);
	if (stat(file->path, &stat_of) == 0)
		files->size += (uint64_t)stat_of.st_size;
	return status;
}

static int older(const void *left, const void *right)
{
	const struct log_file *a = left, *b = right;

	if (a->first_s != b->first_s)
		return a->first_s < b->first_s ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

/* WHY NOT pipes: they can be read once. One alone needs no order. */
static int put_in_order(struct log_files *files)
{
	int status = STATUS_OK;
	struct stat stat_of;

	for (size_t i = 0; i < files->count; i++) {
		if (files->file[i].path == NULL || stat(files->file[i].path, &stat_of) != 0)
			continue;
		if (!S_ISREG(stat_of.st_mode))
			return files->count == 1 ? STATUS_OK : fail_log(&files->file[i], "not a file, among several");
	}
	for (files->at = 0; files->at < files->count && status == STATUS_OK; files->at++)
		if (files->file[files->at].path != NULL)
			status = peek(files);
	files->at = 0;
	qsort(files->file, files->count, sizeof(*files->file), older);
	return status;
}

int log_files_open(struct log_files *files, char **paths)
{
	size_t count = 0;
	int status;

	*files = (struct log_files){ 0 };
	while (paths[count] != NULL)
		count++;
	files->count = count > 0 ? count : 1;
	files->file = calloc(files->count, sizeof(*files->file));
	files->buffer = malloc(BUFFER_SIZE);
	if (files->file == NULL || files->buffer == NULL)
		return fail_memory();
	for (size_t i = 0; i < count; i++) {
		int is_stdin = strcmp(paths[i], "-") == 0;

		if (is_stdin && count > 1)
			return fail("-: standard input cannot be read beside files");
		files->file[i] = (struct log_file){ .path = is_stdin ? NULL : paths[i], .place = i };
	}
	status = put_in_order(files);
	return status == STATUS_OK ? open_at(files) : status;
}

void log_files_note(struct log_files *files, const struct span *line, int understood)
{
	struct log_file *file = &files->file[files->at];

	file->lines++;
	file->understood += understood != 0;
	if (understood || file->bad != 0 || line->len == 0)
		return;
	file->bad = file->lines;
	snprintf(file->bad_text, sizeof(file->bad_text), "%.*s", (int)(line->len < BAD_TEXT ? line->len : BAD_TEXT),
	         line->at);
}

/* Something else was taken for a log: an error log, another format, a file of another kind. */
static int check_understood(const struct log_file *file)
{
	if (file->understood > 0 || file->bad == 0)
		return STATUS_OK;
	return fail("%s: none of %" PRIu64
	            " lines is in the common, combined or vhost_combined format, or JSON; line %" PRIu64 ": %s",
	            shown(file), file->lines, file->bad, file->bad_text);
}

int log_files_line(struct log_files *files, struct span *line, int *found)
{
	int status = line_at(files, line, found);

	if (status == STATUS_OK && !*found)
		status = check_understood(&files->file[files->at]);
	while (status == STATUS_OK && !*found && files->at + 1 < files->count) {
		files->behind += (uint64_t)gzoffset(files->gz);
		close_at(files);
		files->at++;
		status = open_at(files);
		if (status == STATUS_OK)
			status = line_at(files, line, found);
		if (status == STATUS_OK && !*found)
			status = check_understood(&files->file[files->at]);
	}
	return status;
}

uint64_t log_files_done(const struct log_files *files)
{
	return files->behind + (uint64_t)gzoffset(files->gz);
}

void log_files_close(struct log_files *files)
{
	close_at(files);
	free(files->buffer);
	free(files->file);
}
