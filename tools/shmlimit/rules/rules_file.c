/*
 * rules_file.c: what a file of rules asks for. Whether the segment can have it
 * is not looked at here.
 *
 * The file is read by Debian's libinih (BSD licence): it is small and
 * maintained, hands over a key at a time with comments and blanks taken off,
 * and says in which line it understood nothing. Lines get there through
 * next_line(), since libinih, as Debian builds it, cuts a section's name after
 * 49 bytes, does not tell of sections that are empty or come twice, takes the
 * rest of a long line for another one, takes an indented key for more of the
 * value above it, and does not say where the key that it hands over stands.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "allocate.h"
#include "choice.h"
#include "fail.h"
#include "field.h"
#include "print.h"
#include "rules.h"
#include "segment_options.h"

#define SEGMENT "*" /* the section of the segment itself: no rule can have this name */
#define BLANKS " \t\r\n\v\f"
#define WRONG_MAX 20 /* what is wrong so often is no file of rules */

enum section { SECTION_NONE, SECTION_SEGMENT, SECTION_RULE, SECTION_WRONG };

struct reader {
	struct rules_file *file;
	FILE *from;
	int line; /* the one that is being read */
	char *text;
	size_t text_room, rule_spec_room;
	enum section section; /* SECTION_RULE: the last spec of the list; SECTION_WRONG: its keys are not looked at */
	int segment_line;     /* where it began; 0: it didn't */
	int pending;          /* the line should have a key, and libinih has not handed one over */
	int status;           /* not STATUS_OK: nothing more is read */
};

/* Count what was said to be wrong, and go on. Returns the status. */
static int note(struct reader *reader, int status)
{
	if (status != STATUS_OK && ++reader->file->wrong == WRONG_MAX)
		reader->status = fail("%d errors: the rest of the file is not read", WRONG_MAX);
	return status;
}

static void note_pending(struct reader *reader)
{
	if (reader->pending)
		note(reader, fail("not understood (a line is [RULE], KEY = VALUE, or a comment after ; or #)"));
	reader->pending = 0;
}

static int fail_file(const char *path)
{
	return fail("%s: %s", path, strerror(errno));
}

static int again(const char *name, int line)
{
	return fail("section [%s]: begins in line %d already, and can appear once", name, line);
}

static int begin_rule(struct reader *reader, const char *name)
{
	struct rules_file *file = reader->file;
	struct rule_spec *spec;
	int status;

	for (size_t i = 0; i < file->count; i++)
		if (strcmp(file->spec[i].name, name) == 0)
			return again(name, file->spec[i].line);
	if (file->count == reader->rule_spec_room) {
		reader->rule_spec_room = reader->rule_spec_room > 0 ? 2 * reader->rule_spec_room : 64;
		file->spec = allocate_array(file->spec, reader->rule_spec_room, sizeof(*spec));
	}
	spec = &file->spec[file->count];
	status = rule_spec_begin(spec, name);
	if (status != STATUS_OK)
		return status;
	spec->line = reader->line;
	file->count++;
	reader->section = SECTION_RULE;
	return STATUS_OK;
}

/* `text` begins with '['. */
static int begin_section(struct reader *reader, const char *text)
{
	char name[SHMLIMIT_KEY_MAX];
	size_t len = strcspn(text, "]");
	const char *rest = text + len + (text[len] != '\0');

	reader->section = SECTION_WRONG;
	rest += strspn(rest, BLANKS);
	if (text[len] == '\0' || (*rest != '\0' && strchr(";#", *rest) == NULL))
		return fail("section %.*s: must be [RULE] or [" SEGMENT "] and nothing after it",
		            (int)strcspn(text, "\r\n"), text);
	snprintf(name, sizeof(name), "%.*s", (int)len - 1, text + 1);
	if (strcmp(name, SEGMENT) != 0)
		return begin_rule(reader, name);
	if (reader->segment_line != 0)
		return again(name, reader->segment_line);
	reader->section = SECTION_SEGMENT;
	reader->segment_line = reader->line;
	return STATUS_OK;
}

