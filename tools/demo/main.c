/*
 * shmlimit-demo: a small prefork web server whose workers share one limit.
 *
 * It stands for Apache prefork, PHP-FPM, gunicorn, Puma: a master opens the
 * segment and the listening socket, forks workers, and each worker asks the
 * limiter before it serves. Nothing else is shared.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gate.h"
#include "listener.h"
#include "master.h"

#define EXIT_USAGE 2
#define WORKERS_MAX 1000

static const char usage[] =
	"usage: shmlimit-demo --segment NAME [--rule RULE] [--workers N] [--port-file FILE] [--fail-open]\n"
	"                     [--separate]\n"
	"       shmlimit-demo --no-limit [--workers N] [--port-file FILE]\n"
	"\n"
	"Serve HTTP on 127.0.0.1 from N worker processes that share one limit. A client that\n"
	"asks too often (GET /?client=alice; without a name, the peer's address) gets 429.\n"
	"\n"
	"  --segment NAME    the segment, made with shmlimit create\n"
	"  --rule RULE       the rule in it, made with shmlimit rule set (default demo)\n"
	"  --workers N       worker processes, 1 to 1000 (default 4)\n"
	"  --port-file FILE  write the port there (default: print the address)\n"
	"  --fail-open       serve when the limiter fails (default: answer 503)\n"
	"  --separate        each worker limits for itself, as limiters in a process's memory do\n"
	"  --no-limit        serve everybody, without a segment\n"
	"  --help            say this\n"
	"\n"
	"Ends on SIGTERM and SIGINT.\n";

static unsigned parse_workers(const char *text)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || n < 1 || n > WORKERS_MAX)
		errx(EXIT_USAGE, "--workers %s: must be a number from 1 to %d", text, WORKERS_MAX);
	return (unsigned)n;
}

int main(int argc, char **argv)
{
	enum { SEGMENT, RULE, WORKERS, PORT_FILE, FAIL_OPEN, SEPARATE, NO_LIMIT, HELP };
	static const struct option options[] = {
		{ "segment", required_argument, NULL, SEGMENT },
		{ "rule", required_argument, NULL, RULE },
		{ "workers", required_argument, NULL, WORKERS },
		{ "port-file", required_argument, NULL, PORT_FILE },
		{ "fail-open", no_argument, NULL, FAIL_OPEN },
		{ "separate", no_argument, NULL, SEPARATE },
		{ "no-limit", no_argument, NULL, NO_LIMIT },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 },
	};
	const char *segment = NULL, *rule = "demo", *port_file = NULL;
	struct gate gate = { .limiter = NULL };
	struct master *master;
	unsigned port, workers = 4;
	bool no_limit = false;
	int option, listener, outcome = EXIT_FAILURE;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case SEGMENT:
			segment = optarg;
			break;
		case RULE:
			rule = optarg;
			break;
		case WORKERS:
			workers = parse_workers(optarg);
			break;
		case PORT_FILE:
			port_file = optarg;
			break;
		case FAIL_OPEN:
			gate.fail_open = true;
			break;
		case SEPARATE:
			gate.separate = true;
			break;
		case NO_LIMIT:
			no_limit = true;
			break;
		case HELP:
			fputs(usage, stdout);
			return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		default:
			fputs("Try shmlimit-demo --help.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		errx(EXIT_USAGE, "%s: there is no such argument; try --help", argv[optind]);
	if (no_limit == (segment != NULL))
		errx(EXIT_USAGE, "give either --segment NAME or --no-limit; try --help");

	if (segment != NULL && gate_open(&gate, segment, rule) < 0)
		return EXIT_FAILURE;
	listener = listener_open(&port);
	if (listener < 0)
		goto close_gate;
	master = master_start(workers, listener, &gate);
	if (master == NULL)
		goto close_listener;
	if (listener_announce(port, port_file) == 0 && master_run(master) == 0)
		outcome = EXIT_SUCCESS;
	master_end(master);
close_listener:
	close(listener);
close_gate:
	shmlimit_close(gate.limiter);
	return outcome;
}
