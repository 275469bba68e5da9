#!/bin/sh
# output: what could not be written is an error, and never goes into a segment.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

cd "$TMP" || exit
segment=$SEGMENT.s
lost='^shmlimit: standard output: not all could be written.*$'

shmlimit create "$segment" --slots 16
shmlimit rule set "$segment" r --capacity 2 --rate 1/day
printf '[r]\nmode = off\n' >"$TMP/rules.ini"

each() {
	while read -r words; do
		shmlimit $words >/dev/full 2>"$TMP/err"
		is $? 2 "a full disk under '$words' exits 2"
		like "$(cat "$TMP/err")" "$lost" "a full disk under '$words' is said"
		shmlimit $words >&- 2>"$TMP/err"
		is $? 2 "closed output of '$words' exits 2"
		like "$(cat "$TMP/err")" "$lost" "closed output of '$words' is said"
		shmlimit $words >&4 2>"$TMP/err"
		is "$? $(cat "$TMP/err")" "141 " "a pipe that nobody reads ends '$words' by SIGPIPE, without a word"
	done
}

# Descriptor 4 writes to a pipe whose only reader is gone.
mkfifo "$TMP/pipe"
exec 3<>"$TMP/pipe" 4>"$TMP/pipe" 3>&-

each <<END
--help
--version
rule --help
take --help
list
list --json
rule show $segment r
rule show $segment r --json
rule list $segment
rule list $segment --json
rule export $segment
apply $segment $TMP/rules.ini --dry-run
reserve $segment r key --cost 0
acquire $segment r key --cost 0 --json
charge $segment r key --tokens 0
throttle $segment key 15 30 60 0
peek $segment r key
peek $segment r key --json
take $segment r key --cost 0
refund $segment r key --json
inspect $segment
inspect $segment --json
inspect $segment --rule r --key key
verify $segment
verify $segment --json
END

shmlimit take "$segment" r twice >&4 2>"$TMP/err"
is "$? $(cat "$TMP/err") $(shmlimit peek "$segment" r twice --json | jq .remaining)" "141  1" "a take whose answer nobody reads takes"
shmlimit rule set "$segment" wrong --capacity 0 --rate 1/s >&4 2>"$TMP/err"
is "$?" 2 "an error stays an error, whether or not the output is read"

# - is standard output, where a file is written.
is "$(shmlimit metrics "$segment" --output - | tail -n 1)" "# EOF" "metrics --output - writes to standard output"
is "$(ls -- - 2>/dev/null)" "" "metrics --output - makes no file of that name"

shmlimit take "$segment" r key --quiet >/dev/full
is $? 0 "what prints nothing needs no room"
shmlimit take "$segment" r key --quiet <&- >&- 2>&-
is $? 0 "what prints nothing needs no descriptor"
shmlimit take "$segment" r key <&- >&- 2>&-
is $? 2 "a decision whose answer is lost exits 2"
shmlimit rule set "$segment" r --mode dry-run <&- >&- 2>&-
shmlimit rule set "$segment" r --mode nonsense <&- >&- 2>&-
is $? 2 "an error exits 2 though nobody can read its message"
run shmlimit verify "$segment"
is "$rc $out" "0 $segment: sound" "nothing of it was printed into the segment"

done_testing
