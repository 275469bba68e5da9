/*
 * agent.c: shmlimit agent: the one process of a host that asks the backend.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "fail.h"
#include "global.h"
#include "value_parse.h"

#define LOOK_SECONDS 1
#define MS UINT64_C(1000000)

enum { OPEN = GLOBAL_OPTIONS };

static const struct command_option options[] = {
	GLOBAL_OPTION_ROWS,
	[OPEN] = { "open", "DURATION", "time that a failing backend is left alone (default 200ms)" },
	{ 0 },
};

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

struct service {
	struct global_call g;
	int notify; /* a socket to the service manager; -1: there is none */
	struct sockaddr_un to;
	socklen_t to_len;
	int told; /* the state that was reported: 0 none, 1 waits, 2 serves */
	time_t looked;
	int status;
};

/*
 * As sd_notify(3) describes it: a datagram to $NOTIFY_SOCKET, where '@' is the abstract namespace.
 */
static void notify_begin(struct service *s)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path != NULL ? strlen(path) : 0;

	s->notify = -1;
	if (len < 2 || len >= sizeof(s->to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	s->to.sun_family = AF_UNIX;
	memcpy(s->to.sun_path, path, len);
	if (path[0] == '@')
		s->to.sun_path[0] = '\0';
	s->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	s->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void notify(const struct service *s, const char *text)
{
	if (s->notify >= 0)
		(void)sendto(s->notify, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&s->to, s->to_len);
}

static time_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec;
}

/*
 * Called several times a second. A segment that was made again under its name is another one: a new
 * agent opens it.
 */
static int proceed(void *arg, int serving)
{
	struct service *s = arg;
	time_t at = now();

	if (ended)
		return 0;
	if (s->told != 1 + serving)
		notify(s, serving ? "READY=1\nSTATUS=Asks the backend for this host"
		                  : "READY=1\nSTATUS=Waits: another agent serves");
	s->told = 1 + serving;
	if (at - s->looked < LOOK_SECONDS)
		return 1;
	s->looked = at;
	notify(s, "WATCHDOG=1");
	if (shmlimit_gone(s->g.limiter) == 0)
		return 1;
	s->status =
		fail("segment %s: was destroyed or replaced: start the agent again", s->g.call->operand[GLOBAL_NAME]);
	return 0;
}

/* As global/redis/url.c reads it: [user]:password@, before the first slash. */
static int has_password(const char *url)
{
	const char *text = strstr(url, "://"), *colon, *at;
	size_t len;

	if (text == NULL)
		return 0;
	text += 3;
	len = strcspn(text, "/");
	colon = memchr(text, ':', len);
	at = memchr(text, '@', len);
	return colon != NULL && at != NULL && colon < at;
}

static int run(const struct call *call)
{
	struct shmlimit_global_options o = { 0 };
	struct sigaction action = { .sa_handler = end };
	struct service s = { .status = STATUS_OK };
	int error, status = STATUS_OK;

	if (call->option[OPEN] != NULL)
		status = duration_range_parse("--open", call->option[OPEN], MS, 3600000 * MS, &o.open_ns);
	if (status == STATUS_OK)
		status = global_open(&s.g, call, &o);
	if (status != STATUS_OK)
		return status;
	if (has_password(call->operand[GLOBAL_URL]))
		fail("warning: the process list shows the password of the URL (instead of the URL give - here, and the URL "
		     "in the environment variable SHMLIMIT_BACKEND; for shmlimit-agent@ in /etc/shmlimit-agent/NAME)");
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	notify_begin(&s);
	error = shmlimit_global_serve(s.g.global, proceed, &s);
	notify(&s, "STOPPING=1");
	/* What was reported while it ran was about the backend, which comes and goes. */
	s.g.told = 0;
	status = error != 0 ? global_status(&s.g, error) : s.status;
	global_close(&s.g);
	if (s.notify >= 0)
		close(s.notify);
	return status;
}

const struct command command_agent = {
	.name = "agent",
	.operands = "NAME URL",
	.purpose = "lease tokens from a Redis server for all processes of this host",
	.details = GLOBAL_DETAILS
	"Runs until SIGTERM or SIGINT. Processes with the same URL and prefix ask the agent, which has one\n"
	"connection per server. A segment has one agent; another one waits, and takes its place.\n",
	.options = options,
	.run = run,
};
