#!/bin/sh
# replay_plans: limits that came with the requests, by a file of plans or as the log has them.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq /usr/bin/python3
cd "$TMP" || exit

# at SECOND ADDRESS PLAN: a line of a JSON log.
at() {
	printf '{"time":"2026-11-21T09:00:%02dZ","remote_addr":"%s","user":{"plan":"%s"},"request":"GET / HTTP/1.1"}\n' "$1" "$2" "$3"
}
{
	for i in 1 2 3 4 5 6; do at 0 10.0.0.1 free; done
	for i in 1 2 3 4 5 6; do at 0 10.0.0.2 gold; done
	for i in 1 2 3; do at 1 10.0.0.3 eve; done
	for i in 1 2 3; do at 1 10.0.0.4 new; done
	for i in 1 2 3; do at 2 10.0.0.5 -; done
	at 30 10.0.0.1 gold
	at 31 10.0.0.1 free
} >log
cat >plans <<'END'
# PLAN LIMIT
free  2/minute
gold	1/s burst 5
eve block

rest unlimited
END
run shmlimit replay log --limit-field user.plan --limits plans
is "$rc $(printf '%s\n' "$out" | tr -s ' ')" "0 lines: 23
without a limit: 6
keys: 5
time: 2026-11-21T09:00:00Z to 2026-11-21T09:00:31Z

RULE ALLOWED DENIED SHARE KEYS FIRST LAST WORST DENIED-THEN
by plan 14 9 39.13% 3 2026-11-21T09:00:00Z 2026-11-21T09:00:31Z 2026-11-21T09:00:00Z 5/s

PLAN LIMIT ALLOWED DENIED SHARE
free 2/minute 2 5 71.43%
eve block 0 3 100.00%
gold 1/s burst 5 6 1 14.29%

RULE KEY REQUESTS DENIED SHARE FIRST LAST
by plan 10.0.0.1 8 5 62.50% 2026-11-21T09:00:00Z 2026-11-21T09:00:31Z
by plan 10.0.0.3 3 3 100.00% 2026-11-21T09:00:01Z 2026-11-21T09:00:01Z
by plan 10.0.0.2 6 1 16.67% 2026-11-21T09:00:00Z 2026-11-21T09:00:00Z" "each request by the limit of its plan"
is "$err" "shmlimit: warning: requests not limited: 6, since plans has no limit for them (the first: new)" \
	"a plan that the file lacks is named, and so is how many requests had none"
echo '* 1/hour' >>plans
is "$(shmlimit replay log --limit-field user.plan --limits plans --json 2>warnings | jq -c '[.without_limit, [.plans[] | [.plan, .limit, .allowed, .denied]]]') $(cat warnings)" \
	'[0,[["free","2/minute",2,5],["*","1/hour",2,4],["eve","block",0,3],["gold","1/s burst 5",6,1]]] ' "the plan * is that of all others"
is "$(shmlimit replay log --limit-field user.plan --limits plans --rule 2/m --json | jq -c '[.rules[] | [.rule, .allowed, .denied]]')" \
	'[["2/m",11,12],["by plan",10,13]]' "beside it another limit is tried by itself"

# The limit itself in the log; and the user of a plain log.
sed 's/"free"/"2\/minute"/; s/"gold"/"1\/s burst 5"/; s/"eve"/"block"/; s/"new"/"lots"/' log >own
is "$(shmlimit replay own --limit-field user.plan --json 2>warnings | jq -c '[.without_limit, [.plans[] | [.limit, .allowed, .denied]]]') $(cat warnings)" \
	'[6,[["2/minute",2,5],["block",0,3],["1/s burst 5",6,1]]] shmlimit: warning: requests not limited: 6, since user.plan has no limit for them (the first: lots)' \
	"without a file the log says the limit"
for user in alice alice alice bob -; do
	printf '10.0.0.1 - %s [21/Nov/2026:09:00:00 +0000] "GET / HTTP/1.1" 200 512\n' $user
