/*
 * plan.c: the changes that make a segment what a file describes.
 * All of the file is checked before anything is changed; what is shown is the
 * plan, and what is done is what was shown.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "fail.h"
#include "field.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "rule_facts.h"
#include "rules.h"
#include "segment_options.h"
#include "temp_segment.h"
#include "top_keys.h"

static int in_file(const struct rules_file *file, const char *name)
{
	for (size_t i = 0; i < file->count; i++)
		if (strcmp(file->spec[i].name, name) == 0)
			return 1;
	return 0;
}

/* What a person has banned is not in a file. The rule is as the command ban makes it. */
static int has_bans(const struct plan *plan, int id)
{
	struct top_keys keys = { .rule = id, .limit = 1, .denied = 1 };
	struct shmlimit_rule is = { .struct_size = sizeof(is) };
	size_t count = 0;

	if (shmlimit_rule_get(plan->seen, id, &is) == 0 && is.algorithm == SHMLIMIT_COUNTER && is.capacity == 1 &&
	    (is.flags & SHMLIMIT_RULE_PROTECTED) &&
	    top_keys_scan(plan->seen, 0, plan->info.slots + plan->info.old_slots, &keys) == STATUS_OK)
		count = keys.count;
	free(keys.slot);
	return count > 0;
}

static int is_gone(const struct plan *plan, int id, const char *name)
{
	if (rule_is_internal(name) || in_file(&plan->file, name))
		return 0;
	if (!has_bans(plan, id))
		return 1;
	fail("rule %s: kept, since keys are banned by it (to end these bans: shmlimit rule remove %s %s)", name,
	     plan->segment, name);
	return 0;
}

/* Internal rules belong to the programs whose libraries made them. */
static int list_gone(struct plan *plan)
{
	plan->gone = calloc(plan->info.rules, sizeof(*plan->gone));
	if (plan->gone == NULL)
		return fail_memory();
	for (int id = 0; id < (int)plan->info.rules; id++) {
		char *name = plan->gone[plan->gone_count];

		if (shmlimit_rule_name(plan->seen, id, name) == 0 && is_gone(plan, id, name))
			plan->gone_count++;
	}
	return STATUS_OK;
}

/*
 * An input that lost its content, such as a pipe from a command that failed, must not remove every
 * rule.
 */
static int check_pruning(const struct plan *plan)
{
	if (plan->file.count > 0 || plan->gone_count == 0 || plan->file.wrong > 0)
		return STATUS_OK;
	return fail(
		"%s: no rules: --prune would remove every rule of segment %s (remove single rules with: shmlimit rule "
		"remove %s RULE)",
		plan->file.path, plan->segment, plan->segment);
}

static int check_spec(const struct plan *plan, struct rule_spec *spec, size_t *rules)
{
	int status = rule_spec_complete(spec, plan->seen, plan->segment);

	if (status != STATUS_OK)
		return status;
	if (!spec->exists && ++*rules == plan->info.rules_max + 1u)
		return fail_rule(plan->segment, spec->name, -EXFULL);
	return rule_spec_check(spec, plan->seen, plan->segment);
}

static int check_file(struct plan *plan)
{
	size_t rules = plan->info.rules_used - plan->gone_count;
	int status = STATUS_OK;

	for (size_t i = 0; i < plan->file.count; i++) {
		int found = STATUS_OK;

		fail_where(plan->file.path, plan->file.spec[i].line);
		if (!plan->file.spec[i].wrong)
			found = check_spec(plan, &plan->file.spec[i], &rules);
		status = status == STATUS_OK ? found : status;
	}
	fail_where(NULL, 0);
	return status;
}

/*
 * Whether a segment that is not there yet could have the rules is asked of one
 * like it, with the fewest slots, whose name is gone before anything is asked.
 *
 * WHY NOT make the segment first: programs that wait for it would find it, and
 * find it gone again where the file is wrong.
 */
