/*
 * replay_plans.c: limits that came with the requests: which one a request has, and what each did.
 *
 * A file has a plan and its limit in each line, "gold 100/minute burst 200"; the plan * is that of
 * all others. Without a file what a request says is its limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define HASH_NONFATAL_OOM 1
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "hash.h"
#include "replay.h"
#include "value_parse.h"

#define BLANKS " \t\r\n"
#define PLANS_MAX 100000 /* that a log may name without a file: what clients chose must not fill the memory */

/* WHY NOT uthash's own hash: see replay_count.c. */
static unsigned hash_of(const struct replay *r, struct span name)
{
	return (unsigned)hash_bytes(r->secret, 0, name.at, name.len);
}

static struct replay_plan *find(const struct replay *r, struct span name)
{
	struct replay_plan *plan;

	HASH_FIND_BYHASHVALUE(hh, r->plans, name.at, name.len, hash_of(r, name), plan);
	return plan;
}

/* Returns NULL without memory. `limit` is its text. */
static struct replay_plan *add(struct replay *r, struct span name, struct span limit)
{
	struct replay_plan *plan = calloc(1, sizeof(*plan) + name.len + limit.len + 2);

	if (plan == NULL)
		return NULL;
	plan->name = (char *)(plan + 1);
	memcpy(plan->name, name.at, name.len);
	plan->limit_text = plan->name + name.len + 1;
	memcpy(plan->limit_text, limit.at, limit.len);
	plan->limit.struct_size = sizeof(plan->limit);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, r->plans, plan->name, name.len, hash_of(r, name), plan);
	if (plan->hh.tbl != NULL)
		return plan;
	free(plan);
	return NULL;
}

/* A line of the file. Returns a status. */
static int read_plan(struct replay *r, char *line)
{
	char *name = line + strspn(line, BLANKS), *limit = name + strcspn(name, BLANKS);
	struct span word = { name, (size_t)(limit - name) };
	struct replay_plan *plan;

	if (*name == '\0' || *name == '#')
		return STATUS_OK;
	limit += strspn(limit, BLANKS);
	limit[strcspn(limit, "\r\n")] = '\0';
	if (*limit == '\0')
		return fail("plan %.*s: its limit is missing (a line is PLAN LIMIT, such as gold 100/minute)",
		            (int)word.len, word.at);
	if (find(r, word) != NULL)
		return fail("plan %.*s: appears in an earlier line already", (int)word.len, word.at);
	plan = add(r, word, (struct span){ limit, strlen(limit) });
	if (plan == NULL)
		return fail_memory();
	if (call_limit_parse("limit", plan->limit_text, &plan->limit) != STATUS_OK)
		return STATUS_ERROR;
	return (plan->limit.flags & SHMLIMIT_LIMIT_PLACES) == 0
	               ? STATUS_OK
	               : fail("limit %s: a log does not say how long requests take: must be a rate, such as 5/minute",
	                      plan->limit_text);
}

int plans_read(struct replay *r, const char *path)
{
	FILE *from = fopen(path, "re");
	int status = STATUS_OK, number = 1;
	char *line = NULL;
	size_t room = 0;

	if (from == NULL)
		return fail("%s: %s", path, strerror(errno));
	for (; status == STATUS_OK && getline(&line, &room, from) >= 0; number++) {
		fail_where(path, number);
		status = read_plan(r, line);
	}
	fail_where(NULL, 0);
	if (status == STATUS_OK && ferror(from))
		status = fail("%s: %s", path, strerror(errno));
	if (status == STATUS_OK && r->plans == NULL)
		status = fail("%s: there is no plan in it (a line is PLAN LIMIT, such as gold 100/minute)", path);
	free(line);
	fclose(from);
	return status;
}

/* What a request says, where there is no file. Returns NULL if it is no limit. */
static struct replay_plan *plan_of_text(struct replay *r, struct span text)
{
	struct replay_plan *plan = HASH_COUNT(r->plans) < PLANS_MAX ? add(r, text, text) : NULL;

	if (plan != NULL)
		plan->is_unreadable = memchr(text.at, '\0', text.len) != NULL ||
		                      shmlimit_limit_parse(plan->name, &plan->limit, NULL) != 0 ||
		                      (plan->limit.flags & SHMLIMIT_LIMIT_PLACES) != 0;
	return plan;
}

struct replay_plan *plan_find(struct replay *r, const struct log_line *line)
{
	struct span text = log_field(line, r->limit_field);
	struct replay_plan *plan = find(r, text);

	if (plan == NULL && r->plans_path == NULL && text.len > 0)
		plan = plan_of_text(r, text);
	if (plan == NULL && r->plans_path != NULL)
		plan = find(r, (struct span){ "*", 1 });
	if (plan != NULL && !plan->is_unreadable)
		return plan;
	if (r->without_plan++ == 0 && text.len > 0)
		r->without_plan_text = strndup(text.at, text.len);
	return NULL;
}

/* qsort_r's: the most denied first, then by name. */
static int worse(const void *left, const void *right)
{
	const struct replay_plan *a = *(struct replay_plan *const *)left, *b = *(struct replay_plan *const *)right;

	if (a->denied != b->denied)
		return a->denied > b->denied ? -1 : 1;
	return strcmp(a->name, b->name);
}

int plans_worst(const struct replay *r, struct replay_plan ***list, size_t *count)
{
	struct replay_plan *plan, *next;

	*count = 0;
	*list = calloc(HASH_COUNT(r->plans) + 1, sizeof(struct replay_plan *));
	if (*list == NULL)
		return fail_memory();
	HASH_ITER(hh, r->plans, plan, next)
		if (plan->allowed + plan->denied > 0)
			(*list)[(*count)++] = plan;
	qsort(*list, *count, sizeof(struct replay_plan *), worse);
	return STATUS_OK;
}

void plans_free(struct replay *r)
{
	struct replay_plan *plan, *next;

	HASH_ITER(hh, r->plans, plan, next) {
		HASH_DEL(r->plans, plan);
		free(plan);
	}
	free(r->without_plan_text);
}
