/*
 * backend: see backend.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"

#define MAJOR_MIN 6
#define BACKEND_NAME_MAX 96

/* The commands that are sent at once on a new connection. The answers arrive in this order. */
enum greeting {
	GREETING_UNSENT,
	GREETING_SENTINEL_AUTH, /* a sentinel gets only these two; only with a password */
	GREETING_PRIMARY,
	GREETING_AUTH, /* left out without a password */
	GREETING_HELLO,
	GREETING_NAME, /* may be refused */
	GREETING_SELECT,
	GREETING_SCRIPT,
	GREETING_MEMORY, /* may be refused */
	GREETING_DONE,
};

/* hiredis 0.14 has its own version of every string, and nothing to join two. */
static void outbox_add(struct outbox *out, int n, const char **words, const size_t *lens)
{
	char *command = NULL, *joined;
	long long len = redisFormatCommandArgv(&command, n, words, lens);

	joined = len < 0 ? NULL : realloc(out->bytes, out->len + (size_t)len);
	if (joined == NULL) {
		out->failed = 1;
	} else {
		memcpy(joined + out->len, command, (size_t)len);
		out->bytes = joined;
		out->len += (size_t)len;
	}
	if (len >= 0)
		redisFreeCommand(command);
}

static int outbox_send(struct outbox *out, struct connection *connection, uint64_t until_ns)
{
	int error = out->failed ? -ENOMEM : connection_send(connection, out->bytes, out->len, until_ns);

	free(out->bytes);
	return error;
}

void backend_shut(struct backend *b)
{
	connection_shut(&b->connection);
	b->ready = b->used = 0;
	b->greeting = GREETING_UNSENT;
	b->primary.host[0] = '\0';
}

const struct url *backend_url(const struct backend *b)
{
	return b->primary.host[0] != '\0' ? &b->primary : &b->url;
}

void backend_leave(struct backend *b)
{
	backend_shut(b);
	url_next(&b->url);
}

/*
 * What is wrong with the URL's scheme, where the server's behaviour shows it; or "". A server that
 * has loaded the script before has the right one: it is not well now.
 */
static const char *wrong_scheme(const struct backend *b, int error)
{
	const struct connection *c = &b->connection;

	if (b->sha[0] != '\0')
		return "";
	if (c->tls != NULL && !c->secured && error == -ETIMEDOUT)
		return "to the TLS handshake; a port without TLS needs redis://";
	if (c->tls == NULL && c->connected && b->url.path[0] == '\0' && (error == -EPIPE || error == -ECONNRESET))
		return "closed before an answer; a port for TLS needs rediss://";
	return "";
}

struct backend_error backend_error_of(const struct backend *b, int error)
{
	const char *said = error == -EKEYREJECTED ? b->connection.why : wrong_scheme(b, error);
	struct backend_error failure = { .kind = error == -ETIMEDOUT      ? ERROR_LATE
		                                 : error == -EBADMSG      ? ERROR_REPLY
		                                 : error == -EKEYREJECTED ? ERROR_TLS
		                                                          : ERROR_LOST,
		                         .error = error };

	backend_error_copy(failure.said, sizeof(failure.said), said, strlen(said));
	return failure;
}

void backend_begin(struct backend *b, const struct url *url)
{
	*b = (struct backend){ .url = *url, .connection = CONNECTION_SHUT, .pid = getpid() };
}

void backend_end(struct backend *b)
{
	backend_shut(b);
	if (b->found != NULL)
		freeaddrinfo(b->found);
	explicit_bzero(&b->url, sizeof(b->url));
	explicit_bzero(&b->primary, sizeof(b->primary));
}

/*
 * The name that CLIENT LIST shows: shmlimit-HOST-PID. It must have printable characters, and no
 * space.
 */
static void client_name(char name[BACKEND_NAME_MAX])
{
	char host[65] = "";

	if (gethostname(host, sizeof(host) - 1) != 0)
		host[0] = '\0';
	for (char *c = host; *c != '\0'; c++)
		if (*c <= ' ' || *c > '~')
			*c = '?';
	snprintf(name, BACKEND_NAME_MAX, "shmlimit-%s-%ld", host, (long)getpid());
}

static void add_auth(const struct backend *b, struct outbox *out)
{
	const char *auth[] = { "AUTH", b->url.user, b->url.password };
	const char *auth_default[] = { "AUTH", b->url.password };

	if (b->url.password[0] != '\0' && b->url.user[0] != '\0')
		outbox_add(out, 3, auth, NULL);
	else if (b->url.password[0] != '\0')
		outbox_add(out, 2, auth_default, NULL);
}

