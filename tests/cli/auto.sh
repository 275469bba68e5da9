#!/bin/sh
# auto: a limit that finds its number, from the command: set, shown, exported, saved, looked at.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

facts() { shmlimit rule show "$SEGMENT" "$1" --json | jq -c '[.algorithm, .least, .capacity, .law, .period_ns]'; }

shmlimit create "$SEGMENT" --slots 64
run shmlimit rule set "$SEGMENT" all 'auto at once'
is "$rc $err" "0 " "a limit that finds its number is set"
is "$(facts all)" '["hold",4,200,"vegas",60000000000]' "the default is Vegas, with 4 to 200 places"
run shmlimit rule set "$SEGMENT" all --limit 'auto 8 to 64 at once by aimd for 5m'
is "$rc $(facts all)" '0 ["hold",8,64,"aimd",300000000000]' "bounds, law and period are those that are written"
run shmlimit rule set "$SEGMENT" all --law gradient2
is "$rc $(facts all)" '0 ["hold",8,64,"gradient2",300000000000]' "an option changes the law alone"
run shmlimit rule set "$SEGMENT" all --capacity 6
is "$rc $err" "2 shmlimit: rule all: least 8: must be at most the capacity, 6" "a capacity below the least number is refused"
run shmlimit rule set "$SEGMENT" all --least 2 --capacity 6
is "$rc $(facts all)" '0 ["hold",2,6,"gradient2",300000000000]' "with a lower least number it is set"
run shmlimit rule set "$SEGMENT" all '20 at once'
is "$rc $(facts all)" '0 ["hold",0,20,null,60000000000]' "a fixed number ends the law"
run shmlimit rule set "$SEGMENT" all --least 3
is "$rc $err" "2 shmlimit: rule all: least 3: needs a law, such as --law vegas" "a least number without a law is refused"
run shmlimit rule set "$SEGMENT" all --law reno
is "$rc" 2 "a law that there is not is refused"
run shmlimit rule set "$SEGMENT" login --rate 5/m --law vegas
is "$rc" 2 "a rate has no law"
run shmlimit rule set "$SEGMENT" all --law vegas
is "$rc $(facts all)" '0 ["hold",4,20,"vegas",60000000000]' "a law without a least number has 4"

run shmlimit peek "$SEGMENT" all shop --json
is "$(echo "$out" | jq .limit)" 20 "the limit of an answer is the number"
is "$(shmlimit hold "$SEGMENT" all shop -- shmlimit inspect "$SEGMENT" --json |
	jq -c '.occupancy.shown[] | [.number, .base_ns, .queue_milli]')" "[20,0,0]" \
	"inspect has the number, the measured minimum, and the queue"
like "$(shmlimit hold "$SEGMENT" all shop -- shmlimit inspect "$SEGMENT")" "NUMBER *BASE *QUEUE" \
	"inspect has columns for them"
is "$(shmlimit hold "$SEGMENT" all shop -- shmlimit top "$SEGMENT" --interval 10ms |
	awk '/KEY$/ { for (i = 1; i <= NF; i++) if ($i == "NUMBER") at = i; next }
	at { print $at, $(at + 1) }')" "20 0.0" "top has the number and the queue"
is "$(shmlimit top "$SEGMENT" --interval 10ms | grep -c NUMBER)" 0 "top has no columns for them while no key of such a rule is shown"

shmlimit rule set "$SEGMENT" one 'auto 1 to 1 at once'
shmlimit rule set "$SEGMENT" two 'auto 2 to 2 at once'
is "$(shmlimit hold "$SEGMENT" one k -- shmlimit hold "$SEGMENT" one k -- true 2>&1)" \
	"shmlimit: rule one: denied, and not run: the one place that there is now is held" "hold says that the only place may not be the only one"
is "$(shmlimit hold "$SEGMENT" two k -- shmlimit hold "$SEGMENT" two k -- shmlimit hold "$SEGMENT" two k -- true 2>&1)" \
	"shmlimit: rule two: denied, and not run: all 2 places that there are now are held" "hold says that there are as many places now"
like "$(shmlimit hold "$SEGMENT" all shop -- shmlimit check "$SEGMENT" --rule all --interval 1ms)" \
	"healthy, [0-9]+ decisions? in [^ ]+, 20 places now \\| .* places=20;;;4;20\$" "check of the rule has the number, and its bounds"
shmlimit rule set "$SEGMENT" fresh 'auto at once'
is "$(shmlimit check "$SEGMENT" --rule fresh --interval 1ms | grep -c place)" 0 "check says no number where no key has one"

shmlimit rule export "$SEGMENT" >"$TMP/rules"
is "$(sed -n '/all/,/^$/p' "$TMP/rules" | grep -E '^(law|least) ' | tr '\n' ' ')" "law = vegas least = 4 " "an export has the law and the least number"
shmlimit rule set "$SEGMENT" all '9 at once'
run shmlimit apply "$SEGMENT" "$TMP/rules"
is "$rc $(facts all)" '0 ["hold",4,20,"vegas",60000000000]' "an export that is applied brings them back"
shmlimit save "$SEGMENT" "$TMP/saved"
shmlimit destroy "$SEGMENT"
run shmlimit load "$SEGMENT" "$TMP/saved"
is "$rc $(facts all)" '0 ["hold",4,20,"vegas",60000000000]' "a segment that is saved and loaded has them"
done_testing
