/*
 * command.h: what the files of the command share. One subcommand a file, each
 * of which exports a `struct command`; the rest are helpers, one noun a file.
 *
 * A function that returns a status returns STATUS_OK, or has already said on
 * standard error what was wrong and returns what the program shall exit with.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "shmlimit.h"

/* Exit statuses. */
enum {
	STATUS_OK = 0,      /* done; allowed; sound */
	STATUS_NO = 1,      /* denied; problems found */
	STATUS_ERROR = 2,   /* wrong usage, or it could not be done */
	STATUS_MISSING = 3, /* no such segment, no such rule */
};

#define OPTIONS_MAX 16
#define REPEATED_MAX 16 /* limits side by side, as many as a request can have */

/* An option, its line in --help included. */
struct command_option {
	const char *name;  /* without the dashes */
	const char *value; /* what stands for its value in --help; NULL: it takes none; "LIMIT...": it may come again */
	const char *purpose;
};

/* What was typed. */
struct call {
	const struct command *command;
	char **operand;                     /* as many as the command wants; NULL: left out */
	const char *option[OPTIONS_MAX];    /* by place in command.options; NULL: not given; "": a flag */
	const char *repeated[REPEATED_MAX]; /* all values of the one option that may come again */
	size_t repeated_count;
};

struct command {
	const char *name;     /* one word, or two: "rule set" */
	const char *operands; /* "NAME RULE"; the last may be left out: "NAME [RULE]"; any number: "[FILE...]" */
	const char *purpose;  /* one line */
	const char *details;  /* more lines for --help, or NULL */
	const struct command_option *options; /* at most OPTIONS_MAX, then one without a name; or NULL */
	int (*run)(const struct call *call);  /* returns a status */
	const char *letters;                  /* short forms of the first options, in their order; or NULL */
};

/* The short form of options[i], or NUL. */
char command_letter(const struct command *command, size_t i);

/* An option by its name; NULL: not given, or the command has none of that name. */
const char *call_option(const struct call *call, const char *name);

extern const struct command command_create, command_destroy, command_grow, command_list, command_enable,
	command_disable;
extern const struct command command_rule_set, command_rule_show, command_rule_list, command_rule_remove;
extern const struct command command_rule_export, command_apply, command_apply_all;
extern const struct command command_take, command_peek, command_reserve, command_acquire, command_exec, command_charge;
extern const struct command command_hold;
extern const struct command command_refund, command_count, command_throttle, command_reset;
extern const struct command command_ban, command_unban, command_bans;
extern const struct command command_inspect, command_keys, command_metrics, command_check, command_verify;
extern const struct command command_size, command_replay, command_top, command_stat, command_save, command_load;
extern const struct command command_global_take, command_global_inspect, command_global_ping, command_global_reset;
extern const struct command command_global_status, command_agent;

/* command.c: read argv[1...] as the command's options and operands, then run it. Returns a status. */
int command_run(const struct command *command, int argc, char **argv);

/* commands.c: every command: run the one that argv spells, a status; list those whose names start with `prefix`. */
int commands_run(int argc, char **argv);
void commands_help(const char *prefix);

/* help.c: what --help prints. `commands` ends with NULL; only those whose names start with `prefix`. */
void help_command(const struct command *command);
void help_all(const struct command *const *commands, const char *prefix);

/* fail.c: say what is wrong. All return a status that is not STATUS_OK. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fail_memory(void);
int fail_segment(const char *segment, int error);
int fail_rule(const char *segment, const char *rule, int error);
int fail_exact(const char *rule_name, const struct shmlimit_rule *rule); /* -ERANGE, of such a rule */
void fail_where(const char *path, int line); /* what messages begin with from now on; NULL: nothing */

/*
 * number.c, choice.c, rate.c, duration.c: read what people write. `what`
 * begins the message: "--slots". On an error nothing was stored. Those that end
 * in _parse return a status; those that end in _scan move *text behind what
 * they read and return 0, -EINVAL: it is none, or -ERANGE: it is too large.
 */
