/*
 * ban_keys.c: see ban_keys.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "ban_keys.h"
#include "command.h"
#include "decimal.h"
#include "fail.h"
#include "key_text.h"

static unsigned whole_bits(const struct ban_keys *keys)
{
	return 8 * (unsigned)keys->address.len;
}

/* Is it ADDR/N? */
static int is_net(const char *text)
{
	const char *slash = strchr(text, '/'), *rest = slash != NULL ? slash + 1 : "";
	struct address address;
	uint64_t bits;

	return slash != NULL && digits_scan(&rest, &bits) == 0 && *rest == '\0' &&
	       address_read(text, (size_t)(slash - text), &address);
}

/* An IPv4-mapped address is IPv4. */
static int read_address(const char *text, struct ban_keys *keys)
{
	struct key key;
	int status = key_ip_parse(text, keys->is_net ? NULL : "32,128", &key);

	if (status != STATUS_OK)
		return status;
	keys->is_address = 1;
	keys->bits = key.bytes[1];
	keys->address.len = key.len - 2;
	memcpy(keys->address.bytes, key.bytes + 2, keys->address.len);
	return STATUS_OK;
}

int ban_keys_read(const struct call *call, const char *operand, struct ban_keys *keys)
{
	const char *ip = call_option(call, "key-ip"), *text = ip != NULL ? ip : operand;
	struct address address;
	int status;

	*keys = (struct ban_keys){ .count = 1 };
	status = key_parse(call, operand, &keys->given);
	if (status != STATUS_OK || text == NULL || call_option(call, "prefix") != NULL)
		return status;
	keys->is_net = is_net(text);
	keys->as_net = ip != NULL;
	if (keys->is_net || ip != NULL || address_read(text, strlen(text), &address))
		return read_address(text, keys);
	return STATUS_OK;
}

static void make_key(const struct address *address, unsigned bits, struct key *key)
{
	int len = shmlimit_key_ip(address->bytes, address->len, bits > 32 ? 32 : bits, bits, key->bytes,
	                          sizeof(key->bytes));

	key->text = NULL;
	key->len = len > 0 ? (size_t)len : 0;
}

/*
 * The prefix of the users' keys, and the default one, since a trace may be that of another limit.
 */
static void choose_prefixes(const struct key_traces *traces, struct ban_keys *keys)
{
	unsigned usual = keys->address.len == 4 ? KEY_PREFIX_V4 : KEY_PREFIX_V6;
	int traced = keys->address.len == 4 ? traces->v4 : traces->v6;

	keys->prefix[0] = traced > 0 ? (unsigned)traced : usual;
	keys->prefix[1] = !keys->is_net && keys->prefix[0] < usual ? usual : keys->prefix[0];
	if (!keys->is_net)
		keys->bits = keys->prefix[0];
}

static uint64_t keys_of(unsigned bits, unsigned prefix)
{
	return prefix - bits < 32 ? UINT64_C(1) << (prefix - bits) : UINT64_MAX / 4;
}

static int fail_wide(const struct ban_keys *keys, const char *net, uint64_t most)
{
	return fail("net %s: limits look up addresses with a prefix of %u bits, so this ban is %s%" PRIu64
	            " keys: must be %" PRIu64
	            " or fewer here (give a limit with peek prefix=%s%u and ban with --prefix "
	            "%s%u; or let the firewall drop the net)",
	            net, keys->prefix[0], keys->count >= UINT64_C(1) << 32 ? "more than " : "",
	            keys->count >= UINT64_C(1) << 32 ? UINT64_C(1) << 32 : keys->count, most,
	            keys->address.len == 4 ? "" : "32,", keys->bits, keys->address.len == 4 ? "" : "32,", keys->bits);
}

static int fail_narrow(const struct ban_keys *keys, const char *net)
{
	char seen[KEY_TEXT_LEN];
	struct key key;

	make_key(&keys->address, keys->prefix[0], &key);
	return fail(
		"net %s: limits look up addresses with a prefix of %u bits, so no request has this key (ban %s; or, if a "
		"limit has peek prefix=%s%u, ban with --prefix %s%u)",
		net, keys->prefix[0], key_show(seen, key.bytes, key.len, key.len), keys->address.len == 4 ? "" : "32,",
		keys->bits, keys->address.len == 4 ? "" : "32,", keys->bits);
}

