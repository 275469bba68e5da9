/*
 * metrics_text.c: metrics in OpenMetrics' text format, or in the older one of
 * Prometheus, which is the only one that node_exporter's textfile collector
 * reads. They differ in the heads of counters and at the end: what would be an
 * `info` is a gauge of value 1, and there are neither state sets nor units.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <string.h>

#include "choice.h"
#include "escape.h"
#include "metrics.h"
#include "number_text.h"
#include "print.h"
#include "traits.h"

/*
 * No two names may become one label: a series that comes twice makes a file
 * worthless. Backslash and quote the format wants escaped once more.
 */
static void print_escaped(FILE *to, const char *text)
{
	char one[ESCAPE_ONE_LEN];

	for (size_t n, len = strlen(text); len > 0; text += n, len -= n) {
		n = escape_one(one, text, len, ESCAPE_BACKSLASH | ESCAPE_EXPORT);
		for (const char *c = one; *c != '\0'; c++)
			fprintf(to, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
	}
}

static void print_label(FILE *to, const char *before, const char *label, const char *text)
{
	fprintf(to, "%s%s=\"", before, label);
	print_escaped(to, text);
	putc('"', to);
}

/* A sample up to its value. `rule` and `label` may be NULL. */
static void print_series(FILE *to, const char *metric, const struct metrics_segment *segment,
                         const struct metrics_rule *rule, const char *label, const char *text)
{
	fputs(metric, to);
	print_label(to, "{", "segment", segment->name);
	if (rule != NULL)
		print_label(to, ",", "rule", rule->name);
	if (label != NULL)
		print_label(to, ",", label, text);
	fputs("} ", to);
}

static void print_head(FILE *to, const char *metric, const char *type, const char *help)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
}

/*
 * A counter's samples end in _total. In OpenMetrics its head does not; readers of the older format
 * take samples of another name for a metric without type and help.
 */
static void print_counter_head(FILE *to, const struct metrics *m, const char *family, const char *help)
{
	char metric[TEXT_LEN + sizeof("_total")];

	snprintf(metric, sizeof(metric), "%s%s", family, m->older_format ? "_total" : "");
	print_head(to, metric, "counter", help);
}

/* ---- of segments ---- */

struct segment_gauge {
	const char *metric, *help;
	uint64_t (*value)(const struct metrics_segment *segment);
};

static uint64_t value_enabled(const struct metrics_segment *s)
{
	return s->info.enabled != 0;
}

static uint64_t value_size(const struct metrics_segment *s)
{
	return s->info.size;
}

static uint64_t value_rules(const struct metrics_segment *s)
{
	return s->info.rules_used;
}

static uint64_t value_rules_max(const struct metrics_segment *s)
{
	return s->info.rules_max;
}

static uint64_t value_start(const struct metrics_segment *s)
{
	return s->info.created_unix_ns / 1000000000;
}

static const struct segment_gauge segment_gauges[] = {
	{ "shmlimit_segment_enabled", "0: switched off, every decision answers allowed.", value_enabled },
	{ "shmlimit_segment_size_bytes", "Bytes of shared memory that the segment takes.", value_size },
	{ "shmlimit_segment_rules", "Rules that are defined in the segment.", value_rules },
	{ "shmlimit_segment_rules_max", "Rules that the segment can grow to.", value_rules_max },
	{ "shmlimit_segment_start_time_seconds", "When the segment was created, in seconds since 1970.", value_start },
};

static void print_up(FILE *to, const struct metrics *m)
{
	static const char metric[] = "shmlimit_segment_up";

	print_head(to, metric, "gauge", "0: damaged, or of another version, and cannot be opened.");
	for (size_t i = 0; i < m->segments; i++) {
		print_series(to, metric, &m->segment[i], NULL, NULL, NULL);
		fprintf(to, "%d\n", m->segment[i].up);
	}
}

static void print_left_out(FILE *to, const struct metrics *m)
{
	static const char metric[] = "shmlimit_segments_left_out";

	print_head(to, metric, "gauge",
	           "Segments of which nothing is written: with a second hard link, or beyond 64 of one user.");
	fprintf(to, "%s %zu\n", metric, m->left_out);
}

