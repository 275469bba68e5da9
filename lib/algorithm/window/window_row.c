/*
 * window_row: WINDOW's row. What operations do with a key's window, its word and
 * its log; the arithmetic is window.h's, the log's protocol ring.h's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "window_row.h"

#include "algorithm.h"
#include "window.h"

/*
 * Nanoseconds until `tokens`, 1 to the capacity, fit after `more` others were
 * admitted now: when the token that has capacity - tokens newer ones has left.
 */
static uint64_t wait_for(const struct look *k, const struct ring *ring, uint64_t tokens, uint64_t more)
{
	uint64_t newer = k->params->capacity - tokens;
	uint64_t latest_ns = more == 0 ? ring->w.last_ns : ring_latest_ns(k, ring, 0);

	if (newer < more)
		return window_wait(k->params, latest_ns, k->at.now_ns);
	newer -= more;
	if (newer >= ring->valid)
		return 0;
	return window_wait(k->params, ring_time_before(k, ring, newer, latest_ns), k->at.now_ns);
}

/*
 * From when on admissions may be another process's, after what is to be taken back: from the
 * refund's time. Where that is within a tick, an admission of the tick may be earlier or later.
 * take_all takes the later time for it, since it gives back what it took itself, at or after that
 * time. Any other refund takes the earlier time. WHY NOT the later one: a reservation that is taken
 * back would leave its own late time to a take that was before it in the tick.
 */
static uint64_t others_since_ns(const struct look *k, const struct request *q)
{
	uint64_t begin_ns = window_tick_begin(k->params, q->when.ns);

	return q->taken != NULL || q->when.ns == begin_ns ? begin_ns : window_end_of_tick(k->params, begin_ns) + 1;
}

/*
 * Take the newest tokens back; ring_level() makes it right that it is they, where
 * what is given back was taken since the call's time, as take_all does.
 */
static void take_back(const struct look *k, const struct ring *ring, uint64_t tokens, uint64_t since_ns,
                      struct window *after)
{
	uint64_t ns;

	*after = ring_empty(k->params, k->at.now_ns).w;
	if (ring_used(k, ring, tokens) == 0)
		return;
	ns = ring_time(k, ring, tokens);
	after->n = window_withdraw(ring->w.n, tokens, window_cells(k->params));
	after->last_ns = (int64_t)(ns - since_ns) >= 0 ? ring->w.last_ns : ns;
}

/* Take, peek, reserve. Returns how many tokens are to be recorded. */
static uint64_t window_ask(const struct look *k, const struct ring *ring, const struct request *q, struct verdict *v)
{
	const struct layout_params *params = k->params;
	int count_refused = (params_flags(params) & SHMLIMIT_RULE_COUNT_REFUSED) != 0 && q->op != OP_PEEK;
	uint64_t limit_ns = 0, wait_ns;

	if (q->amount == 0)
		return 0;
	if (q->op == OP_RESERVE)
		limit_ns = q->max_wait_ns < params->max_wait_ns ? q->max_wait_ns : params->max_wait_ns;
	if (q->amount > params->capacity) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = FUNNEL_NEVER;
		return count_refused ? params->capacity : 0;
	}
	wait_ns = wait_for(k, ring, q->amount, 0);
	if (wait_ns <= limit_ns) {
		v->wait_ns = wait_ns;
		return q->op == OP_PEEK ? 0 : q->amount;
	}
	v->answer = SHMLIMIT_DENIED;
	v->retry_after_ns = wait_ns - limit_ns;
	if (!count_refused)
		return 0;
	v->retry_after_ns = wait_for(k, ring, q->amount, q->amount);
	return q->amount;
}

void window_report(const struct look *k, const struct request *q, const struct window_balance *b, uint64_t recorded,
                   struct verdict *v, struct shmlimit_result *r)
{
	uint64_t capacity = k->params->capacity;
	uint64_t used = ring_used(k, &b->ring, q->op == OP_REFUND ? q->amount : 0);

	if (q->op == OP_CHARGE && q->amount > (used < capacity ? capacity - used : 0))
		v->retry_after_ns = FUNNEL_NEVER;
	used = used + recorded < capacity ? used + recorded : capacity;
	*r = (struct shmlimit_result){
		.limit = capacity,
		.remaining = capacity - used,
		.wait_ns = v->wait_ns,
		.retry_after_ns = v->retry_after_ns,
		.reset_after_ns = used == 0 ? 0 : window_wait(k->params, b->after.last_ns, k->at.now_ns),
	};
}

static void window_row_none(const struct look *k, struct balance *b)
{
	b->window.ring = ring_empty(k->params, k->at.now_ns);
	b->stepped = b->doubtful = 0;
	b->was_empty = 1;
}

static void window_row_read(const struct look *k, uint64_t word, struct balance *b)
{
	struct ring *ring = &b->window.ring;

	*ring = ring_read(k, word);
	b->stepped = ring->stepped;
	b->doubtful = ring->stepped || !ring->complete;
	b->was_empty = ring->valid == 0;
}