static int ask_sentinel(struct backend *b, uint64_t until_ns)
{
	struct outbox out = { 0 };
	const char *ask[] = { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", b->url.primary };

	b->greeting = b->url.password[0] != '\0' ? GREETING_SENTINEL_AUTH : GREETING_PRIMARY;
	add_auth(b, &out);
	outbox_add(&out, 3, ask, NULL);
	return outbox_send(&out, &b->connection, until_ns);
}

static int send_greeting(struct backend *b, uint64_t until_ns)
{
	struct outbox out = { 0 };
	char db[16], name[BACKEND_NAME_MAX];
	const char *hello[] = { "HELLO", "2" };
	const char *setname[] = { "CLIENT", "SETNAME", name };
	const char *select[] = { "SELECT", db };
	const char *load[] = { "SCRIPT", "LOAD", script_text };
	const char *memory[] = { "INFO", "memory" };

	snprintf(db, sizeof(db), "%u", b->url.db);
	client_name(name);
	b->greeting = b->url.password[0] != '\0' ? GREETING_AUTH : GREETING_HELLO;
	add_auth(b, &out);
	outbox_add(&out, 2, hello, NULL);
	outbox_add(&out, 3, setname, NULL);
	outbox_add(&out, 2, select, NULL);
	outbox_add(&out, 3, load, NULL);
	outbox_add(&out, 2, memory, NULL);
	return outbox_send(&out, &b->connection, until_ns);
}

static void copy_text(char *to, size_t size, const redisReply *from)
{
	backend_error_copy(to, size, from->str, (size_t)from->len);
}

static int has_choice(const struct backend *b)
{
	return b->url.others != 0 || b->url.primary[0] != '\0';
}

/* Names and values in turn. */
static int read_hello(struct backend *b, const redisReply *reply, struct backend_error *failure)
{
	b->version[0] = b->mode[0] = b->role[0] = '\0';
	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
		const redisReply *name = reply->element[i], *value = reply->element[i + 1];

		if (name->type != REDIS_REPLY_STRING || value->type != REDIS_REPLY_STRING)
			continue;
		if (strcmp(name->str, "version") == 0)
			copy_text(b->version, sizeof(b->version), value);
		if (strcmp(name->str, "mode") == 0)
			copy_text(b->mode, sizeof(b->mode), value);
		if (strcmp(name->str, "role") == 0)
			copy_text(b->role, sizeof(b->role), value);
	}
	/* A replica of a cluster is as good as any other node: it knows them. */
	if (has_choice(b) && strcmp(b->role, "replica") == 0 && strcmp(b->mode, "cluster") != 0) {
		*failure = (struct backend_error){ .kind = ERROR_REPLICA };
		return 1;
	}
	if (strcmp(b->mode, "sentinel") == 0) {
		*failure = (struct backend_error){ .kind = ERROR_SENTINEL };
		return 1;
	}
	if (strtol(b->version, NULL, 10) >= MAJOR_MIN)
		return 0;
	*failure = (struct backend_error){ .kind = ERROR_OLD };
	snprintf(failure->said, sizeof(failure->said), "version %s", b->version[0] != '\0' ? b->version : "unknown");
	return 1;
}

/* The host and port of the primary, or nil. */
static int read_primary(struct backend *b, const redisReply *reply, struct backend_error *failure)
{
	const redisReply *const *text = (const redisReply *const *)reply->element;
	struct url primary = b->url;
	char *end;

	*failure = (struct backend_error){ .kind = reply->type == REDIS_REPLY_NIL ? ERROR_UNKNOWN : ERROR_REPLY };
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || text[0]->type != REDIS_REPLY_STRING ||
	    text[1]->type != REDIS_REPLY_STRING || text[0]->len == 0 || (size_t)text[0]->len >= URL_HOST_SIZE ||
	    strtoul(text[1]->str, &end, 10) - 1 >= 65535 || *end != '\0' || (size_t)text[1]->len >= URL_PORT_SIZE)
		return 1;
	copy_text(primary.host, sizeof(primary.host), text[0]);
	copy_text(primary.port, sizeof(primary.port), text[1]);
	primary.others = 0;
	connection_shut(&b->connection);
	b->greeting = GREETING_UNSENT;
	b->primary = primary;
	return 0;
}

const char *backend_info(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 1;
	}
	return NULL;
}

