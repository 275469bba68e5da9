/*
 * bans.c: shmlimit bans: the keys that are banned now, one a line, or as nftables sets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "about.h"
#include "ban.h"
#include "decimal.h"
#include "duration.h"
#include "fail.h"
#include "key_option.h"
#include "key_text.h"
#include "named_segment.h"
#include "nft.h"
#include "number_text.h"
#include "rule_facts.h"
#include "slot_out.h"
#include "value_parse.h"

#define MS UINT64_C(1000000)

enum { RULE, JSON, OVER, FOR, NFT, APPLY, EVERY, KEEP, WIDEST, TABLE, SET, PRIVATE };

static const struct command_option options[] = {
	[RULE] = { "rule", "RULE", "the rule that servers peek at (default ban)" },
	[JSON] = { "json", NULL, "print one JSON object per line, as keys does" },
	[OVER] = { "over", "COUNTER=N",
	           "first ban each key whose count under COUNTER is N or more; a longer ban stays" },
	[FOR] = { "for", "DURATION", "with --over: how long these are banned" },
	[NFT] = { "nft", NULL, "print nftables sets of the banned addresses, as nft -f reads them" },
	[APPLY] = { "apply", NULL, "with --nft: have nft load the sets instead of printing them" },
	[EVERY] = { "every", "DURATION", "with --apply: repeat at this interval: 5s" },
	[KEEP] = { "keep", "ADDR[/N]...", "with --nft: never drop this address or net; may be given several times" },
	[WIDEST] = { "widest", "N,M", "with --nft: the fewest bits of a net that is dropped (default 24,48)" },
	[TABLE] = { "table", "TABLE", "with --nft: a table of family inet (default shmlimit, with rules that drop)" },
	[SET] = { "set", "SET", "with --nft: the sets are SET4 and SET6 (default bans)" },
	[PRIVATE] = { "private", NULL, "with --over or --nft: also private addresses and this host's own" },
	{ 0 },
};

/* What the options say. */
struct asked {
	const struct call *call;
	const char *rule; /* that servers peek at */
	struct nft nft;
	uint64_t every_ns;
	char counter[SHMLIMIT_RULE_NAME_MAX + 1]; /* of --over; "": there is none */
	uint64_t over, for_ns;
	unsigned widest[2]; /* of IPv4 and IPv6 */
	int is_again;       /* a later round of --every */
	uint64_t *said;     /* what it was about, by the kind of message */
};

static void put_line(struct slot_out *out, const struct top_key *slot)
{
	char text[TEXT_LEN];

	out_key(out, slot);
	out_text(out, "\t");
	out_fingerprint(out, slot->fingerprint);
	out_text(out, "\t");
	out_text(out, duration_about(text, slot->reset_after_ns));
}

static int print_bans(struct shmlimit *limiter, int rule, int json)
{
	struct top_keys keys = { .rule = rule, .limit = UINT64_MAX, .denied = 1, .order = TOP_KEYS_BY_RESET };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct slot_out *out = slot_out_new(limiter);
	int status = out != NULL ? STATUS_OK : STATUS_ERROR;

	shmlimit_info(limiter, &info);
	if (status == STATUS_OK)
		status = top_keys_scan(limiter, 0, info.slots + info.old_slots, &keys);
	if (status == STATUS_OK && !json && isatty(STDOUT_FILENO))
		puts("KEY\tFINGERPRINT\tENDS-IN");
	for (size_t i = 0; status == STATUS_OK && i < keys.count; i++) {
		if (json)
			out_slot_json(out, &keys.slot[i]);
		else
			put_line(out, &keys.slot[i]);
		out_text(out, "\n");
		out_flush(out, SLOT_OUT_BUFFER);
	}
	if (out != NULL)
		out_flush(out, 0);
	slot_out_free(out);
	free(keys.slot);
	return status;
}

/* ---- nftables ---- */

/* Nets of the bans, and how many have none. */
struct drops {
	struct shmlimit *limiter;
	struct nets nets;
	const unsigned *widest;
	uint64_t unknown, others,
		wide; /* keys that the segment does not store; that are no address; that are too wide */
};

