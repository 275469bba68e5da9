#!/bin/sh
# reset: what is named is filled up, and nothing else.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64
shmlimit rule set "$segment" r --capacity 2 --rate 1/d
shmlimit rule set "$segment" q --capacity 2 --rate 1/d

drain() {
	for rule in r q; do
		for key in one two; do
			shmlimit take "$segment" $rule $key --cost 2 --quiet
		done
	done
}

# What remains: r one, r two, q one, q two.
remain() {
	for rule in r q; do
		for key in one two; do
			shmlimit peek "$segment" $rule $key --json | jq -j .remaining
		done
	done
}

drain
is "$(remain)" 0000 "drained funnels are empty"
run shmlimit reset "$segment" --rule r --key one
is "$rc $out$err" "0 keys reset: 1" "reset says how many keys it found"
is "$(remain)" 2000 "--rule and --key fill one key up"
run shmlimit reset "$segment" --rule r --key never-seen
is "$rc $out $err $(remain)" "1  shmlimit: key never-seen: rule r has no such key now: nothing was reset, all its tokens are \
there 2000" "a key that was never seen is not found"
run shmlimit reset "$segment" --rule q
is "$rc $(remain)" "0 2022" "--rule fills up its keys"
drain
run shmlimit reset "$segment" --all
is "$rc $(remain)" "0 2222" "--all fills up all"
run shmlimit reset "$segment" --all
is "$rc $(remain)" "0 2222" "what is full can be filled up again"

drain
wrong() {
	message=$1
	shift
	run shmlimit reset "$segment" "$@"
	is "$rc $out$err" "2 shmlimit: $message" "reset $* is refused"
}

which='reset: give exactly one of --all, --rule RULE, or --rule RULE --key KEY'
wrong "$which"
wrong "$which" --key one
wrong "$which" --all --rule r
wrong "$which" --all --key one
wrong "$which" --all --rule r --key one
wrong "key of 0 bytes: must be 1 to 1024" --rule r --key ''
wrong "key of 1025 bytes: must be 1 to 1024" --rule r --key "$(printf '%01025d' 0)"
wrong 'rule "": bad name: must be 1 to 63 letters, digits and . _ : @ + -' --rule ''
run shmlimit reset "$segment" --rule none
is "$rc $err" "3 shmlimit: rule none: no such rule in segment $segment (shmlimit rule set $segment none --capacity N \
--rate N/s makes it; shmlimit rule list $segment lists them)" "reset needs a rule"
run shmlimit reset "$SEGMENT.none" --all
is "$rc $err" "3 shmlimit: segment $SEGMENT.none: no such segment (shmlimit create $SEGMENT.none makes one; \
shmlimit list lists all)" "reset needs a segment"
is "$(remain)" 0000 "what was refused filled nothing up"

done_testing
