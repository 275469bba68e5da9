/*
 * command.h: what a subcommand is. One subcommand a file, each of which exports a `struct command`;
 * the rest are helpers, one noun a file, with a header each.
 *
 * A function that returns a status returns STATUS_OK, or has already said on
 * standard error what was wrong and returns what the program shall exit with.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef COMMAND_H
#define COMMAND_H

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
	/*
	 * Of what runs another command, whose statuses are its own, as of env(1), nice(1) and
	 * timeout(1).
	 */
	STATUS_NOT_TRIED = 125,  /* any failure before that: in place of STATUS_ERROR and STATUS_MISSING */
	STATUS_CANNOT_RUN = 126, /* it is there */
	STATUS_NOT_FOUND = 127,
	STATUS_SIGNAL = 128, /* and the signal's number */
};

#define OPTIONS_MAX 24
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
	const char *extra;                    /* what an operand too many may be, as in "--key"; or NULL */
	int misused;                          /* the status of a wrong command line; 0: STATUS_ERROR */
};

/* The short form of options[i], or NUL. */
char command_letter(const struct command *command, size_t i);

/* An option by its name; NULL: not given, or the command has none of that name. */
const char *call_option(const struct call *call, const char *name);
int key_is_single(const struct call *call); /* is one key given by an option? */
int key_is_option(const struct call *call); /* or many, by --keys-from? */

extern const struct command command_create, command_destroy, command_grow, command_list, command_enable,
	command_disable;
extern const struct command command_rule_set, command_rule_show, command_rule_list, command_rule_remove;
extern const struct command command_rule_export, command_apply, command_apply_all;
extern const struct command command_take, command_peek, command_reserve, command_acquire, command_exec, command_charge;
extern const struct command command_hold;
extern const struct command command_refund, command_count, command_throttle, command_pause, command_reset;
extern const struct command command_ban, command_unban, command_bans;
extern const struct command command_inspect, command_keys, command_metrics, command_check, command_verify;
extern const struct command command_size, command_replay, command_top, command_stat, command_save, command_load;
extern const struct command command_global_take, command_global_inspect, command_global_ping, command_global_reset;
extern const struct command command_global_status, command_agent;

/*
 * command.c: read argv[1...] as the command's options and operands, then run it. Returns a status.
 */
int command_run(const struct command *command, int argc, char **argv);

/*
 * commands.c: every command: run the one that argv spells, a status; list those whose names start
 * with `prefix`.
 */
int commands_run(int argc, char **argv);
void commands_help(const char *prefix);

/*
 * help.c: what --help prints. `commands` ends with NULL; only those whose names start with
 * `prefix`.
 */
void help_command(const struct command *command);
void help_all(const struct command *const *commands, const char *prefix);

#endif
