/*
 * rules_file: whatever stands in a file of rules, it is understood or not; what
 * was understood is written again, as export does, and read as the same.
 *
 *	input  [ the file ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "field.h"
#include "fuzz.h"
#include "number_text.h"
#include "print.h"
#include "rules.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	stderr = fopen("/dev/null", "w");
	return 0;
}

static int read_text(const void *text, size_t len, struct rules_file *file)
{
	FILE *before = stdin;
	int status;

	stdin = len > 0 ? fmemopen((void *)(uintptr_t)text, len, "r") : fopen("/dev/null", "r");
	status = rules_file_read("-", file);
	fclose(stdin);
	stdin = before;
	return status;
}

static char *write_text(const struct rules_file *file, size_t *len)
{
	char *text = NULL, value[TEXT_LEN];
	FILE *to = open_memstream(&text, len);

	for (size_t i = 0; i < file->count; i++) {
		fprintf(to, "[%s]\n", file->spec[i].name);
		for (int field = 0; field < FIELDS; field++)
			if (file->spec[i].given & 1u << field)
				fprintf(to, "%s = %s\n", field_names[field],
				        field == FIELD_RATE ? file->spec[i].rate
				                            : field_text(value, field, &file->spec[i].rule));
	}
	fclose(to);
	return text;
}

static void check_again(const struct rules_file *file)
{
	struct rules_file again;
	size_t len;
	char *text = write_text(file, &len);

	law(read_text(text, len, &again) == STATUS_OK && again.count == file->count, "not understood again:\n%s", text);
	for (size_t i = 0; i < file->count; i++) {
		struct rule_spec *a = &file->spec[i], *b = &again.spec[i];

		law(strcmp(a->name, b->name) == 0 && a->given == b->given && strcmp(a->rate, b->rate) == 0 &&
		            memcmp(&a->rule, &b->rule, sizeof(a->rule)) == 0,
		    "rule %s is another one when it is read again:\n%s", a->name, text);
	}
	free(again.spec);
	free(text);
}

static void check_names(const struct rules_file *file)
{
	for (size_t i = 0; i < file->count; i++)
		for (size_t j = 0; j < i; j++)
			law(strcmp(file->spec[i].name, file->spec[j].name) != 0, "rule %s comes twice",
			    file->spec[i].name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rules_file file;
	int status = read_text(data, size, &file);

	law(status == STATUS_OK || status == STATUS_ERROR || status == STATUS_MISSING, "status %d", status);
	if (status == STATUS_OK) {
		check_names(&file);
		check_again(&file);
	}
	free(file.spec);
	return 0;
}
