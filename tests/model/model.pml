/*
 * model: what this folder's models share.
 *
 * A step is one access to shared memory and what the process computes from it. With SOLO a model has `stopped`: 1 + the
 * only process that still runs, or 0.
 */

/* Counted outside of the states, and printed: a search without these proves nothing. */
c_decl { static long event_count[40]; };
#define EVENT(n, name)	c_code { if (event_count[n]++ == 0) printf("event: " name "\n"); }

/* -DONLY=n: the only law that is asserted, to see that a variant breaks just that one. */
#ifdef ONLY
#define law(n, expression)	assert(ONLY != n || (expression))
#else
#define law(n, expression)	assert(expression)
#endif

#define my	proc[_pid]
#ifdef SOLO
#define RUNS	(stopped == 0 || stopped == _pid + 1)
#else
#define RUNS	true
#endif
#define STEP(which)	d_step { next == which && RUNS ->
#define BRANCHING_STEP(which)	atomic { next == which && RUNS ->
