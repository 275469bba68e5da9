/*
 * limit: one request of one client, limited beside those of every other process on this host.
 *
 *	shmlimit create web --slots 64K && shmlimit rule set web login --capacity 15 --rate 30/60s
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
	struct shmlimit *limiter;
	struct shmlimit_result r;
	int answer = shmlimit_open("web", SHMLIMIT_OPEN_TRUSTED, &limiter);

	if (answer == 0) /* a server finds its rule once, and keeps the id */
		answer = shmlimit_take(limiter, shmlimit_rule_find(limiter, "login"), client, strlen(client), 1, &r);
	if (answer < 0)
		printf("segment web, rule login: %s\n", shmlimit_strerror(answer));
	else
		printf("%s: %d of %d left, again in %.1f s\n", answer == SHMLIMIT_ALLOWED ? "allowed" : "denied",
		       (int)r.remaining, (int)r.limit, (double)r.retry_after_ns / 1e9);
	return answer != SHMLIMIT_ALLOWED;
}