/* A server without a maxmemory evicts nothing, whatever its policy is. */
static void read_memory(struct backend *b, const redisReply *reply)
{
	const char *text = reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
	const char *most = backend_info(text, "maxmemory"), *policy = backend_info(text, "maxmemory_policy");

	b->evicts[0] = '\0';
	if (most == NULL || policy == NULL || strtoull(most, NULL, 10) == 0 || strncmp(policy, "noeviction", 10) == 0)
		return;
	backend_error_copy(b->evicts, sizeof(b->evicts), policy, strcspn(policy, "\r\n"));
}

static int read_greeting(struct backend *b, const redisReply *reply, struct backend_error *failure)
{
	int may_fail =
		b->greeting == GREETING_NAME || b->greeting == GREETING_SENTINEL_AUTH || b->greeting == GREETING_MEMORY;

	if (reply->type == REDIS_REPLY_ERROR && !may_fail) {
		*failure = backend_error_of_reply(reply->str, (size_t)reply->len);
		if (b->greeting == GREETING_PRIMARY && failure->kind == ERROR_OLD)
			*failure = (struct backend_error){ .kind = ERROR_SERVER };
		return 1;
	}
	if (b->greeting == GREETING_PRIMARY)
		return read_primary(b, reply, failure);
	if (b->greeting == GREETING_MEMORY)
		read_memory(b, reply);
	if (b->greeting == GREETING_HELLO)
		return read_hello(b, reply, failure);
	if (b->greeting == GREETING_SCRIPT) {
		if (reply->type != REDIS_REPLY_STRING || reply->len != BACKEND_SHA_MAX - 1) {
			*failure = (struct backend_error){ .kind = ERROR_REPLY };
			return 1;
		}
		copy_text(b->sha, sizeof(b->sha), reply);
	}
	return 0;
}

/* Another host, if there may be one, is tried when this one has not answered for long enough. */
static uint64_t patient_until_ns(const struct backend *b, uint64_t until_ns)
{
	uint64_t enough_ns = b->connection.since_ns + CONNECTION_PATIENCE_NS;

	return has_choice(b) && enough_ns < until_ns ? enough_ns : until_ns;
}

static int is_to_sentinel(const struct backend *b)
{
	return b->url.primary[0] != '\0' && b->primary.host[0] == '\0';
}

/* Continue the greeting to its end. Returns 0, -errno, or 1 with *failure filled. */
static int introduce(struct backend *b, uint64_t until_ns, struct backend_error *failure)
{
	int error = 0, to_sentinel = is_to_sentinel(b);

	if (b->connection.fd < 0) {
		error = connection_connect(&b->connection, backend_url(b), b->found);
		b->found = NULL;
	}
	until_ns = patient_until_ns(b, until_ns);
	if (error == 0)
		error = connection_connected(&b->connection, until_ns);
	if (error == 0 && b->greeting == GREETING_UNSENT) {
		b->greeted_ns = monotonic_now_ns();
		error = to_sentinel ? ask_sentinel(b, until_ns) : send_greeting(b, until_ns);
		if (error != 0)
			backend_shut(b); /* half a command may be sent */
	}
	while (error == 0 && b->greeting != GREETING_DONE && is_to_sentinel(b) == to_sentinel) {
		redisReply *reply;

		error = connection_receive(&b->connection, &reply, until_ns);
		if (error != 0)
			break;
		error = read_greeting(b, reply, failure);
		freeReplyObject(reply);
		b->greeting += is_to_sentinel(b) == to_sentinel;
	}
	return error;
}

enum backend_step backend_refuse(struct backend *b)
{
	backend_leave(b);
	b->refused = b->refused < b->url.others ? b->refused + 1 : 0;
	return b->refused != 0 ? BACKEND_GO_ON : BACKEND_FAILED;
}

/*
 * WHY NOT start over after each deadline: a server that takes longer than a deadline to connect to
 * would never be reached.
 */
enum backend_step backend_step(struct backend *b, uint64_t until_ns, struct backend_error *failure)
{
	const struct connection *c = &b->connection;
	int error;

