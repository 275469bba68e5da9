/*
 * status: what the agent of a host says of itself and of its servers, and how many requests
 * on_failure decided.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "export.h"
#include "mailbox.h"
#include "shmlimit_global.h"
#include "shmlimit_lease.h"
#include "sized.h"
#include "connection.h"

static uint64_t left_ns(uint64_t until_ns, uint64_t now_ns)
{
	return until_ns > now_ns ? until_ns - now_ns : 0;
}

static const struct mailbox *mailbox_of(struct shmlimit *limiter)
{
	size_t size = 0;
	void *area = shmlimit_area(limiter, &size);

	return mailbox_in(area, size);
}

EXPORT int shmlimit_global_status(struct shmlimit *limiter, struct shmlimit_global_status *out)
{
	struct shmlimit_global_status status = { .struct_size = sizeof(status) };
	uint64_t now_ns = monotonic_now_ns();
	struct mailbox_board board;
	const struct mailbox *box;

	if (limiter == NULL)
		return -EINVAL;
	box = mailbox_of(limiter);
	if (box == NULL)
		return -EROFS;
	mailbox_read_board(box, &board);
	status.serving = (uint32_t)mailbox_is_claimed(box, now_ns);
	status.waiting = mailbox_waiting(box);
	status.pid = board.pid;
	status.running_ns = status.serving && now_ns > board.started_ns ? now_ns - board.started_ns : 0;
	status.answered = board.served;
	status.failed = board.failed;
	status.late = board.late;
	status.spoiled = board.spoiled;
	status.full = board.full;
	status.misses = board.misses;
	status.unpaid = board.unpaid;
	status.round_trips_ns = board.round_trips_ns;
	memcpy(status.round_trips, board.round_trips, sizeof(status.round_trips));
	status.connections = board.connections;
	status.round_trip_ns = board.round_trip_ns;
	status.breaker_ns = left_ns(board.open_until_ns, now_ns);
	return sized_out(out, &status, sizeof(status));
}

EXPORT int shmlimit_global_server(struct shmlimit *limiter, unsigned place, struct shmlimit_global_server *out)
{
	struct shmlimit_global_server server = { .struct_size = sizeof(server) };
	struct mailbox_server there;
	struct mailbox_board board;
	const struct mailbox *box;

	if (limiter == NULL || out == NULL)
		return -EINVAL;
	box = mailbox_of(limiter);
	if (box == NULL)
		return -EROFS;
	mailbox_read_board(box, &board);
	if (!mailbox_is_claimed(box, monotonic_now_ns()) || place >= board.servers || place >= SHMLIMIT_GLOBAL_SERVERS)
		return -ESRCH;
	mailbox_read_server(box, place, &there);
	server.failing = there.failing != 0;
	server.openings = there.openings;
	memcpy(server.name, there.name, sizeof(server.name) - 1);
	return sized_out(out, &server, sizeof(server));
}

EXPORT uint64_t shmlimit_global_failures(struct shmlimit *limiter, int rule)
{
	const struct mailbox *box = limiter != NULL ? mailbox_of(limiter) : NULL;

	return box != NULL ? mailbox_failures(box, rule) : 0;
}