static void print_segment_info(FILE *to, const struct metrics *m)
{
	static const char metric[] = "shmlimit_segment_info";

	print_head(to, metric, "gauge", "Options that the segment was created with, as labels; the value is always 1.");
	for (size_t i = 0; i < m->segments; i++) {
		const struct metrics_segment *s = &m->segment[i];

		if (!s->up)
			continue;
		fputs(metric, to);
		print_label(to, "{", "segment", s->name);
		fprintf(to, ",layout_version=\"%" PRIu32 "\"", s->info.layout_version);
		print_label(to, ",", "on_full", choice_word(choices_on_full, s->info.on_full));
		print_label(to, ",", "clock", choice_word(choices_clock, s->info.clock));
		fputs("} 1\n", to);
	}
}

static void print_segment_gauge(FILE *to, const struct metrics *m, const struct segment_gauge *gauge)
{
	print_head(to, gauge->metric, "gauge", gauge->help);
	for (size_t i = 0; i < m->segments; i++) {
		if (!m->segment[i].up)
			continue;
		print_series(to, gauge->metric, &m->segment[i], NULL, NULL, NULL);
		fprintf(to, "%" PRIu64 "\n", gauge->value(&m->segment[i]));
	}
}

static void print_slots(FILE *to, const struct metrics *m)
{
	static const char metric[] = "shmlimit_segment_slots";
	/* clang-format off */
	static const char *const states[] = {
		[SHMLIMIT_SLOT_FREE] = "free",
		[SHMLIMIT_SLOT_LIVE] = "live",
		[SHMLIMIT_SLOT_REFILLED] = "refilled",
		[SHMLIMIT_SLOT_TENTATIVE] = "tentative",
		[SHMLIMIT_SLOT_STALE] = "stale",
	};
	/* clang-format on */

	print_head(to, metric, "gauge", "Slots by state. Free, refilled and stale slots can be taken by new keys.");
	for (size_t i = 0; i < m->segments; i++)
		for (size_t state = 0; m->segment[i].up && state < sizeof(states) / sizeof(*states); state++) {
			print_series(to, metric, &m->segment[i], NULL, "state", states[state]);
			fprintf(to, "%" PRIu64 "\n", m->segment[i].states[state]);
		}
}

/* ---- of rules ---- */

static void print_rule_info(FILE *to, const struct metrics_segment *segment, const struct metrics_rule *rule)
{
	fputs("shmlimit_rule_info", to);
	print_label(to, "{", "segment", segment->name);
	print_label(to, ",", "rule", rule->name);
	print_label(to, ",", "algorithm", choice_word(choices_algorithm(), rule->rule.algorithm));
	print_label(to, ",", "mode", choice_word(choices_mode, rule->rule.mode));
	fputs("} 1\n", to);
}

/* A rule whose limits come with the calls. */
static int has_no_limit(const struct metrics_rule *rule)
{
	return rule->rule.capacity == 0;
}

static void print_capacity(FILE *to, const struct metrics_segment *segment, const struct metrics_rule *rule)
{
	if (has_no_limit(rule))
		return;
	print_series(to, "shmlimit_rule_capacity_tokens", segment, rule, NULL, NULL);
	fprintf(to, "%" PRIu64 "\n", rule->rule.capacity);
}

static void print_rate(FILE *to, const struct metrics_segment *segment, const struct metrics_rule *rule)
{
	uint64_t count = rule->rule.refill != 0 ? rule->rule.refill : rule->rule.capacity;

	if (has_no_limit(rule))
		return;
	print_series(to, "shmlimit_rule_rate_tokens_per_second", segment, rule, NULL, NULL);
	fprintf(to, "%.17g\n", (double)count / (double)rule->rule.period_ns * 1e9);
}

static void print_refused(FILE *to, const struct metrics_segment *segment, const struct metrics_rule *rule)
{
	print_series(to, "shmlimit_rule_change_refused_timestamp_seconds", segment, rule, NULL, NULL);
	fprintf(to, "%.17g\n", (double)rule->rule.refused_unix_ns / 1e9);
}