int digits_scan(const char **text, uint64_t *value); /* of digits alone */
int number_scan(const char **text, uint64_t *value); /* 1500, 1.5k, 64Ki; -EDOM: not a whole number */
int number_parse(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value);
int duration_parse(const char *what, const char *text, uint64_t *ns);                  /* 1.5s, 1h30m, 0 */
int period_parse(const char *what, const char *whole, const char *text, uint64_t *ns); /* or a unit alone: m */
int rate_parse(const char *what, const char *text, uint64_t *count, uint64_t *period_ns);

/* A decimal number is whole + fraction / scale; *value is that number of units: 0, -ERANGE, or -EDOM: not a whole number. */
int decimal_scan(const char **text, uint64_t *whole, uint64_t *fraction, uint64_t *scale);
int decimal_times(uint64_t whole, uint64_t fraction, uint64_t scale, uint64_t unit, uint64_t *value);

struct choice {
	const char *word; /* NULL behind the last */
	uint32_t value;
};

extern const struct choice choices_on_full[], choices_clock[], choices_algorithm[], choices_mode[], choices_yes[],
	choices_lease[];

int choice_parse(const char *what, const char *text, const struct choice *choices, uint32_t *value);
const char *choice_word(const struct choice *choices, uint32_t value);

/* number.c, rate.c, duration.c: write it. TEXT_LEN bytes are enough for each. All but size_text() are read back. */
#define TEXT_LEN 64
const char *number_text(char text[TEXT_LEN], uint64_t number); /* "64Ki", "10M", "1001" */
const char *size_text(char text[TEXT_LEN], uint64_t bytes);    /* rounded down: "108.5Ki" */
const char *rate_text(char text[TEXT_LEN], uint64_t count, uint64_t period_ns);
const char *duration_text(char text[TEXT_LEN], uint64_t ns);   /* exact: "1h30m", "1.5s", "0s"; UINT64_MAX: "never" */
const char *resolution_text(char text[TEXT_LEN], uint64_t ps); /* the same of picoseconds: "0.954ns" */

/* nearest.c: of several words, the one that was probably meant. */
struct nearest {
	const char *word; /* as it was typed; all else is zero at first */
	unsigned distance;
	char best[32], text[64];
};

void nearest_try(struct nearest *nearest, const char *candidate);
const char *nearest_text(struct nearest *nearest, const char *dashes); /* "did you mean --json? ", or "" */

/*
 * escape.c: bytes of any origin as text for terminals and files. Each byte of what does not print as it is becomes
 * \xNN. All that the command writes goes through here, unless JSON's own escapes do it.
 */
enum {
	ESCAPE_BACKSLASH = 1, /* and a backslash becomes two: no two inputs become one text */
	ESCAPE_EXPORT = 2,    /* for a file: the same in every locale */
};

#define ESCAPE_ONE_LEN 5
/* The character, or byte, that `from` begins with. Returns how many bytes that is. */
size_t escape_one(char to[ESCAPE_ONE_LEN], const void *from, size_t len, unsigned how);
/* All of it, into 4 * len + 1 bytes. Returns where it ends. */
char *escape(char *to, const void *from, size_t len, unsigned how);
/* How many bytes the UTF-8 character has that `from`, of 1 byte or more, begins with; 0: it begins with none. */
size_t utf8_read(const void *from, size_t len, uint32_t *c);

