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
	struct shmlimit_result r = { 0 };

	if (shmlimit_open("web", SHMLIMIT_TRUSTED_OWNER, &limiter) != 0)
		return 2;
	int login = shmlimit_rule_find(limiter, "login");  /* the id of the rule "login" */
	int answer = shmlimit_take(limiter, login, client, strlen(client), 1, &r);

	printf("%s: %d of %d left, again in %.1f s\n", answer == SHMLIMIT_ALLOWED ? "allowed" : "denied",
	       (int)r.remaining, (int)r.limit, (double)r.retry_after_ns / 1e9);
	return answer != SHMLIMIT_ALLOWED;
}
