# targets: from the rows of all benches, the figures that have to be reached.
#
# SPDX-License-Identifier: BSD-2-Clause
BEGIN {
	FS = "\t"
}

# What a bench said several times counts as the median.
{
	key = $1 SUBSEP $2 SUBSEP $3 SUBSEP $4
	for (i = ++said[key]; i > 1 && list[key, i - 1] + 0 > $5 + 0; i--)
		list[key, i] = list[key, i - 1]
	list[key, i] = $5
	v[key] = list[key, int((said[key] + 1) / 2)]
}

$1 == "global_sim" && $4 == "over-admission" && (over_most == "" || $5 > over_most) {
	over_most = $5 + 0
}

# A ratio of two rows, or "" where one is missing.
function over(a, b) {
	return a == "" || b == "" || b == 0 ? "" : a / b
}

function least(a, b) {
	return a == "" || b == "" ? "" : a + 0 < b + 0 ? a : b
}

# sense is 1 where more is better, -1 where less is. A miss that three digits do not show has four.
function line(figure, value, wanted, sense,    verdict, digits) {
	verdict = value == "" ? "not measured" : (value - wanted) * sense >= 0 ? "yes" : "NO"
	digits = verdict == "NO" && sprintf("%.3g", value) + 0 == wanted ? "%.4g" : "%.3g"
	printf("| %s | %s | %s %s | %s |\n", figure, value == "" ? "" : sprintf(digits, value), \
		(sense > 0 ? "at least" : "at most"), wanted, verdict)
}

