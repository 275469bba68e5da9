/*
 * sqlite: one statement that inserts or updates a row and returns the answer;
 * write-ahead log, in memory, never synced.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/bench.h"
#include "../kit/folder.h"
#include "peer.h"

struct session {
	sqlite3 *db;
	sqlite3_stmt *take;
};

/* ?1 key, ?2 capacity, ?3 tokens a second, ?4 now, seconds. What stands right of SET are the old values. */
static const char take_sql[] = "INSERT INTO funnel (key, quota, time, admitted) VALUES (?1, ?2 - 1, ?4, 1) "
			       "ON CONFLICT (key) DO UPDATE SET "
			       "admitted = min(?2, quota + (?4 - time) * ?3) >= 1, "
			       "quota = min(?2, quota + (?4 - time) * ?3) - (min(?2, quota + (?4 - time) * ?3) >= 1), "
			       "time = ?4 "
			       "RETURNING admitted";

static void check(struct session *s, int got, int want, const char *what)
{
	if (got != want)
		bench_fail(what, sqlite3_errmsg(s->db));
}

static void *open_session(void)
{
	struct session *s = calloc(1, sizeof(*s));

	if (s == NULL)
		bench_fail("sqlite", "no memory");
	check(s, sqlite3_open(folder_file("sqlite.db"), &s->db), SQLITE_OK, "sqlite");
	sqlite3_busy_timeout(s->db, 60000);
	check(s,
	      sqlite3_exec(s->db,
	                   "PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL;"
	                   "CREATE TABLE IF NOT EXISTS funnel (key TEXT PRIMARY KEY, quota REAL, time REAL, "
	                   "admitted INTEGER) WITHOUT ROWID",
	                   NULL, NULL, NULL),
	      SQLITE_OK, "sqlite: table");
	check(s, sqlite3_prepare_v2(s->db, take_sql, -1, &s->take, NULL), SQLITE_OK, "sqlite: prepare");
	return s;
}

static void close_session(void *session)
{
	struct session *s = session;

	sqlite3_finalize(s->take);
	sqlite3_close(s->db);
	free(s);
}

static void start(void)
{
	close_session(open_session());
}

static int take(struct session *s, const struct peer_key *key, double capacity, double rate)
{
	int answer;

	sqlite3_bind_text(s->take, 1, key->bytes, (int)key->len, SQLITE_STATIC);
	sqlite3_bind_double(s->take, 2, capacity);
	sqlite3_bind_double(s->take, 3, rate);
	sqlite3_bind_double(s->take, 4, (double)bench_ns() * 1e-9);
	check(s, sqlite3_step(s->take), SQLITE_ROW, "sqlite: take");
	answer = !sqlite3_column_int(s->take, 0);
	check(s, sqlite3_step(s->take), SQLITE_DONE, "sqlite: take");
	sqlite3_reset(s->take);
	return answer;
}

static void decide(void *session, enum peer_limit limit, const struct peer_key *keys, int n, int *answers)
{
	for (int i = 0; i < n; i++)
		answers[i] =
			limit == PEER_OPEN
				? take(session, &keys[i], PEER_OPEN_CAPACITY, (double)PEER_OPEN_A_DAY / PEER_DAY_S)
				: take(session, &keys[i], PEER_DRAIN_CAPACITY, (double)PEER_DRAIN_A_DAY / PEER_DAY_S);
}

static double bytes(void)
{
	struct session *s = open_session();
	sqlite3_stmt *size;
	double sum;

	check(s,
	      sqlite3_prepare_v2(s->db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", -1,
	                         &size, NULL),
	      SQLITE_OK, "sqlite: size");
	check(s, sqlite3_step(size), SQLITE_ROW, "sqlite: size");
	sum = sqlite3_column_double(size, 0);
	sqlite3_finalize(size);
	close_session(s);
	return sum;
}

static void end(void)
{
}

const struct peer peer_sqlite = {
	.name = "SQLite, one UPSERT",
	.many = 1,
	.start = start,
	.open = open_session,
	.decide = decide,
	.close = close_session,
	.bytes = bytes,
	.end = end,
};
