/*
 * redis: Debian's server on a private Unix socket, nothing being saved, and
 * hiredis. Five ways that are in use:
 *
 *	funnel         one Lua script, by its hash
 *	three scripts  look up or make, refill, take: three round trips
 *	sorted set     the sliding window of the members' times, in MULTI
 *	INCR + EXPIRE  a count that expires: two commands at once
 *	INCREX         the same as a script that adds nothing over the bound, as Redis 8.8 does by itself
 *
 * each one request at a time or 32 of them in a pipeline.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../kit/bench.h"
#include "../kit/folder.h"
#include "peer.h"

/* The server's binary: in the package redis-tools it is the checker's program, which acts by argv[0]. */
#define SERVER "/usr/bin/redis-check-rdb"

#define DAY_MS (PEER_DAY_S * 1000u)

/* KEYS[1] key; ARGV[1] capacity, ARGV[2] tokens a second. Returns 0 allowed, 1 denied. */
static const char funnel_lua[] =
	"local f = redis.call('HMGET', KEYS[1], 'quota', 'time') "
	"local t = redis.call('TIME') "
	"local now, capacity = t[1] + t[2] / 1000000, tonumber(ARGV[1]) "
	"local quota = capacity "
	"if f[1] then quota = math.min(capacity, f[1] + math.max(0, now - f[2]) * ARGV[2]) end "
	"if quota < 1 then return 1 end "
	"redis.call('HSET', KEYS[1], 'quota', string.format('%.17g', quota - 1), 'time', string.format('%.17g', now)) "
	"redis.call('PEXPIRE', KEYS[1], math.ceil((capacity - quota + 1) / ARGV[2] * 1000)) "
	"return 0";
static const char make_lua[] =
	"local t = redis.call('TIME') "
	"if redis.call('EXISTS', KEYS[1]) == 0 then "
	"redis.call('HSET', KEYS[1], 'quota', ARGV[1], 'time', string.format('%.17g', t[1] + t[2] / 1000000)) end "
	"redis.call('PEXPIRE', KEYS[1], math.ceil((ARGV[1] + 1) / ARGV[2] * 1000)) "
	"return 0";
static const char bucket_lua[] =
	"local f = redis.call('HMGET', KEYS[1], 'quota', 'time') "
	"local t = redis.call('TIME') "
	"local now = t[1] + t[2] / 1000000 "
	"if not f[1] then return 0 end "
	"local quota = math.min(tonumber(ARGV[1]), f[1] + math.max(0, now - f[2]) * ARGV[2]) "
	"redis.call('HSET', KEYS[1], 'quota', string.format('%.17g', quota), 'time', string.format('%.17g', now)) "
	"return 0";
static const char take_lua[] = "local quota = tonumber(redis.call('HGET', KEYS[1], 'quota') or ARGV[1]) "
			       "if quota < 1 then return 1 end "
			       "redis.call('HSET', KEYS[1], 'quota', string.format('%.17g', quota - 1)) "
			       "return 0";
/* KEYS[1] key; ARGV[1] bound, ARGV[2] seconds. Returns 0 allowed, 1 denied. */
static const char increx_lua[] = "local n = tonumber(redis.call('GET', KEYS[1]) or '0') "
				 "if n + 1 > tonumber(ARGV[1]) then return 1 end "
				 "if redis.call('INCR', KEYS[1]) == 1 then redis.call('EXPIRE', KEYS[1], ARGV[2]) end "
				 "return 0";

enum script { FUNNEL, MAKE, BUCKET, TAKE, INCREX, SCRIPTS };
static const char *const scripts[SCRIPTS] = { funnel_lua, make_lua, bucket_lua, take_lua, increx_lua };

struct session {
	redisContext *redis;
	char sha[SCRIPTS][41];
	uint64_t members;
};

static volatile pid_t server;
static int started;
static double empty_bytes;

static void end_server(void)
{
	if (server > 0)
		kill(server, SIGKILL);
	server = 0;
}

static void run_server(const char *socket)
{
	/* clang-format off */
	char *argv[] = { (char *)(uintptr_t)"redis-server", (char *)(uintptr_t)"--port", (char *)(uintptr_t)"0",
		(char *)(uintptr_t)"--unixsocket", (char *)(uintptr_t)socket, (char *)(uintptr_t)"--unixsocketperm",
		(char *)(uintptr_t)"700", (char *)(uintptr_t)"--save", (char *)(uintptr_t)"",
		(char *)(uintptr_t)"--appendonly", (char *)(uintptr_t)"no", (char *)(uintptr_t)"--logfile",
		(char *)(uintptr_t)"/dev/null", NULL };
	/* clang-format on */

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execv(SERVER, argv);
	_exit(127);
}

