#!/bin/sh
# enable, disable: one switch for a whole segment.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
state() { shmlimit list --json | jq -c --arg name "$segment" '.[] | select(.name == $name) | .enabled'; }

shmlimit create "$segment" --slots 16
shmlimit rule set "$segment" r --capacity 1 --rate 1/d
shmlimit take "$segment" r key --quiet
run shmlimit take "$segment" r key --quiet
is $rc 1 "an enabled segment denies"

run shmlimit disable "$segment"
is "$rc $out$err" "0 " "disable prints nothing"
is "$(state)" false "a disabled segment says so"
run shmlimit take "$segment" r key --quiet
is $rc 0 "a disabled segment allows everything"
run shmlimit peek "$segment" r key --quiet
is $rc 0 "a peek says that it would"
run shmlimit disable "$segment"
is "$rc $(state)" "0 false" "disable may be said twice"

run shmlimit enable "$segment"
is "$rc $out$err" "0 " "enable prints nothing"
is "$(state)" true "an enabled segment says so"
run shmlimit take "$segment" r key --quiet
is $rc 1 "funnels are as they were"
run shmlimit enable "$segment"
is "$rc $(state)" "0 true" "enable may be said twice"

for verb in enable disable; do
	run shmlimit $verb "$SEGMENT.none"
	is "$rc $out$err" "3 shmlimit: segment $SEGMENT.none: no such segment (shmlimit create $SEGMENT.none makes one; \
shmlimit list lists all)" "$verb needs a segment"
	run shmlimit $verb a/b
	is $rc 2 "$verb needs a segment's name"
done

done_testing