static int add_ban(void *context, const struct top_key *slot)
{
	struct drops *drops = context;
	unsigned char key[SHMLIMIT_KEY_MAX];
	size_t key_len = 0, kept = top_key_bytes(key, drops->limiter, slot, &key_len);
	uint64_t ms = slot->reset_after_ns / MS + (slot->reset_after_ns % MS != 0);

	if (kept == 0 || kept < key_len)
		drops->unknown++;
	else if (ms > 0)
		switch (nft_add_key(&drops->nets, key, key_len, ms, drops->widest)) {
		case NFT_ADDED:
			break;
		case NFT_NO_ADDRESS:
			drops->others++;
			break;
		case NFT_TOO_WIDE:
			drops->wide++;
		}
	return STATUS_OK;
}

enum { SAID_UNKNOWN, SAID_OTHERS, SAID_WIDE, SAID_MANY, SAID_SPARED, SAID_PRIVATE, SAID_KINDS };

/* With --every, is it more than what was said before? */
static int is_news(const struct asked *asked, int kind, uint64_t count)
{
	int news = count > asked->said[kind];

	asked->said[kind] = count;
	return news;
}

static void warn_left_out(const struct asked *asked, const struct drops *drops, size_t many)
{
	if (is_news(asked, SAID_UNKNOWN, drops->unknown))
		fail("bans left out: %" PRIu64 ", since the segment does not store their keys (create --store-keys)",
		     drops->unknown);
	if (is_news(asked, SAID_OTHERS, drops->others))
		fail("bans left out: %" PRIu64 ", since their keys are not addresses", drops->others);
	if (is_news(asked, SAID_WIDE, drops->wide))
		fail("bans left out: %" PRIu64
		     ", since their nets are wider than /%u of IPv4 or /%u of IPv6 (drop them, too: "
		     "--widest N,M)",
		     drops->wide, asked->widest[0], asked->widest[1]);
	if (is_news(asked, SAID_MANY, many))
		fail("bans left out: %zu, the widest, since no more is dropped than %d nets of %u bits of IPv4 and of %u of IPv6 "
		     "(--widest N,M)",
		     many, NETS_OF_WIDEST, asked->widest[0], asked->widest[1]);
}

static int make_nft(const struct asked *asked, struct shmlimit *limiter, int rule)
{
	struct drops drops = { .limiter = limiter, .widest = asked->widest };
	struct top_keys keys = { .rule = rule, .limit = UINT64_MAX, .denied = 1, .visit = add_ban, .context = &drops };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct nets ranges = { 0 };
	int status = STATUS_OK;

	nft_keep_own(&drops.nets);
	if (asked->call->option[PRIVATE] == NULL)
		nft_keep_private(&drops.nets);
	for (size_t i = 0; i < asked->call->repeated_count && status == STATUS_OK; i++)
		status = nft_keep(&drops.nets, asked->call->repeated[i]);
	shmlimit_info(limiter, &info);
	if (status == STATUS_OK && rule >= 0)
		status = top_keys_scan(limiter, 0, info.slots + info.old_slots, &keys);
	if (status == STATUS_OK) {
		warn_left_out(asked, &drops, nets_bound(&drops.nets, asked->widest));
		if (is_news(asked, SAID_SPARED, nets_cut(&drops.nets, &ranges)))
			fail("a ban is not dropped where it has this session's address, one of --keep, the default route's net, a "
			     "resolver, or a private or local address (drop private ones, too: --private)");
		status = asked->call->option[APPLY] != NULL ? nft_apply(&asked->nft, &ranges)
		                                            : nft_print(&asked->nft, &ranges);
	}
	free(drops.nets.net);
	free(ranges.net);
	return status;
}

/* ---- Heavy offenders ---- */

struct offenders {
	const struct asked *asked;
	struct shmlimit *limiter;
	int counter;
	uint64_t capacity;
};

/*
 * WHY NOT a private address: all clients are that one where a proxy stands before a server that was
 * not told of it (real_ip), and a ban by count would then be the end of the site.
 */
static int is_left_out(const struct asked *asked, const struct key *key)
{
	char text[KEY_TEXT_LEN];

	if (asked->call->option[PRIVATE] != NULL || !nft_is_private(key->bytes, key->len))
		return 0;
	if (asked->said[SAID_PRIVATE]++ == 0)
		fail("rule %s: %s not banned: a private or local address, usually a proxy that the server is not configured for (ban "
		     "such ones, too: --private)",
		     asked->counter, key_show(text, key->bytes, key->len, key->len));
	return 1;
}

