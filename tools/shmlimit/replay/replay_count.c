/*
 * replay_count.c: each line is decided by the library, at the time that it
 * says, and counted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define HASH_NONFATAL_OOM 1
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "fail.h"
#include "hash.h"
#include "log_time.h"
#include "replay.h"

#define SHOWN 40 /* bytes of a client that is no address */

int replay_begin(struct replay *r)
{
	r->first_ns = -1;
	r->order.newest_s = -1;
	if (getrandom(r->secret, sizeof(r->secret), 0) != (ssize_t)sizeof(r->secret))
		return fail("replay: no random numbers: %s", strerror(errno));
	return STATUS_OK;
}

/*
 * WHY uthash: a packaged hash table of one header, well kept; glibc's own cannot grow. WHY NOT its
 * own hash: it has no key. Keys are what strangers typed, and a log of some thousand paths that
 * were chosen to collide took 300 times as long.
 */
static struct replay_key *key_find(struct replay *r, const unsigned char *key, size_t len)
{
	struct replay_key *k;
	size_t size = sizeof(*k) + r->rules * sizeof(k->of_rule[0]);
	unsigned hash = (unsigned)hash_bytes(r->secret, 0, key, len);

	HASH_FIND_BYHASHVALUE(hh, r->keys, key, len, hash, k);
	if (k != NULL)
		return k;
	k = calloc(1, size + len);
	if (k == NULL)
		return NULL;
	k->key = (unsigned char *)k + size;
	k->len = len;
	memcpy(k->key, key, len);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, r->keys, k->key, len, hash, k);
	if (k->hh.tbl == NULL) {
		free(k);
		return NULL;
	}
	return k;
}

static void count_denial(struct replay *r, size_t i, struct replay_key *k, int64_t now_ns, size_t step)
{
	struct replay_rule *rule = &r->rule[i];

	if (rule->denied == 0 || now_ns < rule->first_ns)
		rule->first_ns = now_ns;
	if (rule->denied++ == 0 || now_ns > rule->last_ns)
		rule->last_ns = now_ns;
	if (k->of_rule[i].denied++ == 0) {
		k->of_rule[i].first_ns = now_ns;
		rule->keys_denied++;
	}
	k->of_rule[i].last_ns = now_ns;
	r->steps.denied[i][step]++;
}

static int take(const struct replay_rule *rule, const struct replay_request *q)
{
	struct shmlimit_request asked = { .key = q->key->key,
		                          .key_len = q->key->len,
		                          .cost = q->cost,
		                          .limit = rule->by_plan ? &q->plan->limit : NULL };

	shmlimit_set_time(rule->limiter, &(uint64_t){ (uint64_t)q->unix_ns });
	return shmlimit_decide(rule->limiter, SHMLIMIT_TAKE, &asked, NULL);
}

int replay_decide(struct replay *r, size_t i, const struct replay_request *q, size_t step)
{
	struct replay_rule *rule = &r->rule[i];
	int answer = rule->by_plan && q->plan == NULL ? SHMLIMIT_ALLOWED : take(rule, q);

	if (rule->by_plan && q->plan != NULL) {
		q->plan->allowed += answer == SHMLIMIT_ALLOWED;
		q->plan->denied += answer == SHMLIMIT_DENIED;
	}
	if (answer < 0)
		return fail("rule %s: %s", rule->text, shmlimit_strerror(answer));
	if (answer == SHMLIMIT_ALLOWED)
		rule->allowed++;
	else
		count_denial(r, i, q->key, q->unix_ns, step);
	return STATUS_OK;
}

static int note_time(struct replay_key *k, int64_t unix_ns)
{
	size_t room = k->room > 0 ? 2 * k->room : 4;
	int64_t *at_ns;

	if (k->requests == k->room) {
		at_ns = reallocarray(k->at_ns, room, sizeof(*at_ns));
		if (at_ns == NULL)
			return fail_memory();
		k->at_ns = at_ns;
		k->room = room;
	}
	k->at_ns[k->requests] = unix_ns;
	return STATUS_OK;
}

static int decide(struct replay *r, const struct replay_request *q)
{
	size_t step = step_at(&r->steps, q->unix_ns);
	int status = r->suggest.scale != 0 ? note_time(q->key, q->unix_ns) : STATUS_OK;

	q->key->requests++;
	r->steps.requests[step]++;
	for (size_t i = 0; i < r->rules && status == STATUS_OK; i++)
		if (r->rule[i].limiter != NULL)
			status = replay_decide(r, i, q, step);
	return status;
}

/* Those that have waited long enough, or all of them. */
static int decide_waiting(struct replay *r, int at_end)
{
	struct replay_request q;
	int status = STATUS_OK;

	while (status == STATUS_OK && order_take(&r->order, at_end, &q))
		status = decide(r, &q);
	return status;
}