static redisReply *ask(struct session *s, redisReply *reply)
{
	if (reply == NULL)
		bench_fail("redis", s->redis->errstr);
	if (reply->type == REDIS_REPLY_ERROR)
		bench_fail("redis", reply->str);
	return reply;
}

static void *open_session(void)
{
	struct session *s = calloc(1, sizeof(*s));
	struct timespec pause = { 0, 20000000 };

	if (s == NULL)
		bench_fail("redis", "no memory");
	/* The server may be starting: 5 s at most. */
	for (int i = 0; i < 250; i++) {
		s->redis = redisConnectUnix(folder_file("redis.socket"));
		if (s->redis != NULL && s->redis->err == 0)
			break;
		redisFree(s->redis);
		s->redis = NULL;
		nanosleep(&pause, NULL);
	}
	if (s->redis == NULL)
		bench_fail("redis", "the server does not answer");
	for (int i = 0; i < SCRIPTS; i++) {
		redisReply *reply = ask(s, redisCommand(s->redis, "SCRIPT LOAD %s", scripts[i]));

		snprintf(s->sha[i], sizeof(s->sha[i]), "%s", reply->str);
		freeReplyObject(reply);
	}
	return s;
}

static void close_session(void *session)
{
	struct session *s = session;

	redisFree(s->redis);
	free(s);
}

static double used_memory(void)
{
	struct session *s = open_session();
	redisReply *reply = ask(s, redisCommand(s->redis, "INFO memory"));
	const char *found = strstr(reply->str, "used_memory:");
	double bytes = found != NULL ? atof(found + strlen("used_memory:")) : 0;

	freeReplyObject(reply);
	close_session(s);
	return bytes;
}

/* Keys of another peer, which expire while this one fills its own, would be missing from the bytes that it takes. */
static void empty_server(void)
{
	struct session *s = open_session();

	freeReplyObject(ask(s, redisCommand(s->redis, "FLUSHALL SYNC")));
	close_session(s);
}

/* All peers of this file share one server. */
static void start(void)
{
	if (started++ > 0) {
		empty_server();
		return;
	}
	(void)folder_path();
	server = fork();
	if (server < 0)
		bench_fail("redis", "fork");
	if (server == 0)
		run_server(folder_file("redis.socket"));
	bench_at_end(end_server);
	empty_bytes = used_memory();
}

static void end(void)
{
	pid_t child = server;

	if (--started > 0)
		return;
	end_server();
	waitpid(child, NULL, 0);
}

static double bytes(void)
{
	return used_memory() - empty_bytes;
}

static void send_script(struct session *s, enum script script, enum peer_limit limit, const struct peer_key *key)
{
	if (limit == PEER_OPEN)
		redisAppendCommand(s->redis, "EVALSHA %s 1 %b %u %.17g", s->sha[script], key->bytes, key->len,
		                   PEER_OPEN_CAPACITY, (double)PEER_OPEN_A_DAY / PEER_DAY_S);
	else
		redisAppendCommand(s->redis, "EVALSHA %s 1 %b %u %.17g", s->sha[script], key->bytes, key->len,
		                   PEER_DRAIN_CAPACITY, (double)PEER_DRAIN_A_DAY / PEER_DAY_S);
}

static int64_t receive(struct session *s)
{
	void *raw = NULL;
	redisReply *reply;
	int64_t value;

	redisGetReply(s->redis, &raw);
	reply = ask(s, raw);
	value = reply->type == REDIS_REPLY_ARRAY ? reply->element[2]->integer : reply->integer;
	freeReplyObject(reply);
	return value;
}

static void run_script(struct session *s, enum script script, enum peer_limit limit, const struct peer_key *keys, int n,
                       int *answers)
{
	for (int i = 0; i < n; i++)
		send_script(s, script, limit, &keys[i]);
	for (int i = 0; i < n; i++)
		answers[i] = (int)receive(s);
}

static void decide_funnel(void *session, enum peer_limit limit, const struct peer_key *keys, int n, int *answers)
{
	run_script(session, FUNNEL, limit, keys, n, answers);
}

