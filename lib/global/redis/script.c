/*
 * script: see script.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "script.h"

/*
 * The first part is a count that expires, for which there are six arguments. The time of a script
 * stands still, so HMGET and PTTL say the same of a key. WHY NOT a key of its own for what was
 * added: a cluster answers TRYAGAIN for two keys while it moves them. Of each host's latest
 * additions the script keeps as many as its argument says, or a few more: none is longer than 34
 * bytes.
 *
 * BOUND: the loops over cells run at most four times, for after that nothing is lent. us() returns
 * the time until no more than `target` is owed if no host leases. Numbers are written with 17
 * digits, since Lua's default has 14.
 *
 * At most three quarters of what is left are leased, or `need` if that is more. Of a funnel that is
 * over three quarters full a host gets more than it asks for, if it can use it: an eighth of what
 * is above that. So a key that is far from its limit asks less than once a request, and all that
 * hosts hold of it in vain is a quarter of the funnel at most. WHY NOT a quarter of it: in a
 * simulation 1.3 % of the requests at twice a rate of 60 a minute were denied while the limit had a
 * token, with an eighth 0.9 %.
 *
 * Chance is a number from 0 to 1: the microsecond of the question times the golden ratio. WHY NOT
 * math.random(): each script begins it again. A sixth of the grant is taken off the tokens that
 * decide: a host that asks seldom and for much meets more of them than those that ask in between.
 */
