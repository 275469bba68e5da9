/*
 * spec: parses the text that describes a gate.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_SPEC_H
#define SHMLIMIT_GATE_SPEC_H

#include "shmlimit_gate.h"

/*
 * The longest debt that a rule can allow, and the shortest that charges may make where charge_max=
 * says nothing.
 */
#define DEBT_MAX_NS (UINT64_C(366) * 86400 * 1000000000)
#define DEBT_DEFAULT_NS (UINT64_C(3600) * 1000000000)

/* A rule that one or more limits name. */
struct spec_rule {
	const char *name;
	int has_rate; /* create=yes sets the rule to this rate: */
	struct shmlimit_rule rate;
	int taken, peeked;      /* a limit takes from it; a limit peeks at it */
	int local;              /* a limit says that it is this host's */
	int gcra;               /* a limit says that requests bring theirs */
	int estimated;          /* a limit has an estimate */
	int follows;            /* its rate is that of the limit before it, which it has a share of */
	uint64_t delay_ns;      /* the longest of its limits */
	uint64_t charge_max_ns; /* likewise; 0: none has one */
};

struct spec_limit {
	size_t rule;   /* its place among the rules */
	size_t offset; /* of its rule= in the text */
	uint64_t cost;
	int by_net; /* keys are addresses, and are reduced to their net */
	unsigned prefix_v4, prefix_v6;
	int nth; /* which address of a list; 0: none was given, which is the last */
	int dry_run;
	int peek;        /* deny as a take would, and take nothing */
	int plain;       /* no peek, dry_run or delay= */
	int denied_only; /* fields go to refused requests only */
	uint32_t status;
	uint32_t jitter_percent; /* Retry-After is longer by up to this */
	uint32_t algorithm;      /* of a rule that is created, as its flags */
	uint32_t flags;
	int has_algorithm; /* there is an algorithm= */
	int local;         /* with backend=: this host's limit all the same */
	const char *rate;  /* the text of rate=, or NULL */
	/*
	 * what decides where the limit of a request cannot be read; without it the rule's own limit
	 */
	struct shmlimit_limit rate_error;
	int has_rate_error;
	int estimated;       /* the cost is an estimate: shmlimit_gate_settle() says what it was */
	const char *denials; /* the COUNTER rule that counts what this limit denies, or NULL */
	uint64_t delay_ns;   /* a request that must wait, waits this long at most; 0: it is denied */
	/* no charge makes a key wait longer; 0: see debt_of_charges() */
	uint64_t charge_max_ns;
	/* of the places that are free in the limit before it, in thousandths; 0: not by shares */
	uint32_t share;
	uint64_t given; /* a bit for each word that stands after its rule= */
};

/* Is a thread the host's agent while it has no other? */
enum spec_agent {
	SPEC_AGENT_IF_POSSIBLE, /* the default */
	SPEC_AGENT_THREAD,      /* without a thread it is an error */
	SPEC_AGENT_NO,
};

struct spec {
	char *words; /* the words, each NUL-terminated: the strings below are in it */
	const char *segment;
	int fail_open;
	int create;
	int x_fields;
	struct shmlimit_options options; /* of a segment that is created */
	const char *backend;             /* the URL, or NULL */
	const char *backend_prefix;      /* of the backend's keys; NULL: the default */
	unsigned deadline_us;            /* 0: the default */
	unsigned local_milli;            /* this host's share without the backend; 0: none; fail_open decides */
	/* no request waits for the backend: `fail` decides at once */
	int no_wait;
	enum spec_agent agent;
	int proxy_quiet; /* a proxy whose address is a key is not reported */
	uint64_t given;  /* a bit for each word of the gate's own */
	struct spec_limit defaults, *limits;
	struct spec_rule *rules;
	size_t limit_count, rule_count;
	struct shmlimit_problem problem; /* what the readers of rates and URLs say */
};

/*
 * Read a spec. On -EINVAL *wrong is filled, up to its struct_size. Returns 0, -EINVAL or -ENOMEM.
 * After an error nothing has to be freed.
 */
int spec_read(const char *text, struct spec *spec, struct shmlimit_gate_wrong *wrong);

void spec_free(struct spec *spec);

/*
 * The longest debt that charges may make under a limit without charge_max=: an hour, or the time to
 * full if that is longer; at most DEBT_MAX_NS. So a wrong amount refuses a client for no longer
 * than that.
 */
uint64_t debt_of_charges(uint64_t capacity, uint64_t refill, uint64_t period_ns);

#endif