static void print_places(FILE *to, const struct metrics_segment *segment, const struct metrics_rule *rule)
{
	if (rule->busiest.number == 0)
		return;
	print_series(to, "shmlimit_rule_places", segment, rule, NULL, NULL);
	fprintf(to, "%" PRIu32 "\n", rule->busiest.number);
}

static void print_base(FILE *to, const struct metrics_segment *segment, const struct metrics_rule *rule)
{
	if (rule->busiest.base_ns == 0)
		return;
	print_series(to, "shmlimit_rule_places_base_seconds", segment, rule, NULL, NULL);
	fprintf(to, "%.17g\n", (double)rule->busiest.base_ns / 1e9);
}

static void print_waiting(FILE *to, const struct metrics_segment *segment, const struct metrics_rule *rule)
{
	if (rule->busiest.number == 0)
		return;
	print_series(to, "shmlimit_rule_places_waiting", segment, rule, NULL, NULL);
	fprintf(to, "%.3f\n", (double)rule->busiest.queue_milli / 1e3);
}

static const struct {
	const char *metric, *help;
	void (*print)(FILE *to, const struct metrics_segment *segment, const struct metrics_rule *rule);
} rule_gauges[] = {
	{ "shmlimit_rule_info", "Algorithm and mode of the rule, as labels; the value is always 1.", print_rule_info },
	{ "shmlimit_rule_capacity_tokens", "Capacity of the rule: its largest burst, in tokens.", print_capacity },
	{ "shmlimit_rule_rate_tokens_per_second", "Tokens that come back in a second.", print_rate },
	{ "shmlimit_rule_change_refused_timestamp_seconds",
	  "When a program was refused another limit for the rule, whose old one is in force; 0: the last change succeeded.",
	  print_refused },
	{ "shmlimit_rule_places",
	  "Places there are now under a rule that finds their number; of many keys, of the one that holds most.",
	  print_places },
	{ "shmlimit_rule_places_base_seconds",
	  "How long a place of that key is held where nothing waits, once that is known.", print_base },
	{ "shmlimit_rule_places_waiting",
	  "How many of the requests that hold one of that key's places wait, by the times of the last window.",
	  print_waiting },
};

static void print_rule_gauges(FILE *to, const struct metrics *m, size_t gauge)
{
	print_head(to, rule_gauges[gauge].metric, "gauge", rule_gauges[gauge].help);
	for (size_t i = 0; i < m->segments; i++)
		for (size_t r = 0; r < m->segment[i].rules; r++)
			rule_gauges[gauge].print(to, &m->segment[i], &m->segment[i].rule[r]);
}

/* ---- counters, of segments and of rules ---- */

/* Those of one metric stand one behind the other. */
static const struct counter {
	const char *metric, *answer, *help;
	size_t offset;
} counters[] = {
	/* clang-format off */
	{ "decisions", "allowed", "Decisions by answer; shadow_denied counts those that a dry run allowed and enforcement would have denied.",
	  offsetof(struct shmlimit_counters, allowed) },
	{ "decisions", "denied", NULL, offsetof(struct shmlimit_counters, denied) },
	{ "decisions", "shadow_denied", NULL, offsetof(struct shmlimit_counters, shadow_denied) },
	{ "claims", NULL, "Slots taken for a key that had no slot.", offsetof(struct shmlimit_counters, claims) },
	{ "reclaims", NULL, "Slots taken from a key whose funnel had refilled.",
	  offsetof(struct shmlimit_counters, reclaims) },
	{ "evictions", NULL, "Slots taken from a key whose funnel had not refilled: that key gets more than its limit.",
	  offsetof(struct shmlimit_counters, evictions) },
	{ "no_slot", NULL, "Decisions made without a slot.", offsetof(struct shmlimit_counters, no_slot) },
	{ "failed_cas", NULL, "Updates that were tried again because another process updated the slot first.",
	  offsetof(struct shmlimit_counters, failed_cas) },
	/* clang-format on */
};