const char script_text[] =
	"if #ARGV == 6 then\n"
	"  local n, bound, ttl, keep = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5])\n"
	"  local host, number = string.sub(ARGV[6], 1, 16), string.sub(ARGV[6], 17)\n"
	"  local found = redis.call('HMGET', KEYS[1], 'count', host)\n"
	"  local value, added = tonumber(found[1] or 0), found[2] or ''\n"
	"  local left = found[1] and redis.call('PTTL', KEYS[1]) or -2\n"
	"  if not value then return redis.error_reply('" SCRIPT_FOREIGN "') end\n"
	"  local _, equals = string.find(added, ' ' .. number .. '=', 1, true)\n"
	"  local before = equals and tonumber(string.match(added, '^%d+', equals + 1))\n"
	"  if before then return { before, 0, value, math.max(left, 0) * 1000, 0 } end\n"
	"  local fits = math.min(n, bound - value)\n"
	"  if fits <= 0 or (fits < n and ARGV[4] == '0') then\n"
	"    return { 0, n > bound and -1 or math.max(left, 1) * 1000, value, math.max(left, 0) * 1000, 0 }\n"
	"  end\n"
	"  value = value + fits\n"
	"  if keep == 1 then added = '' end\n"
	"  added = added .. ' ' .. number .. string.format('=%.0f', fits)\n"
	"  if #added > 72 * keep then added = string.match(string.sub(added, -36 * keep), ' .*') end\n"
	"  redis.call('HSET', KEYS[1], 'count', string.format('%.0f', value), host, added)\n"
	"  if left < 0 then\n"
	"    redis.call('PEXPIRE', KEYS[1], ARGV[3])\n"
	"    left = ttl\n"
	"  end\n"
	"  return { fits, 0, value, left * 1000, 0 }\n"
	"end\n"
	"local full, token, need = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])\n"
	"local want, most, lease, cell, now = need, 0, 0, 1, nil\n"
	"if ARGV[4] then\n"
	"  want, most, lease, cell = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])\n"
	"  now = tonumber(ARGV[8])\n"
	"end\n"
	"if not now then\n"
	"  local t = redis.call('TIME')\n"
	"  now = t[1] * 1000000 + t[2]\n"
	"end\n"
	"local debt, time, back, lent, a, b, c, d = 0, now, false, 0, 0, 0, 0, 0\n"
	"local text = redis.call('GET', KEYS[1])\n"
	"if text then\n"
	"  time, debt = tonumber(string.sub(text, 1, 16)), tonumber(string.sub(text, 17))\n"
	"  local stored\n"
	"  if not debt then\n"
	"    debt, stored, a, b, c, d = string.match(text, '^%d+ (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')\n"
	"    debt, stored = tonumber(debt), tonumber(stored)\n"
	"    a, b, c, d = tonumber(a), tonumber(b), tonumber(c), tonumber(d)\n"
	"    if not (debt and stored and stored >= 1 and a and b and c and d) then time = nil end\n"
	"  end\n"
	"  if not (time and time >= 0 and debt >= 0) then return redis.error_reply('" SCRIPT_FOREIGN "') end\n"
	"  back = time > now\n"
	"  if back then time = now end\n"
	"  if stored then\n"
	"    local from = math.floor(time / stored)\n"
	"    for i = from + 1, math.min(math.floor(now / stored), from + 4) do\n"
	"      debt = math.max(debt - (i * stored - time), a + b + c + d)\n"
	"      time, a, b, c, d = i * stored, b, c, d, 0\n"
	"    end\n"
	"    lent = a + b + c + d\n"
	"    if stored > cell then cell = stored elseif stored < cell then a, b, c, d = 0, 0, 0, lent end\n"
	"  end\n"
	"  debt = math.max(debt - (now - time), lent)\n"
	"end\n"
	"local left, leased, retry, lasts = math.floor((full - debt) / token), 0, 0, 0\n"
	"if left < need then\n"
	"  retry = debt + need * token - full\n"
	"elseif want > 0 then\n"
	"  local spare, scarce = lease / token / 4, math.min(full / 4, 200000) - 4 * token\n"
	"  leased = math.min(want, math.max(need, left - math.floor(left / 4)))\n"
	"  if spare < 8 and full / token < 8192 then leased = math.min(leased, need + math.floor(spare)) end\n"
	"  local chance = math.max(full - debt - leased * token / 6, 0) / scarce\n"
	"  if scarce > 0 and chance < 1 then\n"
	"    chance = chance * chance\n"
	"    chance = chance / (chance + leased / want * (1 - chance))\n"
	"    if now % 999983 * 0.6180339887498949 % 1 >= chance then leased, retry = 0, 1 end\n"
	"  end\n"
	"  if leased <= 30 and full / token < 131072 and 8 * lease <= full then lease = 3 * lease end\n"
	"  if most > leased and retry == 0 then\n"
	"    most = math.min(most, need + math.floor((left - need - full / token * 3 / 4) / 8))\n"
	"    if most > leased then leased, lasts, lease = most, 3 * cell, 3 * cell end\n"
	"  end\n"
	"  local cost = leased * token\n"
	"  debt, left = debt + cost, left - leased\n"
	"  if leased > need then\n"
	"    local ahead = math.floor((now + lease) / cell) - math.floor(now / cell)\n"
	"    if ahead == 0 then a = a + cost\n"
	"    elseif ahead == 1 then b = b + cost\n"
	"    elseif ahead == 2 then c = c + cost\n"
	"    else d = d + cost end\n"
	"    lent = lent + cost\n"
	"  end\n"
	"end\n"
	"local ends = debt\n"
	"if lent > 0 then\n"
	"  local function us(target)\n"
	"    local x, t, l, p, q, r = debt, now, lent, b, c, d\n"
	"    for i = math.floor(now / cell) + 1, math.floor(now / cell) + 4 do\n"
	"      if l <= target then break end\n"
	"      x = math.max(x - (i * cell - t), l)\n"
	"      t, l, p, q, r = i * cell, p + q + r, q, r, 0\n"
	"    end\n"
	"    return t - now + math.max(x - target, 0)\n"
	"  end\n"
	"  ends = us(0)\n"
	"  if left < need then retry = us(full - need * token) end\n"
	"end\n"
	"if need * token > full then retry = -1 end\n"
	"if leased > 0 or (back and want > 0) then\n"
	"  if lent > 0 then\n"
	"    text = string.format('%016.0f %.17g %.0f %.17g %.17g %.17g %.17g', now, debt, cell, a, b, c, d)\n"
	"  else\n"
	"    text = string.format('%016.0f %.17g', now, debt)\n"
	"  end\n"
	"  redis.call('SET', KEYS[1], text, 'PX', math.ceil(ends / 1000) + 1)\n"
	"end\n"
	"return { leased, math.ceil(retry), math.max(left, 0), math.ceil(ends), lasts }\n";