static int imagine(struct plan *plan)
{
	struct shmlimit_options o = plan->file.options;

	o.slots = SHMLIMIT_SLOTS_MIN;
	o.mode = 0600;
	o.flags = 0;
	o.gid = 0;
	return temp_segment_open_read_only(plan->segment, &o, &plan->seen);
}

static uint32_t trust_of(unsigned flags)
{
	return flags & PLAN_TRUSTED ? SHMLIMIT_OPEN_TRUSTED : 0;
}

static int look(struct plan *plan, unsigned flags)
{
	int status, error = segment_try(plan->segment, SHMLIMIT_OPEN_READ_ONLY | trust_of(flags), &plan->seen);

	plan->missing = error == -ENOENT && (flags & PLAN_CREATE);
	if (error < 0 && !plan->missing)
		return fail_segment(plan->segment, error);
	/* Of a file with errors it is not known what the segment would be made with. */
	if (plan->missing && plan->file.wrong > 0)
		return STATUS_ERROR;
	status = plan->missing ? imagine(plan) : STATUS_OK;
	if (status == STATUS_OK)
		shmlimit_info(plan->seen, &plan->info);
	return status;
}

static void warn_of_options(const struct plan *plan)
{
	for (int field = 0; field < SEGMENT_OPTIONS; field++) {
		if (plan->file.segment_options_line[field] == 0)
			continue;
		fail_where(plan->file.path, plan->file.segment_options_line[field]);
		segment_options_warn(plan->segment, &plan->info, field, &plan->file.options);
	}
	fail_where(NULL, 0);
}

int plan_make(struct plan *plan, const char *segment, const char *path, unsigned flags)
{
	int status;

	*plan = (struct plan){ .segment = segment, .flags = flags, .info.struct_size = sizeof(plan->info) };
	status = rules_file_read(path, &plan->file);
	if (status != STATUS_OK && plan->file.wrong == 0)
		return status;
	status = look(plan, flags);
	if (status == STATUS_OK && (flags & PLAN_PRUNE))
		status = list_gone(plan);
	if (status == STATUS_OK)
		status = check_pruning(plan);
	if (status == STATUS_OK)
		status = check_file(plan);
	if (plan->file.wrong > 0)
		return STATUS_ERROR;
	if (status == STATUS_OK && !plan->missing)
		warn_of_options(plan);
	return status;
}

static int differs(const struct rule_spec *spec, int field)
{
	char old[TEXT_LEN], new[TEXT_LEN];

	if (!field_applies(field, spec->rule.algorithm))
		return 0;
	return strcmp(field_text(old, field, &spec->old), field_text(new, field, &spec->rule)) != 0;
}

static int is_change(const struct rule_spec *spec)
{
	for (int field = 0; field < FIELDS; field++)
		if (differs(spec, field))
			return 1;
	return 0;
}

/* A new rule differs from one that is all zero, which is the default of what it need not have. */
static void print_change(const struct rule_spec *spec)
{
	char old[TEXT_LEN], new[TEXT_LEN];

	printf("%c rule %s", spec->exists ? '~' : '+', spec->name);
	for (int field = 0; field < FIELDS; field++) {
		if (!differs(spec, field))
			continue;
		printf(" %s ", field_names[field]);
		if (spec->exists)
			printf("%s -> ", field_text(old, field, &spec->old));
		printf("%s", field_text(new, field, &spec->rule));
	}
	putchar('\n');
}

static int is_switched(const struct plan *plan)
{
	return plan->file.enabled >= 0 && plan->file.enabled != (plan->info.enabled != 0);
}

int plan_is_empty(const struct plan *plan)
{
	if (plan->missing || plan->gone_count > 0 || is_switched(plan))
		return 0;
	for (size_t i = 0; i < plan->file.count; i++)
		if (is_change(&plan->file.spec[i]))
			return 0;
	return 1;
}

static void print_options(const struct plan *plan)
{
	char text[TEXT_LEN];

	printf("+ segment ");
	print_clean(stdout, plan->segment);
	for (int field = 0; field < SEGMENT_OPTIONS; field++)
		if (plan->file.segment_options_line[field] != 0)
			printf(" %s %s", segment_options_names[field],
			       segment_options_text(text, field, &plan->file.options));
	putchar('\n');
}

