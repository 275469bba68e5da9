/*
 * replay.h: what replay asks, counts and shows.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <jansson.h>

#include "allocate.h"
/* A table that cannot grow ends the program. */
#define uthash_malloc(size) allocate(size)
#include <uthash.h>

#include "command.h"
#include "log_line.h"
#include "number_text.h"

/* replay_key.c: which part of a line is its key. */
#define KEY_FIELDS_MAX 4

struct key_spec {
	enum { KEY_ADDR, KEY_USER, KEY_PATH } field[KEY_FIELDS_MAX];
	size_t fields;
	unsigned prefix_v4, prefix_v6;
	int forwarded; /* which address of a list */
};

int key_spec_parse(const char *text, struct key_spec *out); /* a status */
int key_has_address(const struct key_spec *spec);
/*
 * Returns the key's length; 0: the line has none. *is_address becomes 0 if its address is a part of
 * the key and is none.
 */
size_t key_make(const struct key_spec *spec, const struct log_line *line, unsigned char key[SHMLIMIT_KEY_MAX],
                int *is_address);
/* The same for people. Returns NULL without memory; else it is the caller's to free. */
char *key_text(const struct key_spec *spec, const unsigned char *key, size_t len);

/* A limit that is tried. */
struct replay_rule {
	const char *text;    /* as it was typed, or with the number that was found */
	const char *pattern; /* with '?' for a number that is to be found; else NULL */
	char *made_text;
	uint64_t suggested; /* the number */
	int by_plan;        /* each request brings its limit */
	struct shmlimit_rule rule;
	struct shmlimit *limiter; /* each has a segment of its own; NULL while its number is not known */
	uint64_t allowed, denied;
	uint64_t no_room;          /* keys that found no slot, or lost it to another */
	uint64_t keys_denied;      /* at least once */
	int64_t first_ns, last_ns; /* of the denials */
};

/* replay_plans.c: limits that came with the requests. */
struct replay_plan {
	UT_hash_handle hh;
	char *name, *limit_text;
	struct shmlimit_limit limit;
	int is_unreadable;
	uint64_t allowed, denied;
};

struct replay_key {
	UT_hash_handle hh;
	unsigned char *key;
	size_t len;
	uint64_t requests;
	int64_t *at_ns; /* when each of them came, if a number is to be found */
	size_t room;
	struct {
		uint64_t denied;
		int64_t first_ns, last_ns;
	} of_rule[];
};

/* replay_steps.c: how many when. Steps are as long as needed for all of the time to fit. */
#define STEPS 512u

struct replay_steps {
	int64_t from_s; /* where the first one begins */
	uint64_t step_s;
	size_t count; /* those there are */
	uint64_t requests[STEPS];
	uint64_t denied[REPEATED_MAX][STEPS];
};

size_t step_at(struct replay_steps *steps, int64_t unix_ns); /* which one; never before the first that was asked */
size_t step_worst(const struct replay_steps *steps, size_t rule);

struct replay_request {
	struct replay_key *key;
	struct replay_plan *plan; /* NULL: none that limits it */
	uint64_t cost;
	int64_t unix_ns;
};

/* replay_order.c: requests of the last hour wait until no earlier one can come. */
#define ORDER_S 3600
#define ORDER_MAX (UINT64_C(4) << 20) /* those that wait, 32 bytes each */

struct replay_second {
	uint32_t first, last; /* places of entries; 0: none */
	int unsorted;         /* an entry is earlier than one before it */
};

struct replay_order {
	int64_t newest_s; /* -1: there was none */
	int64_t from_s;   /* what is earlier comes too late */
	uint64_t count;
	struct replay_entry *entry;
	uint32_t room, used, free; /* used: places that were ever in use; free: a list of some that are not */
	struct replay_second second[ORDER_S];
};

/*
 * A request of that time has come up. Returns 0 if it is too late; else, when order_take() is done,
 * it can be added.
 */
int order_expect(struct replay_order *order, int64_t unix_ns);
int order_add(struct replay_order *order, const struct replay_request *request); /* 0 or -ENOMEM */
/* The next one that has waited long enough, or any at the end. Returns 0: there is none. */
int order_take(struct replay_order *order, int at_end, struct replay_request *request);
void order_free(struct replay_order *order);

