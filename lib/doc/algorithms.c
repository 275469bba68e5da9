/*
 * algorithms.c: draws algorithms.svg. The library itself decides; only the times are given. A test
 * runs it:
 *
 *	cc lib/doc/algorithms.c -Iinclude -Lbuild -lshmlimit -o draw
 *	./draw >lib/doc/algorithms.svg
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <shmlimit.h>
#include <stdio.h>
#include <unistd.h>

#define SECOND 1000000000ull
#define STEP (SECOND / 2) /* a request every half second, except in two pauses */
#define STEPS 81
#define LEFT 40
#define ROW 92
#define STEP_WIDTH 9

struct row {
	const char *name, *limit;
	struct shmlimit_rule rule;
};

/* clang-format off */
static const struct row rows[] = {
	{ "funnel", "--capacity 10 --rate 10/10s", { .capacity = 10, .refill = 10, .period_ns = 10 * SECOND } },
	{ "window", "--rate 10/10s", { .algorithm = SHMLIMIT_WINDOW, .capacity = 10, .period_ns = 10 * SECOND } },
	{ "counter", "--capacity 10 --period 10s",
	  { .algorithm = SHMLIMIT_COUNTER, .capacity = 10, .period_ns = 10 * SECOND } },
	{ "warmup", "--rate 10/10s --warmup 10s",
	  { .algorithm = SHMLIMIT_WARMUP, .refill = 10, .period_ns = 10 * SECOND, .warmup_ns = 10 * SECOND } },
};
/* clang-format on */

static const char style[] = "<style>\n"
			    "\tsvg { font: 14px system-ui, sans-serif; }\n"
			    "\ttext { fill: #1f2328; }\n"
			    "\t.paper { fill: #ffffff; }\n"
			    "\t.small { font-size: 12px; fill: #59636e; }\n"
			    "\t.name { font-weight: 600; }\n"
			    "\t.mono { font-family: ui-monospace, monospace; }\n"
			    "\t.line { stroke: #afb8c1; }\n"
			    "\t.yes { fill: #0969da; }\n"
			    "\t.no { fill: none; stroke: #afb8c1; }\n"
			    "\t@media (prefers-color-scheme: dark) {\n"
			    "\t\ttext { fill: #e6edf3; }\n"
			    "\t\t.paper { fill: #0d1117; }\n"
			    "\t\t.small { fill: #9198a1; }\n"
			    "\t\t.line { stroke: #3d444d; }\n"
			    "\t\t.yes { fill: #58a6ff; }\n"
			    "\t\t.no { stroke: #656c76; }\n"
			    "\t}\n"
			    "</style>\n";

/*
 * Draws a filled bar for each allowed request and an outlined one for each denied request. Returns
 * how many were allowed.
 */
static int draw(struct shmlimit *l, const struct row *row, int y)
{
	struct shmlimit_rule rule = row->rule;
	int allowed = 0;

	rule.struct_size = sizeof(rule);
	int id = shmlimit_rule_set(l, row->name, &rule);
	if (id < 0)
		return id;
	for (int i = 0; i < STEPS; i++) {
		if ((i > 0 && i < 12) || (i > 36 && i < 54))
			continue;
		shmlimit_set_time(l, &(uint64_t){ SECOND + (unsigned)i * STEP });
		int answer = shmlimit_take(l, id, "user:42", 7, 1, NULL);
		if (answer < 0)
			return answer;
		allowed += answer == SHMLIMIT_ALLOWED;
		printf("<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"6\" height=\"%d\"/>\n", answer ? "no" : "yes",
		       LEFT + i * STEP_WIDTH - 3, answer ? y + 42 : y + 22, answer ? 10 : 30);
	}
	return allowed;
}

int main(void)
{
	char name[32];
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16 };
	const int count = sizeof(rows) / sizeof(*rows), width = LEFT * 2 + (STEPS - 1) * STEP_WIDTH,
		  height = count * ROW + 50;
	struct shmlimit *l;

	snprintf(name, sizeof(name), "algorithms.%ld", (long)getpid());
	int error = shmlimit_create(name, &options, &l);
	printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\""
	       " aria-labelledby=\"title\">\n<title id=\"title\">One request, and two phases of two requests a second:"
	       " what each algorithm allows</title>\n<!-- SPDX-License-Identifier: BSD-2-Clause -->\n%s"
	       "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n",
	       width, height, width, height, style, width, height);
	for (int i = 0; i < count && error == 0; i++) {
		int y = i * ROW + 10, allowed = draw(l, &rows[i], y);
		if (allowed < 0)
			error = allowed;
		printf("<text class=\"name\" x=\"%d\" y=\"%d\">%s <tspan class=\"small mono\">%s</tspan></text>\n"
		       "<text class=\"small\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%d allowed</text>\n"
		       "<path class=\"line\" d=\"M%d %dH%d\"/>\n",
		       LEFT - 3, y + 12, rows[i].name, rows[i].limit, width - LEFT, y + 12, allowed, LEFT - 3, y + 52,
		       width - LEFT + 3);
		for (int t = 0; t <= (STEPS - 1) / 2; t += 10)
			printf("<text class=\"small\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d s</text>\n",
			       LEFT + t * 2 * STEP_WIDTH, y + 68, t);
	}
	printf("<text class=\"small\" x=\"%d\" y=\"%d\">Filled: allowed. Outlined: denied. Each has the same limit: 10 requests in"
	       " 10 seconds.</text>\n</svg>\n",
	       LEFT - 3, height - 18);
	shmlimit_destroy(name);
	return error != 0;
}
