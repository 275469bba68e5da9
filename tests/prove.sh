#!/bin/bash
# prove.sh PROGRAM...: run test programs beside each other, a processor each. What failed runs again, alone and with
# all its output, so that the end of a log shows what went wrong.
#
# A program of a group in ONCE starts servers and tools of others. If one fails only once, it is named, and the run
# passes. A program of any other group looks for races, which may show only once: its failure is final.
#
# SPDX-License-Identifier: BSD-2-Clause
set -uo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
prove --timer -j"$(nproc)" --exec "${0%/*}/as_user.sh" "$@" 2>&1 | tee "$log"
rc=$?
[ $rc -ne 0 ] || exit 0

mapfile -t failed < <(sed -n 's/ *(Wstat: .*//p' "$log")
[ ${#failed[@]} -gt 0 ] || exit $rc
rc=0
once=()
for program in "${failed[@]}"; do
	echo "== again: $program"
	if ! prove -v --exec "${0%/*}/as_user.sh" "$program"; then
		rc=1
	elif [[ " ${ONCE:-} " == *" $(basename "$(dirname "$program")") "* ]]; then
		once+=("$program")
	else
		echo "== $program failed once: that is a failure"
		rc=1
	fi
done
for program in "${once[@]}"; do echo "== failed once, and passed when it ran again: $program"; done
grep '^Files=' "$log"
[ $rc -eq 0 ] && echo 'Result: PASS' || echo 'Result: FAIL'
exit $rc