	if (b->pid != getpid()) {
		backend_shut(b);
		b->pid = getpid();
	}
	if (b->ready)
		return BACKEND_READY;
	/* Another address of the host, if there is one, is tried first. */
	if (c->fd >= 0 && c->next == NULL && monotonic_now_ns() - c->since_ns >= CONNECTION_PATIENCE_NS) {
		backend_leave(b);
		return BACKEND_GO_ON;
	}
	error = introduce(b, until_ns, failure);
	if (error == 0 && b->greeting == GREETING_UNSENT)
		return BACKEND_GO_ON;
	b->ready = error == 0;
	if (error < 0)
		*failure = backend_error_of(b, error);
	if (b->ready) {
		b->refused = 0;
		return BACKEND_READY;
	}
	if (error != -ETIMEDOUT)
		return backend_refuse(b);
	return c->fd >= 0 && patient_until_ns(b, until_ns) < until_ns ? BACKEND_GO_ON : BACKEND_FAILED;
}

/* BOUND: the hosts of the URL that refuse, and the deadline for those that say nothing. */
int backend_ready(struct backend *b, uint64_t until_ns, struct backend_error *failure)
{
	enum backend_step step;

	do {
		step = backend_step(b, until_ns, failure);
	} while (step == BACKEND_GO_ON);
	return step != BACKEND_READY;
}

static int put_count(const struct backend_question *q, char number[SCRIPT_ARGUMENTS_MAX][SCRIPT_ARGUMENT_MAX])
{
	const uint64_t numbers[] = { q->want, q->need, q->ttl_ms, q->saturate != 0, q->keep };
	int n = sizeof(numbers) / sizeof(numbers[0]);

	for (int i = 0; i < n; i++)
		snprintf(number[i], sizeof(number[i]), "%" PRIu64, numbers[i]);
	snprintf(number[n], sizeof(number[n]), "%0*" PRIx64 "%" PRIx64, SCRIPT_HOST_LEN, q->host, q->number);
	return n + 1;
}

void backend_put(const struct backend *b, struct outbox *out, const struct backend_question *q, int with_text)
{
	const struct script_question lease = { q->need, q->want, q->most };
	char number[SCRIPT_ARGUMENTS_MAX][SCRIPT_ARGUMENT_MAX];
	int n = q->params != NULL ? script_arguments(q->params, &lease, 0, number) : put_count(q, number);
	const char *asking[] = { "ASKING" };
	const char *words[4 + SCRIPT_ARGUMENTS_MAX] = { with_text ? "EVAL" : "EVALSHA",
		                                        with_text ? script_text : b->sha, "1", q->key };
	size_t lens[4 + SCRIPT_ARGUMENTS_MAX];

	for (int i = 0; i < n; i++)
		words[4 + i] = number[i];
	for (int i = 0; i < 4 + n; i++)
		lens[i] = i == 3 ? q->key_len : strlen(words[i]);
	if (q->ask_first)
		outbox_add(out, 1, asking, NULL);
	outbox_add(out, 4 + n, words, lens);
}

void backend_answer(const redisReply *reply, struct backend_question *q)
{
	q->failure = (struct backend_error){ .kind = ERROR_NONE };
	if (reply->type == REDIS_REPLY_ERROR) {
		q->failure = backend_error_of_reply(reply->str, (size_t)reply->len);
		return;
	}
	q->failure.kind = reply->type == REDIS_REPLY_ARRAY && reply->elements == 5 ? ERROR_NONE : ERROR_REPLY;
	for (size_t i = 0; q->failure.kind == ERROR_NONE && i < 5; i++)
		if (reply->element[i]->type != REDIS_REPLY_INTEGER)
			q->failure.kind = ERROR_REPLY;
	if (q->failure.kind != ERROR_NONE)
		return;
	q->leased = (uint64_t)reply->element[0]->integer;
	q->retry_us = reply->element[1]->integer < 0 ? UINT64_MAX : (uint64_t)reply->element[1]->integer;
	q->left = (uint64_t)reply->element[2]->integer;
	q->full_us = (uint64_t)reply->element[3]->integer;
	q->lasts_us = (uint64_t)reply->element[4]->integer;
	if (q->leased > (q->want > q->most ? q->want : q->most) || q->lasts_us > SCRIPT_LEASE_MAX_US ||
	    (q->leased == 0 && q->want > 0 && q->retry_us == 0))
		q->failure.kind = ERROR_REPLY;
}

/*
 * Send the questions whose failure is `which`, and read the answers. Returns 0 or -errno. *done is
 * the number of answers.
 */
static int exchange_questions(struct backend *b, struct backend_question *questions, size_t n,
                              enum backend_error_kind which, uint64_t until_ns, size_t *done)
{
	struct outbox out = { 0 };
	int error;