__attribute__((flatten)) static void window_row_apply(const struct look *k, const struct request *q, struct balance *b,
                                                      struct verdict *v, struct shmlimit_result *r)
{
	const struct layout_params *params = k->params;
	const struct ring *before = &b->window.ring;
	struct window *after = &b->window.after;
	uint64_t tokens = 0;

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	switch (q->op) {
	case OP_TAKE:
	case OP_PEEK:
	case OP_RESERVE:
		tokens = window_ask(k, before, q, v);
		break;
	case OP_CHARGE:
		tokens = q->amount < params->capacity ? q->amount : params->capacity;
		break;
	case OP_REFUND:
		/*
		 * What was taken a period ago or earlier has left the window: none of what is there
		 * is the caller's.
		 */
		v->changed = q->amount != 0 && before->valid != 0 &&
		             window_wait(params, before->w.last_ns, k->at.now_ns) != 0 &&
		             window_wait(params, q->when.ns, k->at.now_ns) != 0;
		if (v->changed)
			take_back(k, before, q->amount, others_since_ns(k, q), after);
		break;
	default:
		break; /* it has no others */
	}
	/* A record that was scribbled over may have a capacity beyond all rings. */
	if (tokens > params_tokens(params))
		tokens = params_tokens(params);
	if (tokens != 0) {
		*after = ring_admit(k, before, tokens, v->wait_ns);
		v->changed = 1;
	} else if (!v->changed) {
		*after = before->w;
	}
	v->word = window_pack(params, *after);
	if (r != NULL)
		window_report(k, q, &b->window, tokens, v, r);
}

static uint64_t window_row_fit(const struct look *k, const struct request *q, const struct balance *b)
{
	uint64_t used = ring_used(k, &b->window.ring, 0);

	(void)q;
	return used < k->params->capacity ? k->params->capacity - used : 0;
}

static uint64_t window_row_wait(const struct look *k, const struct balance *b)
{
	return b->window.ring.valid == 0 ? 0 : window_wait(k->params, b->window.ring.w.last_ns, k->at.now_ns);
}

static uint64_t window_row_idle_ns(const struct look *k, uint64_t word)
{
	uint64_t age = k->at.now_ns - window_unpack(k->params, word, k->at.now_ns).last_ns;

	return (int64_t)age < 0 ? 0 : age;
}

static uint64_t window_row_convert(const struct look *k, uint64_t word, const struct layout_params *to)
{
	/* The cells stay as they are. */
	struct ring ring = ring_read(k, word);

	/* An admission that left the window long ago has no time that the word could tell. */
	if (window_wait(to, ring.w.last_ns, k->at.now_ns) == 0)
		ring = ring_empty(k->params, k->at.now_ns);
	return window_pack(to, ring.w);
}

static const char *window_row_fault(const struct layout_params *params, uint64_t word)
{
	uint64_t low = word & (((uint64_t)1 << params_quota_bits(params)) - 1), cells = window_cells(params);
	uint64_t n = low & (((uint64_t)1 << params_cell_bits(params)) - 1);

	if (n >= 2 * cells)
		return "a place beyond its ring";
	if (low >> params_cell_bits(params) >= params_tokens(params) ||
	    (n < cells && low >> params_cell_bits(params) >= n && n != 0))
		return "more tokens taken last than its ring holds";
	return NULL;
}

static const char *window_row_mend(const struct layout_params *params, uint64_t word, uint64_t *mended)
{
	uint64_t mask = ((uint64_t)1 << params_quota_bits(params)) - 1;
	/* The time is kept as it is, and so is where the ring ends, if it does. */
	struct window w = window_unpack(params, word, 0);

	if (w.n != 0 && w.n < window_cells(params) && w.k > w.n)
		w.k = w.n;
	*mended = (word & ~mask) | (w.k - 1) << params_cell_bits(params) | w.n;
	return "set to what its ring holds, as it counted";
}

static void window_row_show(const struct look *k, const struct balance *b, struct shmlimit_slot *out)
{
	const struct ring *ring = &b->window.ring;

	out->remaining = k->params->capacity - ring_used(k, ring, 0);
	if (ring->valid == 0)
		return;
	out->reset_after_ns = window_wait(k->params, ring->w.last_ns, k->at.now_ns);
	if ((int64_t)(ring->w.last_ns - k->at.now_ns) > 0)
		out->debt_ns = ring->w.last_ns - k->at.now_ns;
}

static int window_row_before_swap(const struct look *k, const struct request *q, struct slot_seen seen,
                                  const struct balance *b)
{
	const struct ring *ring = &b->window.ring;

	/* A complete one of one token has nothing missing. */
	if (ring->valid != 0 && (!ring->complete || ring->w.k > 1))
		ring_complete(k, seen, &ring->w, 0);
	if (q->op == OP_REFUND)
		ring_level(k, seen, ring, others_since_ns(k, q));
	return 1;
}

static void window_row_after_swap(const struct look *k, struct slot_seen mine, const struct balance *b)
{
	ring_complete(k, mine, &b->window.after, 1);
}

static void window_row_converted(const struct look *k, struct slot_seen mine)
{
	/*
	 * The word tells a time of some periods only, so an admission of long ago would seem to be
	 * of now.
	 */
	ring_complete_word(k, mine);
}

static const struct algorithm_cells window_cells_row = {
	.is_log = 1,
	.before_swap = window_row_before_swap,
	.after_swap = window_row_after_swap,
	.converted = window_row_converted,
	.migrate = ring_migrate,
};

const struct algorithm algorithm_window = {
	.traits = &traits_window,
	.cells = &window_cells_row,
	.operations = OPERATIONS_COMMON,
	.compile = window_compile,
	.range = window_range,
	.none = window_row_none,
	.read = window_row_read,
	.apply = window_row_apply,
	.fit = window_row_fit,
	.wait = window_row_wait,
	.idle_ns = window_row_idle_ns,
	.convert = window_row_convert,
	.fault = window_row_fault,
	.mend = window_row_mend,
	.show = window_row_show,
};
