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
	struct shmlimit *limiter;
	struct shmlimit_result r;
	int answer = shmlimit_open("web", SHMLIMIT_OPEN_CREATE | SHMLIMIT_OPEN_TRUSTED, NULL, &limiter);

	if (answer == 0)
		answer = shmlimit_rule_parse("3 per hour", &limit, NULL);
	if (answer == 0) /* a server does all this once, and keeps the rule's id */
		answer = shmlimit_rule_ensure(limiter, "login", &limit);
	if (answer >= 0)
		answer = shmlimit_take(limiter, answer, client, strlen(client), 1, &r);
	if (answer < 0)
		printf("segment web, rule login: %s\n", shmlimit_strerror(answer));
	else
		printf("%s: %d of %d left, again in %.1f s\n", answer == SHMLIMIT_ALLOWED ? "allowed" : "denied",
		       (int)r.remaining, (int)r.limit, (double)r.retry_after_ns / 1e9);
	return answer != SHMLIMIT_ALLOWED;
}