/* libinih's source of lines: `room` bytes are its own for one. */
static char *next_line(char *line, int room, void *stream)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct reader *reader = stream;
	const char *text;
	ssize_t len;

	note_pending(reader);
	if (reader->status != STATUS_OK)
		return NULL;
	len = getline(&reader->text, &reader->text_room, reader->from);
	if (len < 0) {
		fail_where(NULL, 0);
		if (!feof(reader->from))
			reader->status = fail_file(reader->file->path);
		return NULL;
	}
	fail_where(reader->file->path, ++reader->line);
	text = reader->text;
	if (strlen(text) != (size_t)len)
		note(reader, fail("contains a NUL byte"));
	else if (len >= room)
		note(reader, fail("a line of %zd bytes: must be less than %d", len, room));
	if (strlen(text) != (size_t)len || len >= room)
		return strcpy(line, "");
	if (reader->line == 1 && strncmp(text, bom, strlen(bom)) == 0)
		text += strlen(bom);
	text += strspn(text, BLANKS);
	if (*text == '[')
		note(reader, begin_section(reader, text));
	else
		reader->pending = *text != '\0' && strchr(";#", *text) == NULL;
	return strcpy(line, text);
}

static int segment_key(struct reader *reader, const char *key, const char *value)
{
	struct rules_file *file = reader->file;
	char what[SHMLIMIT_KEY_MAX];
	uint32_t enabled;
	int field = 0, status;

	while (field < SEGMENT_OPTIONS && strcmp(segment_options_names[field], key) != 0)
		field++;
	if (field == SEGMENT_OPTIONS && strcmp(key, "enabled") != 0)
		return fail("section [" SEGMENT
		            "]: %s: no such key: use enabled, slots, slots-max, mode, group, on-full, "
		            "rules, rules-max, store-keys or clock",
		            key);
	if (field == SEGMENT_OPTIONS ? file->enabled >= 0 : file->segment_options_line[field] != 0)
		return fail("section [" SEGMENT "]: %s: appears more than once", key);
	snprintf(what, sizeof(what), "section [" SEGMENT "]: %s", key);
	if (field < SEGMENT_OPTIONS) {
		file->segment_options_line[field] = reader->line;
		return segment_options_parse(what, field, value, &file->options);
	}
	status = choice_parse(what, value, choices_yes, &enabled);
	if (status == STATUS_OK)
		file->enabled = (int)enabled;
	return status;
}

static int is_segment_key(const char *key)
{
	for (int field = 0; field < SEGMENT_OPTIONS; field++)
		if (strcmp(segment_options_names[field], key) == 0)
			return 1;
	return strcmp(key, "enabled") == 0;
}

static int rule_key(struct rule_spec *spec, const char *key, const char *value)
{
	int field = 0;

	/* As rule set has it. */
	if (strcmp(key, "limit") == 0)
		key = field_names[FIELD_RATE];
	while (field < FIELDS && strcmp(field_names[field], key) != 0)
		field++;
	if (field == FIELDS && is_segment_key(key))
		return fail("rule %s: %s: is an option of the segment: put it in the section [" SEGMENT "]", spec->name,
		            key);
	if (field == FIELDS)
		return fail("rule %s: %s: no such key: use algorithm, capacity, rate, period, warmup, cold-factor, "
		            "count-refused, max-wait, next-pays, credit, cut-off, law, least, zone, protected or mode",
		            spec->name, key);
	if (spec->given & 1u << field)
		return fail("rule %s: %s: appears more than once", spec->name, key);
	return rule_spec_parse(spec, field, value);
}

/* libinih's receiver of keys. Its own idea of the section is the one that it may have cut. */
static int take_key(void *user, const char *section, const char *key, const char *value)
{
	struct reader *reader = user;
	struct rule_spec *spec;

	(void)section;
	reader->pending = 0;
	switch (reader->section) {
	case SECTION_NONE:
		note(reader, fail("%s: not in a section: put it after [RULE] or [" SEGMENT "]", key));
		break;
	case SECTION_SEGMENT:
		note(reader, segment_key(reader, key, value));
		break;
	case SECTION_RULE:
		spec = &reader->file->spec[reader->file->count - 1];
		if (note(reader, rule_key(spec, key, value)) != STATUS_OK)
			spec->wrong = 1;
		break;
	case SECTION_WRONG:
		break;
	}
	return 1;
}

static int read_lines(struct reader *reader)
{
	/* What it says of lines is known already. */
	(void)ini_parse_stream(next_line, reader, take_key, reader);
	fail_where(NULL, 0);
	free(reader->text);
	return reader->status == STATUS_OK && reader->file->wrong > 0 ? STATUS_ERROR : reader->status;
}

int rules_file_read(const char *path, struct rules_file *file)
{
	struct reader reader = { .file = file };
	int status;

	*file = (struct rules_file){ .path = path, .enabled = -1, .options.struct_size = sizeof(file->options) };
	if (strcmp(path, "-") == 0) {
		file->path = "standard input";
		reader.from = stdin;
		return read_lines(&reader);
	}
	reader.from = fopen(path, "r");
	if (reader.from == NULL)
		return fail_file(path);
	status = read_lines(&reader);
	fclose(reader.from);
	return status;
}