/* A full funnel has fewer parts: doubles represent all whole numbers up to this one. */
#define EXACT ((uint64_t)1 << 53)

/* The smallest part: a trillionth of a microsecond is small enough for any rate. */
#define PART_BITS_MAX 40u

/*
 * A lease from a funnel that is over three quarters full lasts a part of the time to full, and no
 * longer than LONG_US; unless that is less than some leases, or many tokens come back in a lease.
 * The same numbers are in algorithm/lease/lease.c.
 */
#define LONG_US UINT64_C(20000000)
#define LONG_PARTS 4
#define LONG_LEASES 8u
#define LONG_RATE 32

/*
 * The same numbers are in the script. Leases of 29 or 30 tokens have the size of 28, and above the
 * capacity sizes leave out bits (algorithm/lease/lease.c).
 */
#define FEW 30u
#define FEW_CAPACITY 131072
#define FEW_PARTS 8

uint64_t script_lease_us(const struct script_params *params, uint64_t tokens)
{
	double lease_us = (double)params->lease_us;

	return tokens <= FEW && params->full < FEW_CAPACITY * params->token && FEW_PARTS * lease_us <= params->full
	               ? SCRIPT_FEW_TIMES * params->lease_us
	               : params->lease_us;
}

int script_params(struct script_params *params, uint64_t capacity, uint64_t count, uint64_t period_ns,
                  uint64_t lease_us)
{
	unsigned __int128 ns = period_ns, den = (unsigned __int128)count * 1000, parts;
	unsigned bits = PART_BITS_MAX;
	uint64_t long_us;

	if (capacity >= EXACT || count >= EXACT || period_ns >> 62 != 0 || lease_us >= EXACT / 1024)
		return -ERANGE;
	while (bits > 0 && (unsigned __int128)capacity * (((ns << bits) + den - 1) / den) >= EXACT)
		bits--;
	parts = ((ns << bits) + den - 1) / den;
	if (capacity * parts >= EXACT)
		return -ERANGE;
	params->token = (double)(uint64_t)parts / (double)((uint64_t)1 << bits);
	params->full = (double)(uint64_t)(capacity * parts) / (double)((uint64_t)1 << bits);
	params->lease_us = lease_us;
	long_us = params->full / LONG_PARTS < (double)LONG_US ? (uint64_t)params->full / LONG_PARTS : LONG_US;
	if (long_us < LONG_LEASES * lease_us || (double)lease_us >= LONG_RATE * params->token)
		long_us = lease_us;
	if (long_us < script_lease_us(params, 1))
		long_us = script_lease_us(params, 1);
	params->cell_us = (long_us + 2) / 3;
	return 0;
}

int script_arguments(const struct script_params *params, const struct script_question *q, int always_all,
                     char text[SCRIPT_ARGUMENTS_MAX][SCRIPT_ARGUMENT_MAX])
{
	const uint64_t numbers[] = { q->need, q->want, q->most, params->lease_us, params->cell_us };
	int n = q->want <= q->need && q->most <= q->need && !always_all ? 1 : 5;

	snprintf(text[0], SCRIPT_ARGUMENT_MAX, "%.17g", params->full);
	snprintf(text[1], SCRIPT_ARGUMENT_MAX, "%.17g", params->token);
	for (int i = 0; i < n; i++)
		snprintf(text[2 + i], SCRIPT_ARGUMENT_MAX, "%" PRIu64, numbers[i]);
	return 2 + n;
}