/* Values are as a file has them. */
static json_t *fields_json(const struct rule_spec *spec)
{
	char old[TEXT_LEN], new[TEXT_LEN];
	json_t *fields = json_object();

	for (int field = 0; field < FIELDS; field++)
		if (differs(spec, field))
			json_object_set_new(fields, field_names[field],
			                    json_pack("{s:s?, s:s}", "from",
			                              spec->exists ? field_text(old, field, &spec->old) : NULL, "to",
			                              field_text(new, field, &spec->rule)));
	return fields;
}

static json_t *plan_json(const struct plan *plan)
{
	json_t *rules = json_array();

	for (size_t i = 0; i < plan->gone_count; i++)
		json_append(&rules, json_pack("{s:o, s:s, s:{}}", "rule", json_text(plan->gone[i]), "change", "remove",
		                              "fields"));
	for (size_t i = 0; i < plan->file.count; i++)
		if (is_change(&plan->file.spec[i]))
			json_append(&rules, json_pack("{s:o, s:s, s:o}", "rule", json_text(plan->file.spec[i].name),
			                              "change", plan->file.spec[i].exists ? "change" : "add", "fields",
			                              fields_json(&plan->file.spec[i])));
	return json_pack("{s:o, s:b, s:o, s:o}", "segment", json_text(plan->segment), "created", plan->missing, "rules",
	                 rules, "enabled", is_switched(plan) ? json_boolean(plan->file.enabled) : json_null());
}

static int show_json(const struct plan *plan)
{
	json_t *root = plan_json(plan);
	char *text = json_write_line(root);

	json_decref(root);
	if (text == NULL)
		return fail_memory();
	puts(text);
	free(text);
	return STATUS_OK;
}

int plan_show(const struct plan *plan)
{
	if (plan->flags & PLAN_JSON)
		return show_json(plan);
	if (plan->missing)
		print_options(plan);
	for (size_t i = 0; i < plan->gone_count; i++) {
		printf("- rule ");
		print_clean(stdout, plan->gone[i]);
		putchar('\n');
	}
	for (size_t i = 0; i < plan->file.count; i++)
		if (is_change(&plan->file.spec[i]))
			print_change(&plan->file.spec[i]);
	if (is_switched(plan))
		puts(plan->file.enabled ? "~ enabled no -> yes" : "~ enabled yes -> no");
	return STATUS_OK;
}

/* What has to go goes first, so that there is room. */
static int change(const struct plan *plan, struct shmlimit *limiter)
{
	int error = 0, status = STATUS_OK;

	for (size_t i = 0; i < plan->gone_count; i++) {
		error = shmlimit_rule_remove(limiter, plan->gone[i]);
		if (error < 0 && error != -ESRCH) /* it is gone, whichever process removed it */
			return fail_rule(plan->segment, plan->gone[i], error);
	}
	for (size_t i = 0; i < plan->file.count && status == STATUS_OK; i++)
		if (is_change(&plan->file.spec[i]))
			status = rule_spec_set(&plan->file.spec[i], limiter, plan->segment);
	if (status != STATUS_OK || !is_switched(plan))
		return status;
	error = shmlimit_enable(limiter, (uint32_t)plan->file.enabled);
	return error < 0 ? fail_segment(plan->segment, error) : STATUS_OK;
}

int plan_perform(const struct plan *plan)
{
	struct shmlimit *limiter;
	int status;

	if (plan->missing)
		status = segment_options_create(plan->segment, &plan->file.options, &limiter);
	else
		status = segment_open(plan->segment, trust_of(plan->flags), &limiter);
	if (status != STATUS_OK)
		return status;
	status = plan_show(plan);
	if (status == STATUS_OK)
		status = change(plan, limiter);
	shmlimit_close(limiter);
	return status;
}

void plan_free(struct plan *plan)
{
	shmlimit_close(plan->seen);
	free(plan->gone);
	free(plan->file.spec);
}
