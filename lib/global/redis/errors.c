/*
 * trouble: see trouble.h.
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
	enum trouble_kind kind;
} replies[] = {
	{ SCRIPT_FOREIGN, TROUBLE_KEY },
	{ "WRONGTYPE", TROUBLE_KEY },
	{ "WRONGPASS", TROUBLE_REFUSED },
	{ "NOAUTH", TROUBLE_REFUSED },
	{ "NOPERM", TROUBLE_REFUSED },
	{ "invalid password", TROUBLE_REFUSED },
	{ "ERR AUTH", TROUBLE_REFUSED },
	{ "DB index", TROUBLE_DATABASE },
	{ "SELECT is not allowed", TROUBLE_DATABASE },
	{ "LOADING", TROUBLE_BUSY },
	{ "BUSY", TROUBLE_BUSY },
	{ "READONLY", TROUBLE_REPLICA },
	{ "MASTERDOWN", TROUBLE_REPLICA },
	{ "MISCONF", TROUBLE_BUSY },
	{ "NOREPLICAS", TROUBLE_BUSY },
	{ "OOM", TROUBLE_BUSY },
	{ "CLUSTERDOWN", TROUBLE_BUSY },
	{ "TRYAGAIN", TROUBLE_BUSY },
	{ "unknown command", TROUBLE_OLD },
	{ "MOVED ", TROUBLE_MOVED },
	{ "ASK ", TROUBLE_MOVED },
	{ "NOSCRIPT", TROUBLE_SCRIPT },
};

static const struct {
	int error;
	const char *wrong, *right;
} words[] = {
	/* clang-format off */
	[TROUBLE_NONE] = { 0, "nothing is wrong", "" },
	[TROUBLE_LOST] = { ECONNREFUSED, "no connection", "must be running and reachable from here" },
	[TROUBLE_LATE] = { ETIMEDOUT, "no answer by the deadline", "must answer sooner, or the deadline be longer" },
	[TROUBLE_CONNECTED] = { ETIMEDOUT, "connected, with too little of the deadline left to ask", "the next request uses "
	                        "the connection; to avoid this, set a longer deadline" },
	[TROUBLE_REFUSED] = { EACCES, "user or password refused", "must be a user with that password and permission for the "
	                      "connection and scripting commands and the limiter's keys" },
	[TROUBLE_OLD] = { EPROTO, "too old", "must be Redis 6 or later, or Valkey" },
	[TROUBLE_DATABASE] = { EDOM, "no such database", "must be one that the backend has; 0 in a cluster" },
	[TROUBLE_BUSY] = { EBUSY, "refuses writes", "must have loaded its data, and have memory and disk to write to" },
	[TROUBLE_REPLICA] = { EBUSY, "is a replica", "must be the primary; the next request connects again" },
	[TROUBLE_UNKNOWN] = { EDESTADDRREQ, "the sentinels do not know the primary", "must be the name that they monitor it "
	                      "by" },
	[TROUBLE_SENTINEL] = { EPROTOTYPE, "is a sentinel", "must be a URL of sentinels: redis+sentinel://HOST/PRIMARY" },
	[TROUBLE_TLS] = { EKEYREJECTED, "TLS failed", "must speak TLS here, with a certificate for this host from an authority "
	                  "that is known here (cacert=FILE)" },
	[TROUBLE_REPLY] = { EBADMSG, "an invalid answer", "must be Redis 6 or later, or Valkey" },
	[TROUBLE_KEY] = { EMEDIUMTYPE, "the key has another type there", "must be deleted there, or another prefix used" },
	[TROUBLE_MIXED] = { 0, "another host has a newer rule, which is in force", "set the same rule on all hosts" },
	[TROUBLE_EXACT] = { ERANGE, "the rule cannot be counted exactly there", "must be a smaller capacity, or a rate of "
	                    "smaller or rounder numbers" },
	[TROUBLE_MOVED] = { EXDEV, "the key is on another node of the cluster", "must be reachable there, too" },
	[TROUBLE_SCRIPT] = { ENOEXEC, "it does not keep scripts", "must keep scripts" },
	[TROUBLE_WAITED] = { ETIMEDOUT, "no answer to another process by the deadline", "must answer sooner, or the "
	                     "deadline be longer" },
	[TROUBLE_AGENT] = { 0, "no agent serves", "without waiting an agent must run: `shmlimit agent`, or a thread" },
	/* clang-format on */
};

int trouble_is_of_key(const struct trouble *trouble)
{
	return trouble->kind == TROUBLE_KEY || trouble->kind == TROUBLE_MIXED || trouble->kind == TROUBLE_EXACT;
}

void trouble_copy(char *to, size_t size, const char *from, size_t len)
{
	len = len < size - 1 ? len : size - 1;
	for (size_t i = 0; i < len; i++)
		to[i] = from[i] < ' ' || from[i] > '~' ? '?' : from[i];
	to[len] = '\0';
}

struct trouble trouble_of_reply(const char *text, size_t len)
{
	struct trouble trouble = { .kind = TROUBLE_REPLY };

	trouble_copy(trouble.said, sizeof(trouble.said), text, len);
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		if (strstr(trouble.said, replies[i].words) == NULL)
			continue;
		trouble.kind = replies[i].kind;
		break;
	}
	return trouble;
}

int trouble_errno(const struct trouble *trouble)
{
	return trouble->kind == TROUBLE_LOST ? trouble->error : -words[trouble->kind].error;
}

/* WHY NOT strerror(): it is not thread-safe. */
static const char *error_words(int error)
{
	const char *said = strerrordesc_np(error);

	return error == EADDRNOTAVAIL ? "the host's name has no address" : said != NULL ? said : "unknown error";
}

/* What the system calls "connection refused" is better said by it. */
const char *trouble_strerror(int error)
{
	for (size_t i = TROUBLE_LATE; i < TROUBLE_KINDS; i++)
		if (words[i].error == error)
			return words[i].wrong;
	return error_words(error);
}

const char *trouble_text(const struct trouble *trouble, char text[TROUBLE_TEXT_MAX])
{
	char why[sizeof(trouble->said) + 4] = "";

	if (trouble->said[0] != '\0')
		snprintf(why, sizeof(why), " (%s)", trouble->said);
	else if (trouble->kind == TROUBLE_LOST)
		snprintf(why, sizeof(why), " (%s)", error_words(-trouble->error));
	snprintf(text, TROUBLE_TEXT_MAX, "%s%s: %s", words[trouble->kind].wrong, why, words[trouble->kind].right);
	return text;
}