/* WHY its count begins again: it would be banned once more by the same count, after unban too. */
static int ban_offender(void *context, const struct top_key *slot)
{
	const struct offenders *offenders = context;
	const struct asked *asked = offenders->asked;
	struct key key = { .fingerprint = 0 };
	size_t kept;
	int error;

	if (offenders->capacity - slot->remaining < asked->over || slot->remaining > offenders->capacity)
		return STATUS_OK;
	kept = top_key_bytes(key.bytes, offenders->limiter, slot, &key.len);
	if (kept == 0 || kept < key.len)
		return asked->is_again ? STATUS_OK
		                       : fail("rule %s: keys are not stored, so none is banned (create --store-keys)",
		                              asked->counter);
	if (is_left_out(asked, &key))
		return STATUS_OK;
	error = ban_begin(offenders->limiter, asked->rule, &key, asked->for_ns, BAN_LONGER);
	if (error == 0)
		error = shmlimit_reset(offenders->limiter, offenders->counter, key.bytes, key.len);
	if (error >= 0)
		return STATUS_OK;
	if (error == -ERANGE)
		return fail("--for %s: rule %s counts for a shorter time at most", asked->call->option[FOR],
		            asked->rule);
	return ban_error(error) != NULL ? fail("rule %s: %s", asked->rule, ban_error(error))
	                                : fail_rule(asked->call->operand[0], asked->rule, error);
}

static int ban_offenders(const struct asked *asked, struct shmlimit *limiter)
{
	struct offenders offenders = { .asked = asked, .limiter = limiter };
	struct top_keys keys = { .limit = UINT64_MAX, .visit = ban_offender, .context = &offenders };
	struct shmlimit_rule is = { .struct_size = sizeof(is) };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	int status = rule_find(limiter, asked->call->operand[0], asked->counter, &offenders.counter);

	if (status != STATUS_OK)
		return status;
	shmlimit_rule_get(limiter, offenders.counter, &is);
	if (is.algorithm != SHMLIMIT_COUNTER)
		return fail("rule %s: %s", asked->counter, ban_error(-EOPNOTSUPP));
	if (asked->over > is.capacity)
		return fail("--over %s: rule %s counts to %" PRIu64 " at most", asked->call->option[OVER],
		            asked->counter, is.capacity);
	offenders.capacity = is.capacity;
	keys.rule = offenders.counter;
	shmlimit_info(limiter, &info);
	return top_keys_scan(limiter, 0, info.slots + info.old_slots, &keys);
}

/* ---- The command ---- */

static int print_all(const struct asked *asked, struct shmlimit *limiter, int rule)
{
	if (asked->call->option[NFT] != NULL)
		return make_nft(asked, limiter, rule);
	return rule < 0 ? STATUS_OK : print_bans(limiter, rule, asked->call->option[JSON] != NULL);
}

/* While there is no rule no key is banned. */
/* The default rule of bans is missing as long as none was made. */
static int show(const struct asked *asked, struct shmlimit *limiter)
{
	struct shmlimit_rule is = { .struct_size = sizeof(is) };
	int id = shmlimit_rule_find(limiter, asked->rule), error = id < 0 ? id : shmlimit_rule_get(limiter, id, &is);

	if (error == -ESRCH && asked->call->option[RULE] == NULL)
		return print_all(asked, limiter, -1);
	if (error < 0)
		return fail_rule(asked->call->operand[0], asked->rule, error);
	if (is.algorithm != SHMLIMIT_COUNTER)
		return fail("rule %s: %s", asked->rule, ban_error(-EOPNOTSUPP));
	return print_all(asked, limiter, id);
}

static int look_once(const struct asked *asked)
{
	int bans = asked->counter[0] != '\0', status;
	struct shmlimit *limiter;

	status = segment_open(asked->call->operand[0], bans ? 0 : SHMLIMIT_OPEN_READ_ONLY, &limiter);
	if (status != STATUS_OK)
		return status;
	if (bans)
		status = ban_offenders(asked, limiter);
	if (status == STATUS_OK)
		status = show(asked, limiter);
	shmlimit_close(limiter);
	return status;
}

