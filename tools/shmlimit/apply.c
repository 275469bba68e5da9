/*
 * apply.c: shmlimit apply: make a segment's rules those of a file. All of the
 * file is checked before the first rule is touched; what is shown is the plan,
 * and what is done is what was shown.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

enum { DRY_RUN, PRUNE };

static const struct command_option options[] = {
	[DRY_RUN] = { "dry-run", NULL, "show what would change, and change nothing" },
	[PRUNE] = { "prune", NULL, "remove the rules that are not in the file" },
	{ 0 },
};

struct plan {
	const char *segment;
	struct shmlimit *seen;         /* read-only: what is decided by */
	struct shmlimit_info info;
	struct rules_file file;
	char (*gone)[SHMLIMIT_RULE_NAME_MAX + 1];      /* with --prune: rules that have to go */
	size_t gone_count;
};

static int in_file(const struct rules_file *file, const char *name)
{
	for (size_t i = 0; i < file->count; i++)
		if (strcmp(file->wish[i].name, name) == 0)
			return 1;
	return 0;
}

/* Rules without a name belong to the programs that throttle by them. */
static int list_gone(struct plan *plan)
{
	plan->gone = calloc(plan->info.rules, sizeof(*plan->gone));
	if (plan->gone == NULL)
		return fail_memory();
	for (int id = 0; id < (int)plan->info.rules; id++) {
		char *name = plan->gone[plan->gone_count];

		if (shmlimit_rule_name(plan->seen, id, name) == 0 && !rule_is_unnamed(name) &&
		    !in_file(&plan->file, name))
			plan->gone_count++;
	}
	return STATUS_OK;
}

static int check_wish(const struct plan *plan, struct wish *wish, size_t *rules)
{
	int status = wish_complete(wish, plan->seen, plan->segment);

	if (status != STATUS_OK)
		return status;
	if (!wish->exists && ++*rules > plan->info.rules)
		return fail_rule(plan->segment, wish->name, -EXFULL);
	return wish_check(wish, plan->seen, plan->segment);
}

static int check_file(struct plan *plan)
{
	size_t rules = plan->info.rules_used - plan->gone_count;
	int status = STATUS_OK;

	for (size_t i = 0; i < plan->file.count && status == STATUS_OK; i++) {
		fail_where(plan->file.path, plan->file.wish[i].line);
		status = check_wish(plan, &plan->file.wish[i], &rules);
	}
	fail_where(NULL, 0);
	return status;
}

static int make_plan(struct plan *plan, const struct call *call)
{
	int status = segment_open(plan->segment, SHMLIMIT_READ_ONLY, &plan->seen);

	if (status != STATUS_OK)
		return status;
	shmlimit_info(plan->seen, &plan->info);
	if (call->option[PRUNE] != NULL)
		status = list_gone(plan);
	return status == STATUS_OK ? check_file(plan) : status;
}

static int differs(const struct wish *wish, int field)
{
	char old[TEXT_LEN], new[TEXT_LEN];

	if (!field_applies(field, wish->rule.algorithm))
		return 0;
	return strcmp(field_text(old, field, &wish->old), field_text(new, field, &wish->rule)) != 0;
}

static int is_change(const struct wish *wish)
{
	for (int field = 0; field < FIELDS; field++)
		if (differs(wish, field))
			return 1;
	return 0;
}

/* A new rule differs from one that is all zero, which is the default of what it need not have. */
static void print_change(const struct wish *wish)
{
	char old[TEXT_LEN], new[TEXT_LEN];

	printf("%c rule %s", wish->exists ? '~' : '+', wish->name);
	for (int field = 0; field < FIELDS; field++) {
		if (!differs(wish, field))
			continue;
		printf(" %s ", field_names[field]);
		if (wish->exists)
			printf("%s -> ", field_text(old, field, &wish->old));
		printf("%s", field_text(new, field, &wish->rule));
	}
	putchar('\n');
}

static int is_switched(const struct plan *plan)
{
	return plan->file.enabled >= 0 && plan->file.enabled != (plan->info.enabled != 0);
}

static void show(const struct plan *plan)
{
	for (size_t i = 0; i < plan->gone_count; i++) {
		printf("- rule ");
		print_clean(stdout, plan->gone[i]);
		putchar('\n');
	}
	for (size_t i = 0; i < plan->file.count; i++)
		if (is_change(&plan->file.wish[i]))
			print_change(&plan->file.wish[i]);
	if (is_switched(plan))
		puts(plan->file.enabled ? "~ enabled no -> yes" : "~ enabled yes -> no");
}

/* What has to go goes first, so that there is room. */
static int carry_out(const struct plan *plan, struct shmlimit *limiter)
{
	int error = 0, status = STATUS_OK;

	for (size_t i = 0; i < plan->gone_count; i++) {
		error = shmlimit_rule_remove(limiter, plan->gone[i]);
		if (error < 0 && error != -ESRCH)      /* gone is gone, whoever did it */
			return fail_rule(plan->segment, plan->gone[i], error);
	}
	for (size_t i = 0; i < plan->file.count && status == STATUS_OK; i++)
		if (is_change(&plan->file.wish[i]))
			status = wish_set(&plan->file.wish[i], limiter, plan->segment);
	if (status != STATUS_OK || !is_switched(plan))
		return status;
	error = shmlimit_switch(limiter, (uint32_t)plan->file.enabled);
	return error < 0 ? fail_segment(plan->segment, error) : STATUS_OK;
}

static int apply(const struct plan *plan)
{
	struct shmlimit *limiter;
	int status = segment_open(plan->segment, 0, &limiter);

	if (status != STATUS_OK)
		return status;
	show(plan);
	status = carry_out(plan, limiter);
	shmlimit_close(limiter);
	return status;
}

static int run(const struct call *call)
{
	struct plan plan = { .segment = call->operand[0], .info.struct_size = sizeof(plan.info) };
	int status = rules_file_read(call->operand[1], &plan.file);

	if (status == STATUS_OK)
		status = make_plan(&plan, call);
	if (status == STATUS_OK && call->option[DRY_RUN] != NULL)
		show(&plan);
	else if (status == STATUS_OK)
		status = apply(&plan);
	shmlimit_close(plan.seen);
	free(plan.gone);
	free(plan.file.wish);
	return status;
}

const struct command command_apply = {
	.name = "apply",
	.operands = "NAME FILE",
	.purpose = "make a segment's rules those of a file",
	.details = "FILE, - for standard input, has a section [RULE] for each rule, with what rule set can be given\n"
	           "(capacity = 20), and [*] with enabled = yes or no. Prints what changes: + new, ~ other,\n"
	           "- gone. All of it is checked before anything is changed.\n",
	.options = options,
	.run = run,
};