	for (size_t i = 0; i < n; i++)
		if (questions[i].failure.kind == which)
			backend_put(b, &out, &questions[i], which == ERROR_SCRIPT);
	if (out.bytes == NULL && !out.failed)
		return 0;
	error = outbox_send(&out, &b->connection, until_ns);
	for (size_t i = 0; i < n && error == 0; i++) {
		redisReply *reply;

		if (questions[i].failure.kind != which)
			continue;
		if (questions[i].ask_first) {
			error = connection_receive(&b->connection, &reply, until_ns);
			if (error != 0)
				break;
			freeReplyObject(reply);
		}
		error = connection_receive(&b->connection, &reply, until_ns);
		if (error != 0)
			break;
		backend_answer(reply, &questions[i]);
		freeReplyObject(reply);
		b->used = 1;
		b->commands++;
		++*done;
	}
	return error;
}

/*
 * Connecting may have used so much of the deadline that the answer would be late, if it takes as
 * long as the greeting did. WHY NOT ask all the same: a late answer shuts the connection, so the
 * next call connects again and is late again.
 */
static int is_too_late(const struct backend *b, uint64_t until_ns)
{
	uint64_t now_ns = monotonic_now_ns();

	return now_ns >= until_ns || now_ns - b->greeted_ns > until_ns - now_ns;
}

/* Make sure that the connection can carry a command. */
static int reach(struct backend *b, uint64_t until_ns, struct backend_error *failure)
{
	int is_new = !b->ready || b->pid != getpid();

	if (backend_ready(b, until_ns, failure) != 0)
		return 1;
	if (!is_new || !is_too_late(b, until_ns))
		return 0;
	*failure = (struct backend_error){ .kind = ERROR_CONNECTED };
	return 1;
}

/*
 * After a failover the address may lead to another server, so the connection to a replica is shut.
 * Otherwise its socket would stay open for as long as the replica runs.
 */
static void leave_replica(struct backend *b, const struct backend_error *failure)
{
	if (failure->kind == ERROR_REPLICA)
		backend_leave(b);
}

static int attempt(struct backend *b, struct backend_question *questions, size_t n, uint64_t until_ns, size_t *done,
                   struct backend_error *failure)
{
	int error;

	if (reach(b, until_ns, failure) != 0)
		return 1;
	error = exchange_questions(b, questions, n, ERROR_WAITED, until_ns, done);
	if (error == 0)
		error = exchange_questions(b, questions, n, ERROR_SCRIPT, until_ns, done);
	for (size_t i = 0; i < n; i++)
		leave_replica(b, &questions[i].failure);
	if (error == 0)
		return 0;
	*failure = backend_error_of(b, error);
	backend_shut(b);
	return 1;
}

/*
 * A server that was restarted has shut its connections, so a connection that was used before is
 * worth a second try. Tokens that the first try may have debited are lost, not leased twice.
 */
void backend_lease(struct backend *b, struct backend_question *questions, size_t n, uint64_t until_ns)
{
	struct backend_error failure = { .kind = ERROR_NONE };
	size_t done = 0;
	int used = b->used, failed;

	for (size_t i = 0; i < n; i++)
		questions[i].failure = (struct backend_error){ .kind = ERROR_WAITED };
	failed = attempt(b, questions, n, until_ns, &done, &failure);
	if (failed && used && done == 0 && failure.kind == ERROR_LOST)
		failed = attempt(b, questions, n, until_ns, &done, &failure);
	for (size_t i = 0; failed && i < n; i++)
		if (questions[i].failure.kind == ERROR_WAITED || questions[i].failure.kind == ERROR_SCRIPT)
			questions[i].failure = failure;
}

int backend_command(struct backend *b, const struct backend_words *command, uint64_t until_ns, redisReply **reply,
                    struct backend_error *failure)
{
	struct outbox out = { 0 };
	int error;

	if (reach(b, until_ns, failure) != 0)
		return 1;
	outbox_add(&out, command->n, command->words, command->lens);
	error = outbox_send(&out, &b->connection, until_ns);
	if (error == 0)
		error = connection_receive(&b->connection, reply, until_ns);
	if (error != 0) {
		*failure = backend_error_of(b, error);
		backend_shut(b);
		return 1;
	}
	b->used = 1;
	if ((*reply)->type != REDIS_REPLY_ERROR)
		return 0;
	*failure = backend_error_of_reply((*reply)->str, (size_t)(*reply)->len);
	freeReplyObject(*reply);
	leave_replica(b, failure);
	return 1;
}
