/*
 * log_files.c: the lines of logs. zlib reads what is compressed by gzip, what is not, and what
 * another program unpacks. Files are read in the order of their first times, since a shell puts
 * access.log before access.log.1, and access.log.10.gz before access.log.2.gz.
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
#include "log_record.h"

#define BUFFER_SIZE (1u << 18) /* the longest line that is seen whole */
#define BAD_TEXT 160           /* so much of a line is shown */
#define PEEK_LINES 1000        /* this number of lines may precede the first that is one */

struct log_file {
	const char *path; /* NULL: standard input */
	size_t place;     /* on the command line */
	int64_t first_ns;
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

/* Where the file needs it, lets its program unpack it, and replaces *fd. Returns a status. */
static int unpack(struct log_files *files, int *fd)
{
	const struct log_file *file = &files->file[files->at];
	const struct unpacker *unpacker = unpacker_of_file(*fd);
	int from;

	files->fd = -1;
	if (unpacker == NULL)
		return STATUS_OK;
	from = unpacker_begin(unpacker, *fd, &files->pid);
	if (from == -ENOENT)
		return fail("%s: needs %s, which is not installed (on Debian: apt install %s)", shown(file),
		            unpacker->program, unpacker->package);
	if (from < 0)
		return fail("%s: %s: %s", shown(file), unpacker->program, strerror(-from));
	files->fd = *fd;
	*fd = from;
	return STATUS_OK;
}

static void end_unpacker(struct log_files *files)
{
	if (files->fd < 0)
		return;
	close(files->fd);
	files->fd = -1;
	unpacker_end(files->pid);
}

static int open_at(struct log_files *files)
{
	const struct log_file *file = &files->file[files->at];
	int fd = file->path != NULL ? open(file->path, O_RDONLY | O_CLOEXEC) : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	int status;

	if (fd < 0)
		return fail_log(file, strerror(errno));
	status = unpack(files, &fd);
	if (status != STATUS_OK) {
		close(fd);
		return status;
	}
	files->gz = gzdopen(fd, "rb");
	if (files->gz == NULL) {
		close(fd);
		end_unpacker(files);
		return fail_memory();
	}
	gzbuffer(files->gz, BUFFER_SIZE);
	files->begin = files->end = 0;
	files->skip = files->inside = 0;
	files->fresh = 1;
	files->ended = 0;
	return STATUS_OK;
}

static void close_at(struct log_files *files)
{
	if (files->gz != NULL)
		gzclose_r(files->gz);
	files->gz = NULL;
	end_unpacker(files);
}

/* What was read so far counts. */
static void warn_cut(const struct log_files *files, const char *how)
{
	const struct log_file *file = &files->file[files->at];

	if (!files->peeks)
		fail("warning: %s: %s after line %" PRIu64 ", up to which it counts", shown(file), how, file->lines);
}

/* The end of what is unpacked is the file's only if its program says so. */
static void check_unpacked(struct log_files *files)
{
	if (files->fd < 0)
		return;
	close(files->fd);
	files->fd = -1;
	if (!unpacker_end(files->pid))
		warn_cut(files, "cut short or damaged");
}

/* A pipe cannot be read twice, so no program can be given what it began with. */
static int check_plain(const struct log_files *files)
{
	const struct unpacker *unpacker = unpacker_of(files->buffer, files->end);

	if (unpacker == NULL)
		return STATUS_OK;
	return fail("%s: compressed by %s: give its file, or unpack it: %s -dc FILE | shmlimit replay ...",
	            shown(&files->file[files->at]), unpacker->program, unpacker->program);
}

/* Returns a status; *got is 0 at the end of the file. */
static int fill(struct log_files *files, int *got)
{
	int code;
	const char *why;

	*got = 0;
	if (files->ended)
		return STATUS_OK;
	errno = 0;
	memmove(files->buffer, files->buffer + files->begin, files->end - files->begin);
	files->end -= files->begin;
	files->begin = 0;
	*got = gzread(files->gz, files->buffer + files->end, (unsigned)(BUFFER_SIZE - files->end));
	why = gzerror(files->gz, &code);
	if (code == Z_ERRNO)
		why = strerror(errno);
	if (*got <= 0 && (code == Z_BUF_ERROR || code == Z_DATA_ERROR)) {
		warn_cut(files, code == Z_BUF_ERROR ? "cut short" : "damaged");
		*got = 0;
	} else if (*got < 0 || (*got == 0 && code != Z_OK && code != Z_STREAM_END)) {
		return fail_log(&files->file[files->at], why);
	}
	files->ended = *got == 0;
	if (files->ended)
		check_unpacked(files);
	files->end += (size_t)*got;
	if (files->fresh && *got > 0) {
		files->fresh = 0;
		return check_plain(files);
	}
	return STATUS_OK;
}

static void hand_over(struct log_files *files, const struct log_record *record, struct span *line, int *found)
{
	*line = (struct span){ files->buffer + files->begin + record->begin, record->end - record->begin };
	files->begin += record->next;
	files->inside = record->inside;
	*found = record->found;
}

/* Skips what there is of a line that did not fit. */
static void skip_rest(struct log_files *files)
{
	const char *from = files->buffer + files->begin, *newline = memchr(from, '\n', files->end - files->begin);

	files->begin = newline != NULL ? (size_t)(newline + 1 - files->buffer) : files->end;
	files->skip = newline == NULL;
}

/*
 * A file that was cut while its writer had it open begins with NULs, as many as there were bytes
 * before.
 */
static void skip_nuls(struct log_files *files)
{
	while (!files->skip && files->begin < files->end && files->buffer[files->begin] == '\0')
		files->begin++;
}

/* A line of the file that is open, or one of several objects of a line. *found is 0 at its end. */
static int line_at(struct log_files *files, struct span *line, int *found)
{
	int status = STATUS_OK, got = 1;

	*found = 0;
	while (status == STATUS_OK && !*found) {
		struct log_record record;
		size_t len;

		skip_nuls(files);
		len = files->end - files->begin;
		if (files->skip && len > 0) {
			skip_rest(files);
		} else if (len > 0 &&
		           log_record_find(files->buffer + files->begin, len, files->inside, got == 0, &record)) {
			hand_over(files, &record, line, found);
		} else if (len == BUFFER_SIZE) {
			record = (struct log_record){ .end = len, .next = len, .found = 1 };
			hand_over(files, &record, line, found);
			files->skip = 1;
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
	int found, status;

	files->peeks = 1;
	status = open_at(files);
	file->first_ns = INT64_MAX;
	for (int i = 0; status == STATUS_OK && i < PEEK_LINES && file->first_ns == INT64_MAX; i++) {
		status = line_at(files, &line, &found);
		if (status != STATUS_OK || !found)
			break;
		if (!log_line_parse(line.at, line.len, &parsed))
			continue;
		file->first_ns = parsed.unix_ns;
		log_line_free(&parsed);
	}
	close_at(files);
	files->peeks = 0;
	if (stat(file->path, &stat_of) == 0)
		files->size += (uint64_t)stat_of.st_size;
	return status;
}

static int older(const void *left, const void *right)
{
	const struct log_file *a = left, *b = right;

	if (a->first_ns != b->first_ns)
		return a->first_ns < b->first_ns ? -1 : 1;
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

	*files = (struct log_files){ .fd = -1 };
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
	return fail(
		"%s: no line is in the common, combined or vhost_combined format, or JSON; line %" PRIu64 ": %s%s",
		shown(file), file->bad, file->bad_text,
		file->bad_text[strspn(file->bad_text, " \t\r,[]")] == '{'
			? " (an object of several lines: jq -c . FILE | shmlimit replay ...)"
			: " (any log can be made JSON with the members time, remote_addr and path: see shmlimit(1))");
}

/* Of the file that is read. */
static uint64_t done_at(const struct log_files *files)
{
	off_t at = files->fd >= 0 ? lseek(files->fd, 0, SEEK_CUR) : gzoffset(files->gz);

	return at > 0 ? (uint64_t)at : 0;
}

int log_files_line(struct log_files *files, struct span *line, int *found)
{
	int status = line_at(files, line, found);

	if (status == STATUS_OK && !*found)
		status = check_understood(&files->file[files->at]);
	while (status == STATUS_OK && !*found && files->at + 1 < files->count) {
		files->behind += done_at(files);
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
	return files->behind + done_at(files);
}

void log_files_close(struct log_files *files)
{
	close_at(files);
	free(files->buffer);
	free(files->file);
}
