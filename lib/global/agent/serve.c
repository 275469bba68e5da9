/*
 * serve: runs the agent of a host until proceed() returns 0.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "agent.h"
#include "export.h"
#include "pool.h"

static int serve(struct shmlimit_global *g, int (*proceed)(void *arg, int serving), void *arg)
{
	struct agent *agent;
	int error, serving = 0;

	if (g->mailbox == NULL)
		return -EROFS;
	error = mailbox_prepare(g->mailbox);
	if (error != 0)
		return error;
	agent = agent_new(g);
	if (agent == NULL)
		return -ENOMEM;
	while (proceed(arg, serving))
		serving = agent_turn(agent);
	agent_free(agent);
	return 0;
}

EXPORT int shmlimit_global_serve(struct shmlimit_global *g, int (*proceed)(void *arg, int serving), void *arg)
{
	struct shmlimit_global *mine;
	int answer;

	if (g == NULL || proceed == NULL)
		return -EINVAL;
	mine = pool_borrow(g, &answer);
	if (mine == NULL)
		return answer;
	answer = serve(mine, proceed, arg);
	pool_return(mine);
	return answer;
}
