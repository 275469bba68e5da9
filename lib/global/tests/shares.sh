#!/bin/sh
# shares: of hosts that share one limit, each has the same part of what it asks for, and the limit is used. The
# simulation (bench/shares.c) has the library and the script as they are.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

[ -x "$BUILD/bench/shares" ] || skip_all "no bench/shares: a package that the benches need is missing"
run "$BUILD/bench/shares" --quick --rows "$TMP/rows"
is "$rc $err" "0 " "every host is admitted the same part, the limit is used, and no request is denied while it has half of its tokens"
# rows UNIT: the values of a figure, one for each scene.
rows() { awk -F '\t' -v unit="$1" '$4 == unit { print $5 }' "$TMP/rows"; }
is "$(rows over | wc -l)" 9 "nine scenes were played"
is "$(rows over | awk '$1 > 0' | wc -l)" 0 "no stretch of time sees more than the capacity and what refills in it"
is "$(rows uneven | awk '$1 > 0.2' | wc -l)" 0 "of hosts with a hundredth of the requests none has a part a fifth below another one's"
done_testing