/* print.c: text, escaped; a line `name: value`; JSON. */
void print_clean(FILE *to, const char *text);
void print_line(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
int print_json(json_t *root);        /* takes the reference; NULL means out of memory; a status */
char *json_write(json_t *root);      /* the same as text, which is the caller's to free, or NULL */
char *json_write_line(json_t *root); /* on one line */
#define JSON_NUMBER_MAX (UINT64_C(1) << 53)
json_t *json_number(uint64_t value);               /* above that, a string of its digits */
json_t *json_duration(uint64_t ns);                /* UINT64_MAX, never, becomes null */
json_t *json_text(const char *text);               /* bytes that are not UTF-8 become U+FFFD */
json_t *json_bytes(const void *bytes, size_t len); /* null if they are not UTF-8 */
void json_append(json_t **list, json_t *item);     /* takes the item; out of memory makes *list NULL */

/* table.c: columns as wide as they need. */
struct table {
	const char *align; /* one character a column: 'l' or 'r' */
	size_t count, room;
	char **cell;
	int failed; /* out of memory */
};

void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_words(struct table *table, const char *words); /* each a cell: the head */
int table_print(struct table *table);                     /* prints and frees; a status */
void table_free(struct table *table);

/*
 * segment.c: open a segment as shmlimit_open() does; root always does so with SHMLIMIT_TRUSTED_OWNER.
 * segment_try() returns what that returns, segment_open() a status. segment_trust() adds a user, by name or number,
 * whose segments are trusted.
 */
int segment_trust(const char *user); /* a status */
int segment_try(const char *name, uint32_t flags, struct shmlimit **out);
int segment_open(const char *name, uint32_t flags, struct shmlimit **out);
json_t *segment_json(const char *name, const struct shmlimit_info *info);
void segment_owner(const struct shmlimit_info *info, char owner[TEXT_LEN]);

/* What a segment is made with: shmlimit_options, in words. */
enum {
	CREATION_SLOTS,
	CREATION_SLOTS_MAX,
	CREATION_MODE,
	CREATION_GROUP,
	CREATION_ON_FULL,
	CREATION_RULES,
	CREATION_WINDOW_MAX,
	CREATION_NAMES,
	CREATION_CLOCK,
	CREATION_FIELDS,
};

/* creation.c: one of these; those of a segment that is there; to make one, and why that failed. */
extern const char *const creation_names[CREATION_FIELDS];

int creation_parse(const char *what, int field, const char *text, struct shmlimit_options *o); /* a status */
const char *creation_text(char text[TEXT_LEN], int field, const struct shmlimit_options *o);
void creation_of(const struct shmlimit_info *info, struct shmlimit_options *o);
/* Warn if the segment has something else than what is wanted: it keeps it. */
void creation_warn(const char *name, const struct shmlimit_info *info, int field,
                   const struct shmlimit_options *wanted);
int creation_carry_out(const char *name, const struct shmlimit_options *o, struct shmlimit **out); /* a status */
int creation_fail(const char *name, int error);                                                    /* a status */
int creation_fail_as(const char *name, const struct shmlimit_options *o, int error); /* where these are known */

/* What a rule is set with. */
enum {
	FIELD_ALGORITHM,
	FIELD_CAPACITY,
	FIELD_RATE,
	FIELD_PERIOD,
	FIELD_WARMUP,
	FIELD_COLD_FACTOR,
	FIELD_COUNT_REFUSED,
	FIELD_MAX_WAIT,
	FIELD_NEXT_PAYS,
	FIELD_CREDIT,
	FIELD_MODE,
	FIELDS,
};

/* field.c: one of these, in words and in a rule. */
extern const char *const field_names[FIELDS];

int field_parse(const char *rule_name, int field, const char *text, struct shmlimit_rule *rule); /* a status */
const char *field_text(char text[TEXT_LEN], int field, const struct shmlimit_rule *rule);
const char *field_cell(char text[TEXT_LEN], int field, const struct shmlimit_rule *rule); /* of a table: "-" */
int field_applies(int field, uint32_t algorithm); /* does the algorithm have it? */
void field_copy(int field, const struct shmlimit_rule *from, struct shmlimit_rule *to);

/* rule.c: all there is to say about a rule. */
struct rule_facts {
	int id;
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct shmlimit_rule rule;
	struct shmlimit_range range;
};

int rule_find(struct shmlimit *limiter, const char *segment, const char *name, int *id);
int rule_is_internal(const char *name);     /* made by a library: a throttle's, a host's share, the breaker */
int rule_is_breaker(const char *name);      /* the circuit breaker of libshmlimit-global: no decisions of users */
int rule_breaker(struct shmlimit *limiter); /* its id, or negative */
void rule_counters_all(struct shmlimit *limiter, struct shmlimit_counters *out); /* of all rules but that */
int rule_read(struct shmlimit *limiter, int id, struct rule_facts *out);         /* 0 or -errno, silently */
json_t *rule_json(const struct rule_facts *facts);

/* decision.c: the commands that take or refund a rule's tokens differ in one call only. */
typedef int decision_verb(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                          struct shmlimit_result *r);
typedef int reservation_verb(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                             uint64_t max_wait_ns, struct shmlimit_result *r);

extern const struct command_option decision_options[], take_options[], reservation_options[], refund_options[],
	charge_options[];

int decision_run(const struct call *call, uint32_t flags, decision_verb *verb);
int reservation_run(const struct call *call, reservation_verb *verb);
void decision_print(int answer, const struct shmlimit_result *r);
json_t *decision_json(int answer, const struct shmlimit_result *r);

/*
 * key_option.c: a key as it was given, as an operand or by an option. Rows of the tables of commands that take one;
 * the operand KEY is then left out, and is NULL.
 */
#define KEY_OPTION_ROWS \
	{ "key-ip", "ADDR", "instead of KEY: the key that servers make from an address, or from ADDR/N" }, \
	{ \
		"key-hex", "HEX", "instead of KEY: its bytes in hexadecimal" \
	}
#define KEY_PREFIX_ROW \
	{ \
		"prefix", "N,M", "with --key-ip: bits of IPv4 and IPv6 that count (default 32,64)" \
	}
#define KEY_FINGERPRINT_ROW \
	{ \
		"fingerprint", "HEX", "instead of KEY: the fingerprint that inspect shows" \
	}

/* What one customer has. */
#define KEY_PREFIX_V4 32u
#define KEY_PREFIX_V6 64u

struct key {
	const char *text; /* as an operand or --key had it, or NULL */
	size_t len;       /* 0: only its fingerprint is known */
	unsigned char bytes[SHMLIMIT_KEY_MAX];
	uint64_t fingerprint;
};

/*
 * ban.c: ban a key, of which all bytes are known, under a rule that is made if it is missing. Returns 0 or -errno: then
 * ban_error() has the words for it, or NULL: those of fail_rule() do.
 */
#define BAN_RULE "ban"
int ban_begin(struct shmlimit *limiter, const char *rule, const struct key *key, uint64_t for_ns);
const char *ban_error(int error);

/* reset.c: say how many keys were reset: `key` is the one that should be, or NULL. A status. */
int reset_report(int found, const struct key *key, const char *rule);
int reset_print_json(int found, int one_key);

int key_is_option(const struct call *call);
int key_parse(const struct call *call, const char *text, struct key *key); /* a status; text: KEY, or NULL */
/* "24" or "24,64", up to `end`. Returns 0 if it is neither; what it lacks stays as it is. */
int prefixes_parse(const char *text, const char *end, unsigned *v4, unsigned *v6);

/*
 * key.c: keys as people can read them: addresses, and all others escaped. Text that would read as an address, or that
 * begins with a quote, is put into quotes, so that no two keys look the same.
 */
#define KEY_TEXT_LEN (4 * SHMLIMIT_KEY_MAX + TEXT_LEN)

/* Returns 1 if the key is what shmlimit_key_ip() makes; as --key-ip reads it: 203.0.113.9, 2001:db8::/64. */
int key_ip_show(char text[KEY_TEXT_LEN], const void *key, size_t len);
/* `len` bytes of a key that has `key_len`: where that is more they are its beginning. */
const char *key_show(char text[KEY_TEXT_LEN], const void *key, size_t len, size_t key_len);
/* Members key, key_hex, key_length and key_ip: exact, for programs. */
json_t *json_key(const void *key, size_t len, size_t key_len);

#endif