static int read_over(struct asked *asked)
{
	const char *over = asked->call->option[OVER], *equals = strrchr(over, '='), *rest;

	if (equals == NULL || equals == over || equals - over > SHMLIMIT_RULE_NAME_MAX)
		return fail("--over %s: must be COUNTER=N, such as abuse=100", over);
	memcpy(asked->counter, over, (size_t)(equals - over));
	rest = equals + 1;
	if (number_scan(&rest, &asked->over) != 0 || *rest != '\0' || asked->over == 0)
		return fail("--over %s: must be COUNTER=N, such as abuse=100", over);
	if (strcmp(asked->counter, asked->rule) == 0)
		return fail("--over %s: rule %s has the bans; the counter must be another rule", over, asked->rule);
	if (asked->call->option[FOR] == NULL)
		return fail("--over %s: missing --for DURATION, how long a ban lasts, such as --for 10m", over);
	if (duration_parse("--for", asked->call->option[FOR], &asked->for_ns) != STATUS_OK)
		return STATUS_ERROR;
	return asked->for_ns > 0 ? STATUS_OK : fail("--for %s: must be more than 0", asked->call->option[FOR]);
}

static int read_nft(struct asked *asked)
{
	const struct call *call = asked->call;
	int status = STATUS_OK;

	asked->widest[0] = NFT_WIDEST_V4;
	asked->widest[1] = NFT_WIDEST_V6;
	for (int i = APPLY; i <= SET; i++)
		if (call->option[i] != NULL && call->option[NFT] == NULL)
			return fail("--%s: needs --nft", options[i].name);
	if (call->option[NFT] != NULL && call->option[JSON] != NULL)
		return fail("--nft and --json: give only one of them");
	if (call->option[PRIVATE] != NULL && call->option[NFT] == NULL && call->option[OVER] == NULL)
		return fail("--private: needs --nft or --over");
	if (call->option[WIDEST] != NULL &&
	    !prefixes_parse(call->option[WIDEST], call->option[WIDEST] + strlen(call->option[WIDEST]),
	                    &asked->widest[0], &asked->widest[1]))
		return fail("--widest %s: must be N or N,M: 0 to 32 bits of IPv4, 0 to 128 of IPv6",
		            call->option[WIDEST]);
	asked->nft = (struct nft){ call->option[TABLE], call->option[SET] };
	if (asked->nft.table != NULL)
		status = nft_check_name("--table", asked->nft.table);
	if (status == STATUS_OK && asked->nft.set != NULL)
		status = nft_check_name("--set", asked->nft.set);
	if (status != STATUS_OK || call->option[EVERY] == NULL)
		return status;
	if (call->option[APPLY] == NULL)
		return fail("--every %s: needs --apply", call->option[EVERY]);
	status = duration_parse("--every", call->option[EVERY], &asked->every_ns);
	return status == STATUS_OK && asked->every_ns < 100 * MS
	               ? fail("--every %s: must be 100ms or more", call->option[EVERY])
	               : status;
}

static int run(const struct call *call)
{
	uint64_t said[SAID_KINDS] = { 0 };
	struct asked asked = { .call = call,
		               .said = said,
		               .rule = call->option[RULE] != NULL ? call->option[RULE] : BAN_RULE };
	int status = read_nft(&asked);

	if (status == STATUS_OK && call->option[FOR] != NULL && call->option[OVER] == NULL)
		return fail("--for %s: needs --over COUNTER=N", call->option[FOR]);
	if (status == STATUS_OK && call->option[OVER] != NULL)
		status = read_over(&asked);
	if (status == STATUS_OK)
		status = look_once(&asked);
	while (status == STATUS_OK && asked.every_ns > 0) {
		struct timespec pause = { (time_t)(asked.every_ns / (1000 * MS)),
			                  (long)(asked.every_ns % (1000 * MS)) };

		nanosleep(&pause, NULL);
		asked.is_again = 1;
		status = look_once(&asked);
	}
	return status;
}

const struct command command_bans = {
	.name = "bans",
	.operands = "NAME",
	.purpose = "print the keys that are banned, or have nftables drop what they send",
	.details =
		"Fields are separated by tabs: the key, or # and its fingerprint if it is not stored; the\n"
		"fingerprint; the time until the ban ends. The longest comes first.\n"
		"With --nft these are never dropped: the address that this session came from, loopback and link-local\n"
		"addresses, the default route's net and resolvers; nor, without --private, private addresses and the\n"
		"host's own. --over bans none of these.\n",
	.options = options,
	.run = run,
};