#define COUNTERS (sizeof(counters) / sizeof(*counters))

static void print_counter(FILE *to, const char *scope, const struct counter *counter,
                          const struct metrics_segment *segment, const struct metrics_rule *rule)
{
	const struct shmlimit_counters *from = rule != NULL ? &rule->counters : &segment->counters;
	const char *at = (const char *)from + counter->offset;
	char metric[TEXT_LEN];

	snprintf(metric, sizeof(metric), "shmlimit_%s_%s_total", scope, counter->metric);
	print_series(to, metric, segment, rule, counter->answer != NULL ? "answer" : NULL, counter->answer);
	fprintf(to, "%" PRIu64 "\n", *(const uint64_t *)(const void *)at);
}

static void print_counters(FILE *to, const struct metrics *m, int of_rules)
{
	const char *scope = of_rules ? "rule" : "segment";
	char family[TEXT_LEN];

	for (size_t c = 0; c < COUNTERS; c++) {
		snprintf(family, sizeof(family), "shmlimit_%s_%s", scope, counters[c].metric);
		if (counters[c].help != NULL)
			print_counter_head(to, m, family, counters[c].help);
		for (size_t i = 0; i < m->segments; i++) {
			const struct metrics_segment *segment = &m->segment[i];

			if (segment->up && !of_rules)
				print_counter(to, scope, &counters[c], segment, NULL);
			for (size_t r = 0; r < segment->rules && of_rules; r++)
				print_counter(to, scope, &counters[c], segment, &segment->rule[r]);
		}
	}
}

/* ---- of leases ---- */

static const struct lease_counter {
	const char *metric, *state, *help;
	size_t offset;
} lease_counters[] = {
	/* clang-format off */
	{ "leases", NULL, "Leases of tokens from the backend that were deposited.",
	  offsetof(struct shmlimit_lease_counters, leases) },
	{ "lease_tokens", "leased", "Leased tokens by what became of them: leased, spent, or expired unspent (expired).",
	  offsetof(struct shmlimit_lease_counters, leased) },
	{ "lease_tokens", "spent", NULL, offsetof(struct shmlimit_lease_counters, spent) },
	{ "lease_tokens", "expired", NULL, offsetof(struct shmlimit_lease_counters, expired) },
	{ "lease_known_denials", NULL, "Denials that were answered on this host without a call to the backend.",
	  offsetof(struct shmlimit_lease_counters, denied) },
	{ "lease_backend_errors", NULL, "Calls to the backend that failed.",
	  offsetof(struct shmlimit_lease_counters, backend_errors) },
	{ "lease_breaker_openings", NULL, "Times that the circuit breaker opened: the backend was not called for a while.",
	  offsetof(struct shmlimit_lease_counters, breaker_openings) },
	/* clang-format on */
};

static void print_lease_counters(FILE *to, const struct metrics *m)
{
	char metric[TEXT_LEN];

	for (size_t c = 0; c < sizeof(lease_counters) / sizeof(*lease_counters); c++) {
		const struct lease_counter *counter = &lease_counters[c];

		snprintf(metric, sizeof(metric), "shmlimit_segment_%s", counter->metric);
		if (counter->help != NULL)
			print_counter_head(to, m, metric, counter->help);
		strcat(metric, "_total");
		for (size_t i = 0; i < m->segments; i++) {
			const char *at = (const char *)&m->segment[i].leases + counter->offset;

			if (!m->segment[i].up)
				continue;
			print_series(to, metric, &m->segment[i], NULL, counter->state != NULL ? "state" : NULL,
			             counter->state);
			fprintf(to, "%" PRIu64 "\n", *(const uint64_t *)(const void *)at);
		}
	}
}

/* ---- of agents ---- */

static uint64_t value_serving(const struct shmlimit_global_status *s)
{
	return s->serving;
}

static uint64_t value_waiting(const struct shmlimit_global_status *s)
{
	return s->waiting;
}

