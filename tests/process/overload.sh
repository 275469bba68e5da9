#!/bin/sh
# overload: in simulated time, of tenants that share places each small one is served while another asks for ten times all.
# The simulation is bench/overload.c.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

[ -x "$BUILD/bench/overload" ] || skip_all "no bench/overload: a package that the benches need is missing"
run "$BUILD/bench/overload" --quick --rows "$TMP/rows"
is "$rc $err" "0 " "with a share of 4 small tenants are served 99 % and places are used 89 %, by one tenant alone 81 %"
# figure SUBJECT UNIT
figure() { awk -F '\t' -v subject="$1" -v unit="$2" '$2 == subject && $4 == unit { print $5 }' "$TMP/rows"; }
is "$(figure "total alone" served | awk '{ print $1 < 0.2 }')" 1 "by a total limit alone small tenants are not served: $(figure "total alone" served)"
is "$(figure "share 4" off | awk '{ print $1 <= 1 }')" 1 "each of k greedy tenants holds share * C / (1 + share * k) places, within one"
run "$BUILD/bench/overload" --quick --rows "$TMP/again"
cmp -s "$TMP/rows" "$TMP/again"
ok $? "the simulation has the same figures each time"
done_testing