int ban_keys_check(struct shmlimit *limiter, const struct ban_keys *keys)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	char net[KEY_TEXT_LEN];
	uint64_t most;

	key_show(net, keys->shown.bytes, keys->shown.len, keys->shown.len);
	if (keys->count == 0)
		return fail_narrow(keys, net);
	if (keys->as_text && !keys->as_net && whole_bits(keys) - keys->bits > 32)
		return fail("net %s: limits look up addresses as text here: ban each address", net);
	shmlimit_info(limiter, &info);
	most = info.slots / 8 < BAN_KEYS_MAX ? info.slots / 8 : BAN_KEYS_MAX;
	return keys->count > 2 && keys->count > most ? fail_wide(keys, net, most) : STATUS_OK;
}

void ban_keys_choose(struct shmlimit *limiter, int rule, struct ban_keys *keys)
{
	struct key_traces traces;
	int nets;

	keys->shown = keys->given;
	if (!keys->is_address)
		return;
	/* WHY NOT its own keys: they are bans that were typed, not what servers look up. */
	traces = key_traces_of_others(limiter, rule);
	nets = traces.v4 >= 0 || traces.v6 >= 0;
	keys->as_text = traces.text || (!keys->as_net && !nets);
	keys->as_net |= nets || !traces.text;
	choose_prefixes(&traces, keys);
	/* More than 1024 texts are not written down: what users have decides. */
	if (keys->is_net && keys->as_text && whole_bits(keys) - keys->bits > 10) {
		keys->as_net = nets || !traces.text;
		keys->as_text = !keys->as_net;
	}
	make_key(&keys->address, keys->bits, &keys->shown);
	keys->count = 0;
	if (keys->bits > keys->prefix[0])
		return;
	if (keys->as_net)
		keys->count += keys_of(keys->bits, keys->prefix[0]) + (keys->prefix[1] != keys->prefix[0]);
	if (keys->as_text)
		keys->count += keys->is_net ? keys_of(keys->bits, whole_bits(keys)) : 1;
}

/* The next net of that prefix. */
static void step(unsigned char *address, unsigned prefix)
{
	unsigned add = 1u << (7 - (prefix - 1) % 8);

	for (unsigned at = (prefix - 1) / 8 + 1; at-- > 0 && add != 0; add >>= 8) {
		add += address[at];
		address[at] = (unsigned char)add;
	}
}

static void make_text(const struct address *address, struct key *key)
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(address->len == 4 ? AF_INET : AF_INET6, address->bytes, text, sizeof(text));
	key->text = NULL;
	key->len = strlen(text);
	memcpy(key->bytes, text, key->len);
}

/* The keys of a prefix in the net; as text, if that is 0. */
static int each_of(const struct ban_keys *keys, unsigned prefix, int (*visit)(void *, const struct key *),
                   void *context)
{
	unsigned bits = prefix > 0 ? prefix : whole_bits(keys);
	struct address address = keys->address;
	struct key key = { .text = NULL };
	int answer = 0;

	/* BOUND: BAN_KEYS_MAX, which ban_keys_check() and unban have checked. */
	for (uint64_t left = keys->is_net ? keys_of(keys->bits, bits) : 1; left > 0 && answer >= 0; left--) {
		if (prefix > 0)
			make_key(&address, prefix, &key);
		else
			make_text(&address, &key);
		answer = visit(context, &key);
		step(address.bytes, bits);
	}
	return answer < 0 ? answer : 0;
}

int ban_keys_each(const struct ban_keys *keys, int (*visit)(void *context, const struct key *key), void *context)
{
	int answer = 0;

	if (!keys->is_address) {
		answer = visit(context, &keys->given);
		return answer < 0 ? answer : 0;
	}
	if (keys->as_text)
		answer = keys->given.text != NULL && !keys->is_net ? visit(context, &keys->given)
		                                                   : each_of(keys, 0, visit, context);
	if (answer >= 0 && keys->as_net)
		answer = each_of(keys, keys->prefix[0], visit, context);
	if (answer >= 0 && keys->as_net && keys->prefix[1] != keys->prefix[0])
		answer = each_of(keys, keys->prefix[1], visit, context);
	return answer < 0 ? answer : 0;
}