/* What the last agent said of its connections is over when there is none. */
static uint64_t value_connections(const struct shmlimit_global_status *s)
{
	return s->serving ? s->connections : 0;
}

static uint64_t value_breaker(const struct shmlimit_global_status *s)
{
	return s->serving && s->breaker_ns != 0;
}

static uint64_t value_answered(const struct shmlimit_global_status *s)
{
	return s->answered;
}

static uint64_t value_failed(const struct shmlimit_global_status *s)
{
	return s->failed;
}

static uint64_t value_late(const struct shmlimit_global_status *s)
{
	return s->late;
}

static uint64_t value_spoiled(const struct shmlimit_global_status *s)
{
	return s->spoiled;
}

static uint64_t value_full(const struct shmlimit_global_status *s)
{
	return s->full;
}

static uint64_t value_misses(const struct shmlimit_global_status *s)
{
	return s->misses;
}

static uint64_t value_unpaid(const struct shmlimit_global_status *s)
{
	return s->unpaid;
}

static const struct agent_metric {
	const char *family, *suffix, *help;
	uint64_t (*value)(const struct shmlimit_global_status *agent);
} agent_metrics[] = {
	/* clang-format off */
	{ "serving", "", "1: an agent asks the backend for all processes; 0: each process asks by itself.", value_serving },
	{ "waiting_requests", "", "Requests that wait for the agent now.", value_waiting },
	{ "connections", "", "Connections of the agent to backend servers.", value_connections },
	{ "breaker_open", "", "1: the server of the agent's URL fails, and is not asked.", value_breaker },
	{ "answered", "_total", "Requests that agents answered from the backend's reply.", value_answered },
	{ "failed", "_total", "Requests that agents could not ask the backend for: on_failure decided.", value_failed },
	{ "late", "_total", "Answers for which the process no longer waited.", value_late },
	{ "spoiled", "_total", "Requests that were made again because another process overwrote them.", value_spoiled },
	{ "full", "_total", "Times that a request found no room, and was made again later.", value_full },
	{ "misses", "_total", "Requests that came to an agent because the host's lease did not suffice.", value_misses },
	{ "unpaid_tokens", "_total", "Tokens of rules' credit that the backend did not give.", value_unpaid },
	/* clang-format on */
};

static void print_agents(FILE *to, const struct metrics *m, const struct agent_metric *metric)
{
	char name[TEXT_LEN];

	snprintf(name, sizeof(name), "shmlimit_agent_%s", metric->family);
	if (*metric->suffix != '\0')
		print_counter_head(to, m, name, metric->help);
	else
		print_head(to, name, "gauge", metric->help);
	strcat(name, metric->suffix);
	for (size_t i = 0; i < m->segments; i++) {
		if (!m->segment[i].agent_known)
			continue;
		print_series(to, name, &m->segment[i], NULL, NULL, NULL);
		fprintf(to, "%" PRIu64 "\n", metric->value(&m->segment[i].agent));
	}
}

/* A histogram's buckets count all that is not longer than their bound. */
static void print_round_trips_of(FILE *to, const struct metrics_segment *segment)
{
	static const char metric[] = "shmlimit_agent_round_trip_seconds";
	const struct shmlimit_global_status *agent = &segment->agent;
	uint64_t n = 0;
	char series[TEXT_LEN], bound[TEXT_LEN];

	snprintf(series, sizeof(series), "%s_bucket", metric);
	for (int i = 0; i < SHMLIMIT_GLOBAL_ROUND_TRIPS; i++) {
		n += agent->round_trips[i];
		snprintf(bound, sizeof(bound), "%.4f", 1e-4 * (double)(1u << i));
		print_series(to, series, segment, NULL, "le", i < SHMLIMIT_GLOBAL_ROUND_TRIPS - 1 ? bound : "+Inf");
		fprintf(to, "%" PRIu64 "\n", n);
	}
	snprintf(series, sizeof(series), "%s_sum", metric);
	print_series(to, series, segment, NULL, NULL, NULL);
	fprintf(to, "%.9f\n", (double)agent->round_trips_ns * 1e-9);
	snprintf(series, sizeof(series), "%s_count", metric);
	print_series(to, series, segment, NULL, NULL, NULL);
	fprintf(to, "%" PRIu64 "\n", n);
}