done >plain
printf 'alice 2/h\nbob 9/h\n' >users
is "$(shmlimit replay plain --key user --limit-field user --limits users --json 2>/dev/null | jq -c '[.plans[] | [.plan, .allowed, .denied]]')" \
	'[["alice",2,1],["bob",1,0]]' "a plain log has plans by user"

# A crashed server leaves NULs in its log.
for user in '2/h' '2/h\000' '2/h'; do
	printf "10.0.0.1 - $user [21/Nov/2026:09:00:00 +0000] \"GET / HTTP/1.1\" 200 512\n"
done >damaged
is "$(shmlimit replay damaged --limit-field user --json 2>/dev/null | jq -c '[.without_limit, [.plans[] | [.limit, .allowed]]]')" '[1,[["2/h",2]]]' \
	"a limit with a NUL is none"

# A million customers have as many limits: an oracle of exact numbers beside it.
/usr/bin/python3 - >many <<'PYTHON'
import json, random
from fractions import Fraction
random.seed(7)
plans = {f"p{i}": (random.randint(1, 9), random.randint(1, 60), random.randint(1, 20)) for i in range(300)}
with open("many_plans", "w") as out:
    for name, (count, period, burst) in plans.items():
        print(name, f"{count}/{period}s burst {burst}", file=out)
# As lib/algorithm/gcra/gcra.h has it, in quarters of a nanosecond: when a key's bucket was empty, and the place of the longest
# limit that it was asked with since it was full by all of them; of each place, the longest of all limits.
TICKS = 4 * 10**9
empty, place, longest, denied, now = {}, {}, {}, 0, Fraction(0)
for _ in range(20000):
    now += Fraction(random.randint(0, 400), 1000)
    plan = random.choice(list(plans)) if random.random() < .1 else f"p{random.randint(0, 20)}"
    key = f"10.0.0.{random.randint(1, 30)}"
    count, period, burst = plans[plan]
    step = -(-period * TICKS // count)
    full, at = burst * step, int(now * TICKS)
    age = at - empty.get(key, -2**70)
    over = age >= longest.get(place.get(key), 0)
    room = full if over else min(age, full)
    if room < step:
        denied += 1
    else:
        empty[key] = at - room + step
        if over or full > longest[place[key]]:
            place[key] = full.bit_length()
        longest[place[key]] = max(full, longest.get(place[key], 0))
    print(json.dumps({"ts": float(1795251600 + now), "remote_addr": key, "plan": plan}))
with open("many_denied", "w") as out:
    out.write(str(denied))
PYTHON
is "$(shmlimit replay many --limit-field plan --limits many_plans --json | jq '.rules[0].denied, ([.plans[].denied] | add)' | tr '\n' ' ')" \
	"$(cat many_denied) $(cat many_denied) " "keys that are asked by changing limits are decided as exact numbers say"

# Errors.
refused() {
	message=$1
	shift
	run shmlimit replay log "$@"
	is "$rc $err" "2 shmlimit: $message" "replay $* is refused"
}
refused "--limits plans: needs --limit-field FIELD, which says the plan of a request" --limits plans
refused "none: No such file or directory" --limit-field user.plan --limits none
printf 'a 5/m\nb\n' >bad
refused "bad:2: plan b: its limit is missing (a line is PLAN LIMIT, such as gold 100/minute)" --limit-field user.plan --limits bad
printf 'a 5/m\na 6/m\n' >bad
refused "bad:2: plan a: appears in an earlier line already" --limit-field user.plan --limits bad
printf '\n#\n' >bad
refused "bad: there is no plan in it (a line is PLAN LIMIT, such as gold 100/minute)" --limit-field user.plan --limits bad
printf 'a 20 at once\n' >bad
refused "bad:1: limit 20 at once: a log does not say how long requests take: must be a rate, such as 5/minute" --limit-field user.plan --limits bad
printf 'a 1/y burst 9\n' >bad
refused "bad:1: limit 1/y burst 9: out of range: at most a burst of 2^48, all of which comes back within 366 days" --limit-field user.plan --limits bad
done_testing