/* replay_client.c: the clients of requests. */
struct replay_clients {
	const char *field;  /* --client: log_field()'s name, or addr; NULL: log_client() */
	uint64_t requests;  /* whose client is known */
	uint64_t found;     /* of these: has the field */
	uint64_t forwarded; /* of these: not the address that connected */
	unsigned looked_at; /* of those of public addresses */
	unsigned unused;    /* of these: another public address was forwarded */
	char unused_name[LOG_NAME_MAX], unused_by[TEXT_LEN]; /* of the first */
	char first[TEXT_LEN];                                /* address */
	int first_is_proxy, differ;
};

/* The client of a line, which is counted. */
struct span client_of(struct replay_clients *clients, const struct log_line *line);
/*
 * Warns if proxies were taken for clients. A status: of a field that no line had that is an error.
 */
int client_check(const struct replay_clients *clients);

/* replay_filter.c: which requests are looked at. NULL: any. Each is a list, joined by commas. */
struct replay_filter {
	const char *path; /* where * is any text */
	const char *method;
	const char *status; /* 401, 4xx, 400-499 */
};

int filter_check(const struct replay_filter *filter); /* a status */
int filter_passes(const struct replay_filter *filter, const struct log_line *line);

/* A share of all requests, exactly as it was typed: per cent. */
struct share {
	uint64_t whole, fraction, scale; /* scale 0: none was */
};

struct replay {
	struct key_spec spec;
	struct replay_rule rule[REPEATED_MAX];
	size_t rules;
	uint64_t slots;
	uint64_t top;
	int cost_bytes; /* a request costs the bytes of its response, and not 1 */
	struct share suggest, max_denied;
	int64_t since_s, until_s; /* requests before and from then on are left out; until_s 0: none */
	struct replay_clients clients;
	struct replay_filter filter;
	uint64_t lines, not_understood, without_key, no_address, too_late, outside, filtered;
	char *no_address_text;     /* the first client that is no address; or NULL */
	int64_t first_ns, last_ns; /* -1: there was none */
	struct replay_steps steps;
	struct replay_order order;
	struct replay_key *keys; /* uthash's */
	const char *limit_field; /* which part of a line says its plan; NULL: there are none */
	const char *plans_path;  /* of the file of plans; NULL: it says the limit */
	struct replay_plan *plans;
	uint64_t without_plan;   /* requests that no plan limits */
	char *without_plan_text; /* what the first of them said; or NULL */
	uint64_t secret[2];      /* of their hash */
};

/* replay_count.c: take a line into account. All return a status. */
int replay_begin(struct replay *r); /* before the first line: makes the secret */
int replay_line(struct replay *r, const struct span *line, int *understood);
int replay_finish(struct replay *r);
void replay_free(struct replay *r);
/* The keys that a rule denied most, at most r->top of them; the list is the caller's to free. */
int replay_worst(struct replay *r, size_t rule, struct replay_key ***list, size_t *count);

/* One request, by one rule, and what it is counted in. A status. */
int replay_decide(struct replay *r, size_t rule, const struct replay_request *request, size_t step);

/* replay_plans.c. */
int plans_read(struct replay *r, const char *path);                           /* a status */
struct replay_plan *plan_find(struct replay *r, const struct log_line *line); /* NULL: none limits it */
int plans_worst(const struct replay *r, struct replay_plan ***list,
                size_t *count); /* those that were asked; a status */
void plans_free(struct replay *r);

/* replay_suggest.c: "10/s burst 20". A status. */
int replay_rule_parse(const char *text, struct shmlimit_rule *rule);

/* replay_suggest.c: numbers that are left open. All but the first return a status. */
int suggest_is_open(const char *pattern);
int suggest_parse(const char *pattern, uint64_t number, struct shmlimit_rule *rule);
int replay_suggest(struct replay *r); /* when all requests are known */
int share_parse(const char *what, const char *text, struct share *share);
uint64_t share_of(const struct share *share, uint64_t requests); /* rounded down */

/* replay_text.c, replay_json.c, replay_plot.c */
const char *utc_text(char text[TEXT_LEN], int64_t unix_ns);
int replay_text(struct replay *r); /* a status */
json_t *replay_json(struct replay *r);
int plot_check(void);                                      /* a status: can it be drawn? */
int replay_plot(const struct replay *r, const char *path); /* a status */

/* progress.c: a bar on a terminal, on standard error. */
void progress_show(uint64_t done, uint64_t size, uint64_t lines);
void progress_clear(void);

#endif