static void decide_three(void *session, enum peer_limit limit, const struct peer_key *keys, int n, int *answers)
{
	run_script(session, MAKE, limit, keys, n, answers);
	run_script(session, BUCKET, limit, keys, n, answers);
	run_script(session, TAKE, limit, keys, n, answers);
}

/* As it is written everywhere: what is denied is in the set too. The open window is of a second. */
static void decide_zset(void *session, enum peer_limit limit, const struct peer_key *keys, int n, int *answers)
{
	struct session *s = session;
	uint64_t now_ms = bench_ns() / 1000000, window_ms = limit == PEER_OPEN ? 1000 : DAY_MS;
	int64_t capacity = limit == PEER_OPEN ? PEER_OPEN_CAPACITY : PEER_DRAIN_CAPACITY;

	for (int i = 0; i < n; i++) {
		redisAppendCommand(s->redis, "MULTI");
		redisAppendCommand(s->redis, "ZADD z%b %llu %d.%llu", keys[i].bytes, keys[i].len,
		                   (unsigned long long)now_ms, (int)getpid(), (unsigned long long)s->members++);
		redisAppendCommand(s->redis, "ZREMRANGEBYSCORE z%b 0 %lld", keys[i].bytes, keys[i].len,
		                   (long long)now_ms - (long long)window_ms);
		redisAppendCommand(s->redis, "ZCARD z%b", keys[i].bytes, keys[i].len);
		redisAppendCommand(s->redis, "PEXPIRE z%b %llu", keys[i].bytes, keys[i].len,
		                   (unsigned long long)window_ms + 1000);
		redisAppendCommand(s->redis, "EXEC");
	}
	for (int i = 0; i < n; i++) {
		for (int queued = 0; queued < 5; queued++)
			receive(s);
		answers[i] = receive(s) > capacity;
	}
}

/* The time to live begins with the first addition. */
static void decide_incr(void *session, enum peer_limit limit, const struct peer_key *keys, int n, int *answers)
{
	struct session *s = session;
	int64_t capacity = limit == PEER_OPEN ? PEER_OPEN_CAPACITY : PEER_DRAIN_CAPACITY;

	for (int i = 0; i < n; i++) {
		redisAppendCommand(s->redis, "INCR c%b", keys[i].bytes, keys[i].len);
		redisAppendCommand(s->redis, "EXPIRE c%b %u NX", keys[i].bytes, keys[i].len, PEER_DAY_S);
	}
	for (int i = 0; i < n; i++) {
		answers[i] = receive(s) > capacity;
		receive(s);
	}
}

static void decide_increx(void *session, enum peer_limit limit, const struct peer_key *keys, int n, int *answers)
{
	struct session *s = session;
	unsigned capacity = limit == PEER_OPEN ? PEER_OPEN_CAPACITY : PEER_DRAIN_CAPACITY;

	for (int i = 0; i < n; i++)
		redisAppendCommand(s->redis, "EVALSHA %s 1 x%b %u %u", s->sha[INCREX], keys[i].bytes, keys[i].len,
		                   capacity, PEER_DAY_S);
	for (int i = 0; i < n; i++)
		answers[i] = (int)receive(s);
}

#define REDIS(title, at_once, how, memory) \
	{ \
		.name = title, .file = SERVER, .many = at_once, .start = start, .open = open_session, .decide = how, \
		.close = close_session, .bytes = memory, .end = end \
	}

const struct peer peer_redis = REDIS("Redis, a script", 1, decide_funnel, bytes);
const struct peer peer_redis_three = REDIS("Redis, three scripts", 1, decide_three, NULL);
const struct peer peer_redis_zset = REDIS("Redis, sorted set", 1, decide_zset, bytes);
const struct peer peer_redis_many = REDIS("Redis, a script, pipelined", PEER_MANY_MAX, decide_funnel, NULL);
const struct peer peer_redis_three_many = REDIS("Redis, three scripts, pipelined", PEER_MANY_MAX, decide_three, NULL);
const struct peer peer_redis_zset_many = REDIS("Redis, sorted set, pipelined", PEER_MANY_MAX, decide_zset, NULL);
const struct peer peer_redis_incr = REDIS("Redis, INCR + EXPIRE", 1, decide_incr, bytes);
const struct peer peer_redis_increx = REDIS("Redis, INCREX as a script", 1, decide_increx, bytes);
const struct peer peer_redis_incr_many = REDIS("Redis, INCR + EXPIRE, pipelined", PEER_MANY_MAX, decide_incr, NULL);
