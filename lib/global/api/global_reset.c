/*
 * global_reset: delete funnels on the backend.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "export.h"
#include "handle.h"
#include "pool.h"

/* Number of keys that one step of SCAN examines. */
#define STEP "512"

/* Returns the number of funnels deleted, 0 or 1, or -errno. */
static int forget(struct shmlimit_global *g, const char *text, size_t len)
{
	const char *words[] = { "UNLINK", text };
	size_t lens[] = { 6, len };
	struct backend_words unlink = { 2, words, lens };
	struct backend_error failure;
	redisReply *reply;
	int found;

	if (cluster_command(&g->cluster, key_bytes(text, len), &unlink, monotonic_now_ns() + g->options.deadline_ns,
	                    &reply, &failure) != 0)
		return handle_failed(g, &failure, NULL);
	found = reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
	freeReplyObject(reply);
	return found;
}

/*
 * Make the pattern that matches the keys of the rule and no others. Special characters of the
 * prefix are escaped.
 */
static void pattern(const struct shmlimit_global *g, const char *rule, char text[2 * KEY_TEXT_MAX])
{
	char start[KEY_TEXT_MAX];
	size_t n = 0;

	snprintf(start, sizeof(start), "%s{%s/", g->prefix, rule);
	for (const char *c = start; *c != '\0'; c++) {
		if (strchr("*?[]\\^", *c) != NULL)
			text[n++] = '\\';
		text[n++] = *c;
	}
	strcpy(text + n, "*");
}

/* Is it a valid reply of SCAN: a cursor that fits, and a list of keys? */
static int is_step(const redisReply *reply, size_t room)
{
	const redisReply *keys;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
	    (size_t)reply->element[0]->len >= room)
		return 0;
	keys = reply->element[1];
	for (size_t i = 0; i < keys->elements; i++)
		if (keys->element[i]->type != REDIS_REPLY_STRING)
			return 0;
	return keys->type == REDIS_REPLY_ARRAY;
}

/*
 * In a cluster this covers the node of the URL. BOUND: the server's: SCAN ends after it has
 * returned each key that existed all the time.
 */
static int forget_all(struct shmlimit_global *g, const char *rule)
{
	char cursor[24] = "0", match[2 * KEY_TEXT_MAX];
	const char *words[] = { "SCAN", cursor, "MATCH", match, "COUNT", STEP };
	struct backend_words scan = { 6, words, NULL };
	int error = 0, count = 0;

	pattern(g, rule, match);
	do {
		struct backend_error failure;
		redisReply *reply;
		const redisReply *keys;

		if (backend_command(&g->cluster.home, &scan, monotonic_now_ns() + g->options.deadline_ns, &reply,
		                    &failure) != 0)
			return handle_failed(g, &failure, NULL);
		if (!is_step(reply, sizeof(cursor))) {
			freeReplyObject(reply);
			failure = (struct backend_error){ .kind = ERROR_REPLY };
			return handle_failed(g, &failure, NULL);
		}
		strcpy(cursor, reply->element[0]->str);
		keys = reply->element[1];
		for (size_t i = 0; error >= 0 && i < keys->elements; i++) {
			error = forget(g, keys->element[i]->str, (size_t)keys->element[i]->len);
			count += error > 0 && count < INT_MAX;
		}
		freeReplyObject(reply);
	} while (error >= 0 && strcmp(cursor, "0") != 0);
	return error < 0 ? error : count;
}

static int reset(struct shmlimit_global *g, int rule, const void *key, size_t key_len)
{
	char text[KEY_TEXT_MAX];
	struct handle_rule of;
	int error, count;

	if (key != NULL && (key_len < 1 || key_len > SHMLIMIT_KEY_MAX))
		return -EMSGSIZE;
	error = handle_rule(g, rule, &of);
	if (error == -EOPNOTSUPP)
		error = handle_counter(g, rule, &of);
	if (error != 0 && error != -ERANGE)
		return error;
	if (key != NULL)
		count = forget(g, text, handle_key(g, of.name, key, key_len, text));
	else
		count = forget_all(g, of.name);
	if (count < 0)
		return count;
	handle_recovered(g);
	memset(&g->failed_keys.until_ns, 0, sizeof(g->failed_keys.until_ns));
	error = shmlimit_reset(g->limiter, rule, key, key_len);
	return error < 0 ? error : count;
}

EXPORT int shmlimit_global_reset(struct shmlimit_global *g, int rule, const void *key, size_t key_len)
{
	struct shmlimit_global *mine;
	int answer;

	if (g == NULL)
		return -EINVAL;
	mine = pool_borrow(g, &answer);
	if (mine == NULL)
		return answer;
	answer = reset(mine, rule, key, key_len);
	pool_return(mine);
	return answer;
}
