#!/bin/sh
# laws: the arithmetic of lib/, proved by z3 for all inputs within the bounds that stand in laws/: see prove.py. Each
# law has a wrong one beside it that must be refuted. ONLY=PATTERN: those laws alone. PROOF_FULL=1 proves also the five
# that take most of the time; without it they are tried on random arguments, as
# tests/unit/funnel and tests/unit/count do with histories.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

/usr/bin/python3 -c 'import z3' 2>/dev/null || skip_all "no python3-z3"
command -v clang >/dev/null || skip_all "no clang"
cd "$SOURCE" || exit 1
case $(uname -m) in x86_64) cx16=-mcx16 ;; *) cx16= ;; esac
rooms=$(printf -- "-I%s " lib/*/ lib/algorithm/*/)

[ "${PROOF_FULL:-0}" = 1 ] || export BUT='^law_(refill_conserves|refill_in_two_steps|borrow_total|offsets|lives)$'

for file in tests/proof/laws/*.c; do
	# shellcheck disable=SC2086 # several flags, or none
	/usr/bin/python3 tests/proof/prove.py "$file" "$TMP" -std=c11 -D_GNU_SOURCE -Iinclude $rooms $cx16 >"$TMP/out" 2>"$TMP/err"
	is "$? $(cat "$TMP/err")" "0 " "$file can be read"
	while read -r line; do
		case $line in
		'ok - '*) ok 0 "${line#ok - }" ;;
		'not ok - '*) ok 1 "${line#not ok - }" ;;
		*) diag "${line#\# }" ;;
		esac
	done <"$TMP/out"
	grep -q '^ok - refuted' "$TMP/out"
	ok $? "a law that is wrong was refuted"
done
done_testing
