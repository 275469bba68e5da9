/*
 * server: what the agent of a host says of one of its servers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "connection.h"
#include "export.h"
#include "mailbox.h"
#include "sized.h"

EXPORT int shmlimit_global_server(struct shmlimit *limiter, unsigned place, struct shmlimit_global_server *out)
{
	struct shmlimit_global_server server = { .struct_size = sizeof(server) };
	struct request_server there;
	struct request_board board;
	const struct requests *q;
	size_t size = 0;
	void *area;

	if (limiter == NULL || out == NULL)
		return -EINVAL;
	area = shmlimit_area(limiter, &size);
	q = requests_in(area, size);
	if (q == NULL)
		return -EROFS;
	requests_read_board(q, &board);
	if (!requests_are_claimed(q, monotonic_now_ns()) || place >= board.servers || place >= SHMLIMIT_GLOBAL_SERVERS)
		return -ESRCH;
	requests_read_server(q, place, &there);
	server.failing = there.failing != 0;
	server.openings = there.openings;
	memcpy(server.name, there.name, sizeof(server.name) - 1);
	return sized_out(out, &server, sizeof(server));
}