END {
	one = v["processes", "allowed, one key", "2", "decisions/s"]
	slot = v["compare", "shmlimit", "live key", "bytes"]
	redis1 = least(v["compare", "Redis, a script", "1", "shmlimit / it"], \
		least(v["compare", "Redis, a script", "2", "shmlimit / it"], \
		v["compare", "Redis, a script", "4", "shmlimit / it"]))
	redis32 = least(v["compare", "Redis, a script, pipelined", "1", "shmlimit / it"], \
		least(v["compare", "Redis, a script, pipelined", "2", "shmlimit / it"], \
		v["compare", "Redis, a script, pipelined", "4", "shmlimit / it"]))
	print "| figure | measured | wanted | reached |"
	print "| --- | --- | --- | --- |"
	line("allowed, hot key, one process / floor", v["decide", "allowed", "hot key", "/ floor"], 1.2, -1)
	line("... with its result / floor", v["decide", "allowed, with result", "hot key", "/ floor"], 1.35, -1)
	line("denied, hot key, one process / floor", v["decide", "denied", "hot key", "/ floor"], 1.1, -1)
	line("denied, hot key, 2 processes / one", v["processes", "denied, one key", "2", "/ one process"], 1.9, 1)
	line("allowed, hot key, 2 processes / one", v["processes", "allowed, one key", "2", "/ one process"], 1, 1)
	line("allowed, hot key, 2 processes / bare CAS loop", \
		over(one, v["processes", "bare CAS, one word", "2", "decisions/s"]), 2, 1)
	line("allowed, hot key, 2 processes / mutex zone", \
		over(one, v["processes", "zone: allowed, one key", "2", "decisions/s"]), 2, 1)
	line("gate, one limit with fields, ns", v["gate", "gate, fields", "one client", "ns"], 300, -1)
	line("Python, a take, ns", v["bindings", "Python: take", "one client", "ns"], 350, -1)
	line("Python, WSGI, one limit with fields, ns", v["bindings", "Python: WSGI, added by the middleware", "one client", "ns"], 2000, -1)
	line("Python, ASGI, one limit with fields, ns", v["bindings", "Python: ASGI, added by the middleware", "one client", "ns"], 3000, -1)
	line("10^6 uniform keys / (floor + random line)", \
		v["keys", "uniform", "1000000", "/ (floor + line)"], 1.3, -1)
	line("10^7 uniform keys / (floor + random line)", \
		v["keys", "uniform", "10000000", "/ (floor + line)"], 1.3, -1)
	line("keys that refill at once / that never do, load 0.8", v["keys", "refill at once", "0.8", "/ never"], 1.15, -1)
	line("keys that refill at once, all slots used before / that never do, load 0.8", \
		v["keys", "refill at once, used table", "0.8", "/ never"], 1.15, -1)
	line("keys that refill after 1 ms / that never do, load 0.8", v["keys", "refill 1 ms", "0.8", "/ never"], 1.15, -1)
	line("10^7 keys, single / a key of a batch of 32", v["batch", "10000000 keys", "32", "single / it"], 3, 1)
	line("mutex zone, spread keys, 1 process: shmlimit / it", \
		v["compare", "mutex zone", "1", "shmlimit / it"], 1.5, 1)
	line("mutex zone, spread keys, 4 processes: shmlimit / it", \
		v["compare", "mutex zone", "4", "shmlimit / it"], 3, 1)
	line("Redis, a script, 1, 2, 4 processes, the least: shmlimit / it", redis1, 300, 1)
	line("the same, 32 in a pipeline", redis32, 50, 1)
	line("share of keys without a slot, load 0.8", v["occupancy", "table", "0.8", "share without a slot"], 0.0005, -1)
	line("share of keys without a slot, load 0.9", v["occupancy", "table", "0.9", "share without a slot"], 0.01, -1)
	line("bytes a live key: mutex zone / shmlimit at load 0.8", \
		over(v["compare", "mutex zone", "live key", "bytes"], slot), 6, 1)
	line("bytes a live key: Redis / shmlimit at load 0.8", \
		over(v["compare", "Redis, a script", "live key", "bytes"], slot), 6, 1)
	line("window of 100, allowed / funnel, allowed", v["decide", "window, allowed", "hot key", "/ allowed"], 1.5, -1)
	line("count / take", v["decide", "count", "hot key", "/ allowed"], 1.2, -1)
	line("enter and leave, 1 of 64 places / take", v["decide", "enter + leave", "hot key", "/ allowed"], 2.5, -1)
	line("... while all others are held / take", v["decide", "enter + leave, 63 held", "hot key", "/ allowed"], 2.5, -1)
	line("a decision from a lease / a take", v["global", "leased", "hot key", "/ take"], 1.2, -1)
	for (i = split("80 110 200", demands, " "); i > 0; i--)
		line("4 hosts, demand " demands[i] " %: commands to the backend in 1,000 decisions", \
			v["global", "demand " demands[i] " %", "4 hosts", "commands / 1000 decisions"], 1, -1)
	line("4 hosts, demand 110 %: share of the limit that is used, from full", \
		v["global", "demand 110 %", "4 hosts", "use from full"], 0.98, 1)
	line("4 hosts, demand 200 %: share of the limit that is used, from full", \
		v["global", "demand 200 %", "4 hosts", "use from full"], 0.98, 1)
	n = split("25,000/s 2,000/s", hot, " ")
	for (i = 1; i <= n; i++) {
		line("agent, hot key, " hot[i] ": commands to the backend in 1,000 decisions", \
			v["agent", "hot key", hot[i], "commands / 1000 decisions"], 1, -1)
		line("agent, hot key, " hot[i] ": p99.9 of a take, microseconds", v["agent", "hot key", hot[i], "p99.9, us"], 20, -1)
	}
	line("agent, cold keys a second, one connection", v["agent", "cold keys", "1 connection", "decisions/s"], 100000, 1)
	for (i = split("50 10 1 0.1", away, " "); i > 0; i--)
		line("agent, demand 110 %, " away[i] " ms away: share of the limit that is used", \
			v["agent", "demand 110 %", away[i] " ms away", "use"], 0.95, 1)
	line("agent, 1 % of replies late: share of requests wrongly denied", v["agent", "1 % late replies", "demand 50 %", "denied"], \
		0.01, -1)
	line("agent, backend stopped: p99.9 of other limits / before", v["agent", "server stopped", "other limits", "p99.9 / before"], \
		2, -1)
	line("agent, backend back: milliseconds until all is as before", v["agent", "server stopped", "its return", "ms"], 1000, -1)
	line("agent killed: milliseconds until another serves", v["agent", "agent killed", "another serves", "ms"], 1000, -1)
	for (i = split("many hosts,many hosts; 3 servers", many, ","); i > 0; i--) {
		sub(";", ",", many[i])
		line("agent, " many[i] ", 64 workers each: connections of a server / hosts", v["agent", many[i], "a server", "connections / host"], 1, -1)
		line("agent, " many[i] ", demand 150 %: share of the limit that is used", v["agent", many[i], "demand 150 %", "use"], 0.95, 1)
	}
	line("agent, one of 3 servers stopped: share of requests for keys of the others wrongly denied", \
		v["agent", "one of 3 servers stopped", "keys of the others", "denied"], 0, -1)
	line("agent, one of 3 servers stopped: p99.9 of keys of the others / before", \
		v["agent", "one of 3 servers stopped", "keys of the others", "p99.9 / before"], 2, -1)
	line("agent, the worst scene: tokens admitted beyond capacity + rate * time", v["agent", "all scenes", "the worst", "over"], 0, -1)
	line("simulated hosts, the worst scene: tokens admitted beyond capacity + rate * time", over_most, 0, -1)
	line("4 simulated hosts, demand 2: share of the limit that is used", \
		v["global_sim", "even, demand 2", "4", "use"], 0.98, 1)
	line("4 simulated hosts, demand 2: commands to the backend / decision", \
		v["global_sim", "even, demand 2", "4", "commands / decision"], 0.001, -1)
	line("nginx, 1 worker, requests/s: shmlimit / limit_req", \
		v["web", "nginx, 1, shmlimit quiet", "16 connections", "/ own"], 1, 1)
	line("nginx, 4 workers, requests/s: shmlimit / limit_req", \
		v["web", "nginx, 4, shmlimit quiet", "16 connections", "/ own"], 1, 1)
	line("Apache, 1 child, requests/s: shmlimit / mod_qos", \
		v["web", "Apache, 1, shmlimit quiet", "16 connections", "/ own"], 1, 1)
	line("Apache, 4 children, requests/s: shmlimit / mod_qos", \
		v["web", "Apache, 4, shmlimit quiet", "16 connections", "/ own"], 1, 1)
	line("nginx, Redis stopped, no limit: p99.9 / before", v["outage", "no limit", "stopped", "p99.9 / before"], 2, -1)
	line("nginx, Redis stopped, limit of this host: p99.9 / before", \
		v["outage", "limit of this host", "stopped", "p99.9 / before"], 2, -1)
	line("nginx, Redis goes on: milliseconds until a request is decided with it", v["outage", "its return", "stopped", "ms"], \
		1000, -1)
}
