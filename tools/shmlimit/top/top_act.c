/*
 * top_act.c: what top changes, when the user asks for it. It reads through a read-only handle; here
 * the segment is opened once more. The result is in top->news.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "ban.h"
#include "choice.h"
#include "key_option.h"
#include "key_text.h"
#include "named_segment.h"
#include "top.h"

static void tell(struct top *top, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void tell(struct top *top, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(top->news, sizeof(top->news), format, ap);
	va_end(ap);
}

/* Its rules may have other ids by now: the segment of that name may be another one. */
static struct shmlimit *open_to_write(struct top *top, const char *rule, int *id)
{
	struct shmlimit *limiter;
	int error = segment_try(top->name, 0, &limiter);

	if (error == 0) {
		*id = shmlimit_rule_find(limiter, rule);
		if (*id >= 0)
			return limiter;
		error = *id;
		shmlimit_close(limiter);
	}
	tell(top, "not changed: %s", shmlimit_strerror(error));
	return NULL;
}

void top_reset_key(struct top *top, const char *rule, uint64_t fingerprint)
{
	int id, found;
	struct shmlimit *limiter = open_to_write(top, rule, &id);

	if (limiter == NULL)
		return;
	found = shmlimit_reset_fingerprint(limiter, id, fingerprint);
	if (found < 0)
		tell(top, "not reset: %s", shmlimit_strerror(found));
	else if (found == 0)
		tell(top, "#%012" PRIx64 " of rule %.40s: all its tokens are there already", fingerprint, rule);
	else
		tell(top, "#%012" PRIx64 " of rule %.40s: reset, all its tokens are there", fingerprint, rule);
	shmlimit_close(limiter);
}

/* WHY NOT by the fingerprint: under another rule the same key has another one. */
void top_ban_key(struct top *top, const struct top_key *slot)
{
	struct key key = { .text = NULL };
	struct shmlimit *limiter;
	char text[KEY_TEXT_LEN];
	size_t whole = 0;
	int error;

	key.len = top_key_bytes(key.bytes, top->limiter, slot, &whole);
	if (key.len == 0 || key.len != whole) {
		tell(top, "not banned: the segment keeps not all of this key (create --store-keys)");
		return;
	}
	error = segment_try(top->name, 0, &limiter);
	if (error == 0) {
		error = ban_begin(limiter, BAN_RULE, &key, TOP_BAN_NS, BAN_LONGER);
		shmlimit_close(limiter);
	}
	if (error < 0)
		tell(top, "not banned: %s", ban_error(error) != NULL ? ban_error(error) : shmlimit_strerror(error));
	else
		tell(top, "%.60s: banned for 1h or longer by rule " BAN_RULE,
		     key_show(text, key.bytes, key.len, key.len));
}

int top_rule_mode(const struct top *top, const char *rule)
{
	struct shmlimit_rule is = { .struct_size = sizeof(is) };
	int id = top->limiter != NULL ? shmlimit_rule_find(top->limiter, rule) : -1;

	return id >= 0 && shmlimit_rule_get(top->limiter, id, &is) == 0 ? (int)is.mode : -1;
}

/* WHY NOT wait for the lock: the screen would stand still. */
void top_rule_switch(struct top *top, const char *rule, uint32_t mode)
{
	struct shmlimit_rule is = { .struct_size = sizeof(is) };
	int id, error;
	struct shmlimit *limiter = open_to_write(top, rule, &id);

	if (limiter == NULL)
		return;
	error = shmlimit_rule_get(limiter, id, &is);
	is.mode = mode;
	is.flags |= SHMLIMIT_RULE_NO_WAIT;
	if (error == 0)
		error = shmlimit_rule_set(limiter, rule, &is);
	if (error < 0)
		tell(top, "rule %.40s: not changed: %s", rule, shmlimit_strerror(error));
	else
		tell(top, "rule %.40s: %s from now on", rule, choice_word(choices_mode, mode));
	shmlimit_close(limiter);
}
