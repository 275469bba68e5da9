#!/bin/sh
# messages: what a beginner does wrong is answered with what helps.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

shmlimit create "$SEGMENT" --slots 1K
run shmlimit rule set "$SEGMENT" a --capacity 3
like "$rc $err" "^2 shmlimit: rule a: not in segment $SEGMENT yet, and a new rule needs a rate too, such as --rate 5/m " \
	"a new rule without a rate is told what it needs"
run shmlimit rule set "$SEGMENT" a --mode off
like "$rc $err" "^3 shmlimit: rule a: no such rule in segment $SEGMENT " "the mode of a rule that is missing cannot be set"
run shmlimit rule set "$SEGMENT" a --rate 5/m
is "$rc $err" "0 " "a new rule needs no more than a rate"

shmlimit rule set "$SEGMENT" r --capacity 3 --rate 3/h
run shmlimit acquire "$SEGMENT" r k --cost 4
is "$rc $err" "1 shmlimit: rule r: 4 tokens never fit: its capacity is 3" "a cost above the capacity is reported as such"
shmlimit rule set "$SEGMENT" r --max-wait 10s
run shmlimit reserve "$SEGMENT" r k --cost 4
is "$rc $err" "1 shmlimit: rule r: 4 tokens never fit: its capacity is 3" "where waits are allowed, too, a cost above the capacity is reported as such"
shmlimit rule set "$SEGMENT" r --max-wait 0
shmlimit take "$SEGMENT" r k --cost 3 --quiet
run shmlimit acquire "$SEGMENT" r k
like "$rc $err" '^1 shmlimit: rule r: its max-wait is 0, so no wait is allowed ' "a rule that allows no wait is said to"

run shmlimit create "$SEGMENT"
is "$rc $err" "2 shmlimit: segment $SEGMENT: exists already (shmlimit inspect $SEGMENT shows it; create --if-missing keeps it)" \
	"a segment that exists is not to be destroyed for being created twice"

# Times for people are rounded up, and never to an earlier one.
for case in '999 1/s' '1 1/m' '7 1/h' '3 1/d' '36 1/d' '5000 1/s' '1000 1/s' '1 10/s'; do
	# shellcheck disable=SC2086 # words
	set -- $case
	shmlimit rule set "$SEGMENT" "t$1" --capacity "$1" --rate "$2"
	shmlimit take "$SEGMENT" "t$1" k --cost "$1" --quiet
	shmlimit peek "$SEGMENT" "t$1" k | sed -n 's/^reset after: //p' >"$TMP/$1"
	[ "$(tr -d '0-9\n' <"$TMP/$1" | wc -c)" -le 4 ] && [ "$(tr -dc '0-9' <"$TMP/$1" | wc -c)" -le 4 ]
	ok $? "the time to full of $1 at $2 has two units and four digits at most: $(cat "$TMP/$1")"
done
# A segment may be in use: of messages that advise to destroy one, each says of which, unless no process can use it.
is "$(find "$SOURCE/tools/shmlimit" "$SOURCE/lib/gate" "$SOURCE/tools/nginx" "$SOURCE/tools/apache" -name '*.c' -exec cat {} + | perl -0777 -ne '
	s/"\s*\n\s*"//g; s/"\s*PRI\w+\s*"/N/g;
	for (/"((?:[^"\\\n]|\\.)*)"/g) { print "$_\n" if /shmlimit destroy|or destroy|remove it with/ && !/no process uses|no other program needs it|damaged|than its file name|before the last boot/ }')" "" \
	"no message advises to destroy a segment that may be in use"
done_testing
