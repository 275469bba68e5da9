/*
 * errors: see errors.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "script.h"
#include "errors.h"

/* Prefixes of error replies. On Redis 6 an error of a script has the same prefix further on. */
static const struct {
	const char *words;
	enum backend_error_kind kind;
} replies[] = {
	{ SCRIPT_FOREIGN, ERROR_KEY },
	{ "WRONGTYPE", ERROR_KEY },
	{ "WRONGPASS", ERROR_REFUSED },
	{ "NOAUTH", ERROR_REFUSED },
	{ "NOPERM", ERROR_REFUSED },
	{ "invalid password", ERROR_REFUSED },
	{ "ERR AUTH", ERROR_REFUSED },
	{ "DB index", ERROR_DATABASE },
	{ "SELECT is not allowed", ERROR_DATABASE },
	{ "LOADING", ERROR_BUSY },
	{ "BUSY", ERROR_BUSY },
	{ "READONLY", ERROR_REPLICA },
	{ "MASTERDOWN", ERROR_REPLICA },
	{ "MISCONF", ERROR_BUSY },
	{ "NOREPLICAS", ERROR_BUSY },
	{ "OOM", ERROR_BUSY },
	{ "CLUSTERDOWN", ERROR_BUSY },
	{ "TRYAGAIN", ERROR_BUSY },
	{ "unknown command", ERROR_OLD },
	{ "MOVED ", ERROR_MOVED },
	{ "ASK ", ERROR_MOVED },
	{ "NOSCRIPT", ERROR_SCRIPT },
};

static const struct {
	int error;
	const char *wrong, *right;
} words[] = {
	/* clang-format off */
	[ERROR_NONE] = { 0, "nothing is wrong", "" },
	[ERROR_LOST] = { ECONNREFUSED, "no connection", "must be running and reachable from here" },
	[ERROR_LATE] = { ETIMEDOUT, "no answer by the deadline", "must answer sooner, or the deadline be longer" },
	[ERROR_CONNECTED] = { ETIMEDOUT, "connected, with too little of the deadline left to ask", "the next request uses "
	                        "the connection; to avoid this, set a longer deadline" },
	[ERROR_REFUSED] = { EACCES, "user or password refused", "must be a user with that password and permission for the "
	                      "connection and scripting commands and the limiter's keys" },
	[ERROR_OLD] = { EPROTO, "too old", "must be Redis 6 or later, or Valkey" },
	[ERROR_DATABASE] = { EDOM, "no such database", "must be one that the backend has; 0 in a cluster" },
	[ERROR_BUSY] = { EBUSY, "refuses writes", "must have loaded its data, and have memory and disk to write to" },
	[ERROR_REPLICA] = { EBUSY, "is a replica", "must be the primary; the next request connects again" },
	[ERROR_UNKNOWN] = { EDESTADDRREQ, "the sentinels do not know the primary", "must be the name that they monitor it "
	                      "by" },
	[ERROR_SENTINEL] = { EPROTOTYPE, "is a sentinel", "must be a URL of sentinels: redis+sentinel://HOST/PRIMARY" },
	[ERROR_SERVER] = { ENOTUNIQ, "is a server and no sentinel", "must be a URL of a server: redis://HOST" },
	[ERROR_TLS] = { EKEYREJECTED, "TLS failed", "must speak TLS here, with a certificate for this host from an authority "
	                  "that is known here (cacert=FILE)" },
	[ERROR_REPLY] = { EBADMSG, "an invalid answer", "must be Redis 6 or later, or Valkey" },
	[ERROR_KEY] = { EMEDIUMTYPE, "the key has another type there", "must be deleted there, or another prefix used" },
	[ERROR_EXACT] = { ERANGE, "the rule cannot be counted exactly there", "must be a smaller capacity, or a rate of "
	                    "smaller or rounder numbers" },
	[ERROR_MOVED] = { EXDEV, "the key is on another node of the cluster", "must be reachable there, too" },
	[ERROR_SCRIPT] = { ENOEXEC, "it does not keep scripts", "must keep scripts" },
	[ERROR_WAITED] = { ETIMEDOUT, "no answer to another process by the deadline", "must answer sooner, or the "
	                     "deadline be longer" },
	[ERROR_AGENT] = { 0, "no agent serves", "without waiting an agent must run: `shmlimit agent`, or a thread" },
	[ERROR_EVICTS] = { 0, "drops keys when its memory is full, and their limits begin again", "should have the "
	                     "maxmemory-policy noeviction" },
	/* clang-format on */
};

int backend_error_is_of_key(const struct backend_error *failure)
{
	return failure->kind == ERROR_KEY || failure->kind == ERROR_EXACT;
}

void backend_error_copy(char *to, size_t size, const char *from, size_t len)
{
	len = len < size - 1 ? len : size - 1;
	for (size_t i = 0; i < len; i++)
		to[i] = from[i] < ' ' || from[i] > '~' ? '?' : from[i];
	to[len] = '\0';
}

struct backend_error backend_error_of_reply(const char *text, size_t len)
{
	struct backend_error failure = { .kind = ERROR_REPLY };

	backend_error_copy(failure.said, sizeof(failure.said), text, len);
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		if (strstr(failure.said, replies[i].words) == NULL)
			continue;
		failure.kind = replies[i].kind;
		break;
	}
	return failure;
}

int backend_error_errno(const struct backend_error *failure)
{
	return failure->kind == ERROR_LOST ? failure->error : -words[failure->kind].error;
}

/* WHY NOT strerror(): it is not thread-safe. */
static const char *error_words(int error)
{
	const char *said = strerrordesc_np(error);

	return error == EADDRNOTAVAIL ? "the host's name has no address" : said != NULL ? said : "unknown error";
}

/* What the system calls "connection refused" is better said by it. */
const char *backend_error_strerror(int error)
{
	for (size_t i = ERROR_LATE; i < ERROR_KINDS; i++)
		if (words[i].error == error)
			return words[i].wrong;
	return error_words(error);
}

const char *backend_error_text(const struct backend_error *failure, char text[BACKEND_ERROR_TEXT_MAX])
{
	char why[sizeof(failure->said) + 4] = "";

	if (failure->said[0] != '\0')
		snprintf(why, sizeof(why), " (%s)", failure->said);
	else if (failure->kind == ERROR_LOST)
		snprintf(why, sizeof(why), " (%s)", error_words(-failure->error));
	snprintf(text, BACKEND_ERROR_TEXT_MAX, "%s%s: %s", words[failure->kind].wrong, why, words[failure->kind].right);
	return text;
}