static int count_line(struct replay *r, struct log_line *line)
{
	unsigned char key[SHMLIMIT_KEY_MAX];
	struct replay_request q = { .cost = r->cost_bytes ? (uint64_t)line->bytes : 1, .unix_ns = line->unix_ns };
	size_t len;
	int status, is_address;

	line->addr = client_of(&r->clients, line);
	if (!filter_passes(&r->filter, line)) {
		r->filtered++;
		return STATUS_OK;
	}
	if (line->unix_ns / LOG_SECOND < r->since_s || (r->until_s != 0 && line->unix_ns / LOG_SECOND >= r->until_s)) {
		r->outside++;
		return STATUS_OK;
	}
	if (!order_expect(&r->order, line->unix_ns)) {
		r->too_late++;
		return STATUS_OK;
	}
	status = decide_waiting(r, 0);
	if (r->first_ns < 0)
		r->first_ns = r->last_ns = line->unix_ns;
	if (line->unix_ns < r->first_ns)
		r->first_ns = line->unix_ns;
	if (line->unix_ns > r->last_ns)
		r->last_ns = line->unix_ns;
	len = key_make(&r->spec, line, key, &is_address);
	if (len == 0)
		r->without_key++;
	else if (!is_address && r->no_address++ == 0)
		r->no_address_text = strndup(line->addr.at, line->addr.len < SHOWN ? line->addr.len : SHOWN);
	if (status != STATUS_OK || len == 0)
		return status;
	q.key = key_find(r, key, len);
	if (r->limit_field != NULL)
		q.plan = plan_find(r, line);
	return q.key != NULL && order_add(&r->order, &q) == 0 ? STATUS_OK : fail_memory();
}

int replay_line(struct replay *r, const struct span *text, int *understood)
{
	struct log_line line;
	int status = STATUS_OK, parsed = log_line_parse(text->at, text->len, &line);

	r->lines++;
	*understood = parsed && (!r->cost_bytes || line.bytes >= 0) &&
	              (log_client(&line).len > 0 || r->clients.field != NULL);
	if (*understood)
		status = count_line(r, &line);
	else
		r->not_understood++;
	if (parsed)
		log_line_free(&line);
	return status;
}

int replay_finish(struct replay *r)
{
	int status = decide_waiting(r, 1);

	if (status == STATUS_OK && key_has_address(&r->spec))
		status = client_check(&r->clients);
	for (size_t i = 0; i < r->rules && status == STATUS_OK; i++) {
		struct shmlimit_counters c = { .struct_size = sizeof(c) };

		if (r->rule[i].limiter == NULL)
			continue;
		shmlimit_counters(r->rule[i].limiter, SHMLIMIT_ALL_RULES, &c);
		r->rule[i].no_room = c.evictions + c.no_slot;
	}
	if (r->too_late > 0)
		fail("warning: lines left out: %" PRIu64 " of %" PRIu64 ": each is over %d minutes, or %" PRIu64
		     " requests, "
		     "earlier than a line before it (give logs as files, which are read in order of time)",
		     r->too_late, r->lines, ORDER_S / 60, ORDER_MAX);
	if (r->filtered > 0 && r->filtered + r->not_understood == r->lines)
		fail("warning: no request is left: --path, --method and --status leave out all %" PRIu64, r->filtered);
	if (r->no_address > 0)
		fail("warning: lines whose client is no address: %" PRIu64 " of %" PRIu64
		     " (the first: %s): if the log has its "
		     "clients elsewhere, these limits are not what it would have seen",
		     r->no_address, r->lines, r->no_address_text != NULL ? r->no_address_text : "?");
	if (r->without_plan > 0 && r->without_plan_text != NULL)
		fail("warning: requests not limited: %" PRIu64 ", since %s has no limit for them (the first: %s)",
		     r->without_plan, r->plans_path != NULL ? r->plans_path : r->limit_field, r->without_plan_text);
	else if (r->without_plan > 0)
		fail("warning: requests not limited: %" PRIu64 ", since they have no %s", r->without_plan,
		     r->limit_field);
	return status;
}

void replay_free(struct replay *r)
{
	struct replay_key *k, *next;

	HASH_ITER(hh, r->keys, k, next) {
		HASH_DEL(r->keys, k);
		free(k->at_ns);
		free(k);
	}
	for (size_t i = 0; i < REPEATED_MAX; i++) {
		shmlimit_close(r->rule[i].limiter);
		free(r->rule[i].made_text);
	}
	plans_free(r);
	free(r->no_address_text);
	order_free(&r->order);
}

/*
 * qsort_r's: the most denied first, then the most asked, then in an order that is the same each
 * time.
 */
static int worse(const void *left, const void *right, void *rule_number)
{
	const struct replay_key *a = *(struct replay_key *const *)left, *b = *(struct replay_key *const *)right;
	size_t rule = *(const size_t *)rule_number, least = a->len < b->len ? a->len : b->len;
	int order;

	if (a->of_rule[rule].denied != b->of_rule[rule].denied)
		return a->of_rule[rule].denied > b->of_rule[rule].denied ? -1 : 1;
	if (a->requests != b->requests)
		return a->requests > b->requests ? -1 : 1;
	order = memcmp(a->key, b->key, least);
	return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

int replay_worst(struct replay *r, size_t rule, struct replay_key ***list, size_t *count)
{
	struct replay_key *k, *next;

	*count = 0;
	*list = calloc(r->rule[rule].keys_denied + 1, sizeof(struct replay_key *));
	if (*list == NULL)
		return fail_memory();
	HASH_ITER(hh, r->keys, k, next)
		if (k->of_rule[rule].denied > 0)
			(*list)[(*count)++] = k;
	qsort_r(*list, *count, sizeof(struct replay_key *), worse, &rule);
	if (*count > r->top)
		*count = (size_t)r->top;
	return STATUS_OK;
}