static void print_round_trips(FILE *to, const struct metrics *m)
{
	print_head(to, "shmlimit_agent_round_trip_seconds", "histogram",
	           "Times that the backend's answers to agents took.");
	for (size_t i = 0; i < m->segments; i++)
		if (m->segment[i].agent_known)
			print_round_trips_of(to, &m->segment[i]);
}

static void print_servers(FILE *to, const struct metrics *m, int openings)
{
	const char *metric =
		openings ? "shmlimit_agent_server_breaker_openings_total" : "shmlimit_agent_server_failing";

	if (openings)
		print_counter_head(to, m, "shmlimit_agent_server_breaker_openings",
		                   "Times that the circuit breaker of a server opened under this agent.");
	else
		print_head(to, metric, "gauge", "1: the agent does not ask this server now, since it failed.");
	for (size_t i = 0; i < m->segments; i++)
		for (unsigned s = 0; s < m->segment[i].servers; s++) {
			const struct shmlimit_global_server *server = &m->segment[i].server[s];

			print_series(to, metric, &m->segment[i], NULL, "server", server->name);
			fprintf(to, "%" PRIu64 "\n", openings ? server->openings : server->failing);
		}
}

/* Only rules of leases ask a backend. */
static void print_failures(FILE *to, const struct metrics *m)
{
	static const char family[] = "shmlimit_rule_on_failure_requests",
			  metric[] = "shmlimit_rule_on_failure_requests_total";

	print_counter_head(to, m, family, "Requests that on_failure decided because the backend did not answer.");
	for (size_t i = 0; i < m->segments; i++)
		for (size_t r = 0; r < m->segment[i].rules && m->segment[i].agent_known; r++) {
			const struct metrics_rule *rule = &m->segment[i].rule[r];

			if (!traits_of(rule->rule.algorithm)->is_shared)
				continue;
			print_series(to, metric, &m->segment[i], rule, NULL, NULL);
			fprintf(to, "%" PRIu64 "\n", rule->failures);
		}
}

/* ---- of servers ---- */

static void print_undecided(FILE *to, const struct metrics *m)
{
	static const char family[] = "shmlimit_segment_undecided_requests",
			  metric[] = "shmlimit_segment_undecided_requests_total";

	print_counter_head(to, m, family,
	                   "Requests that servers let pass or refused because the limiter could not decide.");
	for (size_t i = 0; i < m->segments; i++) {
		const struct metrics_segment *s = &m->segment[i];

		if (!s->up)
			continue;
		print_series(to, metric, s, NULL, "outcome", "passed");
		fprintf(to, "%" PRIu64 "\n", s->info.undecided_passed);
		print_series(to, metric, s, NULL, "outcome", "refused");
		fprintf(to, "%" PRIu64 "\n", s->info.undecided_refused);
	}
}

void metrics_text(FILE *to, const struct metrics *m)
{
	if (m->of_host)
		print_left_out(to, m);
	print_up(to, m);
	print_segment_info(to, m);
	for (size_t i = 0; i < sizeof(segment_gauges) / sizeof(*segment_gauges); i++)
		print_segment_gauge(to, m, &segment_gauges[i]);
	print_slots(to, m);
	print_counters(to, m, 0);
	print_lease_counters(to, m);
	for (size_t i = 0; i < sizeof(agent_metrics) / sizeof(*agent_metrics); i++)
		print_agents(to, m, &agent_metrics[i]);
	print_round_trips(to, m);
	print_servers(to, m, 0);
	print_servers(to, m, 1);
	print_failures(to, m);
	print_undecided(to, m);
	for (size_t i = 0; i < sizeof(rule_gauges) / sizeof(*rule_gauges); i++)
		print_rule_gauges(to, m, i);
	print_counters(to, m, 1);
	if (!m->older_format)
		fputs("# EOF\n", to);
}
