/*
 * limit: one request of one client, limited beside those of every other process on this host.
 *
 *	cc limit.c $(pkg-config --cflags --libs shmlimit) -o limit && ./limit 203.0.113.9
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <shmlimit.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char *argv[])
{
	const char *client = argc > 1 ? argv[1] : "203.0.113.9";
	struct shmlimit_rule limit = { .struct_size = sizeof(limit) };
	struct shmlimit_result result;
	struct shmlimit *limiter;
	int error, login, answer;

	error = shmlimit_open("demo", SHMLIMIT_OPEN_CREATE | SHMLIMIT_OPEN_TRUSTED, NULL, &limiter);
	if (error == 0)
		error = shmlimit_rule_parse("3 per hour", &limit, NULL);
	login = error == 0 ? shmlimit_rule_ensure(limiter, "login", &limit) : error; /* once; a server keeps it */
	answer = login >= 0 ? shmlimit_take(limiter, login, client, strlen(client), 1, &result) : login;
	if (answer < 0)
		printf("segment demo, rule login: %s\n", shmlimit_strerror(answer));
	else
		printf("%s: %d of %d left, again in %.1f s\n", answer == SHMLIMIT_ALLOWED ? "allowed" : "denied",
		       (int)result.remaining, (int)result.limit, (double)result.retry_after_ns / 1e9);
	return answer != SHMLIMIT_ALLOWED;
}
