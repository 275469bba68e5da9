/*
 * script: see script.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "script.h"
#include "whole.h"

/*
 * The first part is a count that expires, for which there are four arguments. The time of a script
 * stands still, so GET and PTTL say the same of a key.
 *
 * BOUND: the loops over the thirds of a lease run at most four times, for after that nothing is
 * lent. us() returns the time until that number of tokens is there if no host leases. One local
 * function refills the funnel. Numbers are written with '%.0f', since Lua's default has 14 digits.
 *
 * At most three quarters of what is left are leased, or `need` if that is more. A host that wants
 * more than a few tokens, and would be back at once, gets none until a batch is there: what refills
 * in an eighth of a lease. WHY NOT lease whatever is there: hosts that got next to nothing would
 * ask for next to nothing, and often.
 */
const char script_text[] =
	"if #ARGV == 4 then\n"
	"  local n, bound, ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])\n"
	"  local text = redis.call('GET', KEYS[1])\n"
	"  local value, left = tonumber(text or 0), text and redis.call('PTTL', KEYS[1]) or -2\n"
	"  if not value then return redis.error_reply('" SCRIPT_FOREIGN "') end\n"
	"  local fits = math.min(n, bound - value)\n"
	"  if fits <= 0 or (fits < n and ARGV[4] == '0') then\n"
	"    return { 0, n > bound and -1 or math.max(left, 1) * 1000, value, math.max(left, 0) * 1000, 0 }\n"
	"  end\n"
	"  value = redis.call('INCRBY', KEYS[1], string.format('%.0f', fits))\n"
	"  if left < 0 then\n"
	"    redis.call('PEXPIRE', KEYS[1], ARGV[3])\n"
	"    left = ttl\n"
	"  end\n"
	"  return { fits, 0, value, left * 1000, 0 }\n"
	"end\n"
	"local capacity, num, den = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])\n"
	"local lease, need, want = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])\n"
	"local set, now = tonumber(ARGV[8]), tonumber(ARGV[9])\n"
	"if not now then\n"
	"  local t = redis.call('TIME')\n"
	"  now = t[1] * 1000000 + t[2]\n"
	"end\n"
	"local rate, older, capacity_2, num_2, den_2, lease_2 = ARGV[2], 0, capacity, num, den, lease\n"
	"set = math.min(set, now)\n"
	"local f = redis.call('HMGET', KEYS[1], 'capacity', 'rate', 'lease_us', 'quota', 'time', 'part', 'lent',\n"
	"  'parts', 'set')\n"
	"local quota, time, part, a, b, c, d = capacity, now, 0, 0, 0, 0, 0\n"
	"if f[1] then\n"
	"  capacity, lease = tonumber(f[1]), tonumber(f[3])\n"
	"  num, den = string.match(f[8] or '', '^(%d+)/(%d+)$')\n"
	"  num, den = tonumber(num), tonumber(den)\n"
	"  local since = tonumber(f[9])\n"
	"  if not (capacity and f[2] and lease and den and since) then\n"
	"    return redis.error_reply('" SCRIPT_FOREIGN "')\n"
	"  end\n"
	"  if f[1] ~= ARGV[1] or f[2] ~= rate then\n"
	"    if set <= since then\n"
	"      capacity_2, rate, num_2, den_2, older = capacity, f[2], num, den, 1\n"
	"    end\n"
	"  end\n"
	"  set, lease_2 = math.max(set, since), math.max(lease, lease_2)\n"
	"  quota, time, part = tonumber(f[4]), tonumber(f[5]), tonumber(f[6])\n"
	"  a, b, c, d = string.match(f[7] or '', '^(%d+) (%d+) (%d+) (%d+)$')\n"
	"  a, b, c, d = tonumber(a), tonumber(b), tonumber(c), tonumber(d)\n"
	"  if not (quota and time and part and d) then return redis.error_reply('" SCRIPT_FOREIGN "') end\n"
	"elseif redis.call('EXISTS', KEYS[1]) == 1 then\n"
	"  return redis.error_reply('" SCRIPT_FOREIGN "')\n"
	"end\n"
	"if time > now then time = now end\n"
	"local third = math.ceil(lease / 3)\n"
	"local function refill(to)\n"
	"  local room = capacity - quota - a - b - c - d\n"
	"  if room <= 0 or to - time >= math.ceil((room * den - part) / num) then\n"
	"    quota, part = quota + math.max(room, 0), 0\n"
	"  else\n"
	"    local parts = (to - time) * num + part\n"
	"    quota, part = quota + math.floor(parts / den), parts % den\n"
	"  end\n"
	"  time = to\n"
	"end\n"
	"local age, ages = math.floor(time / third), math.floor(now / third)\n"
	"for i = age + 1, math.min(ages, age + 4) do\n"
	"  refill(i * third)\n"
	"  a, b, c, d = 0, a, b, c\n"
	"end\n"
	"refill(now)\n"
	"if capacity ~= capacity_2 or num ~= num_2 or den ~= den_2 or lease ~= lease_2 then\n"
	"  if lease ~= lease_2 then a, b, c, d = a + b + c + d, 0, 0, 0 end\n"
	"  capacity, num, den, lease, part = capacity_2, num_2, den_2, lease_2, 0\n"
	"  quota, third = math.max(0, math.min(quota, capacity - a - b - c - d)), math.ceil(lease / 3)\n"
	"  ages = math.floor(now / third)\n"
	"end\n"
	"local function us(tokens)\n"
	"  local q, p, w, x, y, z = quota, part, a, b, c, d\n"
	"  for i = ages + 1, ages + 4 do\n"
	"    if tokens <= capacity - a - b - c - d then break end\n"
	"    refill(i * third)\n"
	"    a, b, c, d = 0, a, b, c\n"
	"  end\n"
	"  local wait = time - now + math.max(math.ceil(((tokens - quota) * den - part) / num), 0)\n"
	"  quota, part, time, a, b, c, d = q, p, now, w, x, y, z\n"
	"  return wait\n"
	"end\n"
	"local batch = math.floor(math.min(want * want / 4, capacity / 8, lease * num / den / 8))\n"
	"local enough = math.max(need, batch)\n"
	"local leased, retry = 0, 0\n"
	"if need > capacity then\n"
	"  retry = older == 1 and lease or -1\n"
	"elseif quota < enough then\n"
	"  retry = us(enough)\n"
	"else\n"
	"  leased = math.min(want, math.max(need, quota - math.floor(quota / 4)))\n"
	"end\n"
	"quota, a = quota - leased, a + leased\n"
	"local full = us(capacity)\n"
	"if want > 0 then\n"
	"  redis.call('HSET', KEYS[1], 'capacity', string.format('%.0f', capacity), 'rate', rate,\n"
	"    'lease_us', string.format('%.0f', lease), 'parts', string.format('%.0f/%.0f', num, den),\n"
	"    'set', string.format('%.0f', set),\n"
	"    'quota', string.format('%.0f', quota), 'time', string.format('%.0f', time),\n"
	"    'part', string.format('%.0f', part), 'lent', string.format('%.0f %.0f %.0f %.0f', a, b, c, d))\n"
	"  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(full / 1000) + 1))\n"
	"end\n"
	"return { leased, retry, quota, full, older }\n";

/* Doubles represent all whole numbers up to this one. */
#define EXACT ((uint64_t)1 << 53)

int script_params(struct script_params *params, uint64_t capacity, uint64_t count, uint64_t period_ns,
                  uint64_t lease_us)
{
	unsigned __int128 num = (unsigned __int128)count * 1000;
	uint64_t divisor;

	if (capacity >= EXACT || num >= EXACT || lease_us >= EXACT / 1024)
		return -ERANGE;
	divisor = common_divisor((uint64_t)num, period_ns);
	*params = (struct script_params){
		.capacity = capacity,
		.count = count,
		.period_ns = period_ns,
		.num = (uint64_t)num / divisor,
		.den = period_ns / divisor,
		.lease_us = lease_us,
	};
	/* The largest count of parts: a full funnel plus one microsecond. */
	return (unsigned __int128)capacity * params->den + params->num < EXACT ? 0 : -ERANGE;
}
