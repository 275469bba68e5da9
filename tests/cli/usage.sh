#!/bin/sh
# usage: what every subcommand has in common: --help, wrong options, missing
# and surplus operands; and the manual, which knows each option there is.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

segment=$SEGMENT.s

# The commands that --help lists, one a line, blanks as underscores.
run shmlimit --help
is $rc 0 "shmlimit --help exits 0"
is "$err" "" "shmlimit --help writes to standard output only"
commands=$(printf '%s\n' "$out" | sed -n 's/^  \([a-z ]*\( --\)\{0,1\}[a-z]*[a-z]\) *[A-Z]*.*/\1/p' | sed 's/   *.*//; s/ /_/g')
is "$(echo $commands)" "help size replay create destroy grow list rule_set rule_show rule_list rule_remove rule_export apply_--all apply take peek \
reserve acquire exec hold charge refund count throttle pause reset ban unban bans global_take global_inspect global_ping global_reset global_status agent enable disable inspect keys top stat metrics check verify \
save load" "shmlimit --help lists every command"
run shmlimit -h
like "$out" '^usage: shmlimit COMMAND' "-h is --help"
run shmlimit rule --help
is $rc 0 "shmlimit rule --help exits 0"
is "$(printf '%s\n' "$out" | grep -c '^  rule ')" 5 "shmlimit rule --help lists the five rule commands"

run shmlimit --version
is $rc 0 "shmlimit --version exits 0"
like "$out" '^shmlimit [0-9]+\.[0-9]+\.[0-9]+$' "shmlimit --version prints the name and a version"
version=$out
run shmlimit -V
is "$out" "$version" "-V is --version"

run shmlimit
is "$rc $err" "2 shmlimit: a command is missing (shmlimit --help lists them)" "without a command nothing is done"
run shmlimit lsit
is "$rc $err" "2 shmlimit: lsit: no such command (did you mean list? shmlimit --help lists them)" \
	"an unknown command is named, and the one that was probably meant"
run shmlimit frobnicate
is "$rc $err" "2 shmlimit: frobnicate: no such command (shmlimit --help lists them)" "there may be none"
for word in is tpo destory metric replya incpect; do
	run shmlimit $word
	is "$rc $(printf '%s\n' "$err" | sed 's/.*did you mean \([a-z]*\)?.*/\1/')" \
		"2 $(echo $word | sed 's/^is$/shmlimit: is: no such command (shmlimit --help lists them)/; s/tpo/top/; s/destory/destroy/
		s/metric$/metrics/; s/replya/replay/; s/incpect/inspect/')" "$word: a word of few letters is near only to what differs in one"
done
run shmlimit create "$segment" --slosts 16
is "$rc $err" "2 shmlimit: create: --slosts: no such option (did you mean --slots? shmlimit create --help lists them)" \
	"an option that was probably meant is named"
run shmlimit create "$segment" --slosts=16
is "$rc $err" "2 shmlimit: create: --slosts=16: no such option (did you mean --slots? shmlimit create --help lists them)" \
	"an option that was probably meant is named, whatever its value"
run shmlimit create "$segment" --sl 16
is "$rc $err" "2 shmlimit: create: --sl: ambiguous: could be --slots or --slots-max" "an ambiguous abbreviation is named"
run shmlimit rule set "$segment" r --c 16
is "$rc $err" "2 shmlimit: rule set: --c: ambiguous: could be --capacity, --cold-factor, --count-refused, --credit or --cut-off" \
	"all that it could be are named"
run shmlimit create "$segment" --on deny --slots 16
is "$rc $err" "0 " "an abbreviation of one option is that option"
shmlimit destroy "$segment"

# help and aliases.
run shmlimit help
is "$rc $out" "0 $(shmlimit --help)" "help is --help"
run shmlimit help rule
is "$rc $out" "0 $(shmlimit rule --help)" "help rule is rule --help"
run shmlimit help rule set
is "$rc $out" "0 $(shmlimit rule set --help)" "help of a command of two words is its --help"
run shmlimit help ls
is "$rc $out" "0 $(shmlimit list --help)" "help knows aliases"
run shmlimit help rule sett
is "$rc $err" "2 shmlimit: rule sett: no such command: use rule set, show, list, remove or export" \
	"help names an unknown rule command"
run shmlimit help lsit
is "$rc $err" "2 shmlimit: lsit: no such command (did you mean list? shmlimit --help lists them)" "help names an unknown command"
run shmlimit add "$segment" --slots 16
is "$rc $err" "0 " "add is create"
run shmlimit rule add "$segment" r --capacity 1 --rate 1/s
is "$rc $err" "0 " "rule add is rule set"
is "$(shmlimit rule ls "$segment")" "$(shmlimit rule list "$segment")" "rule ls is rule list"
# Columns are as wide as other tests' segments make them.
row() { grep "^$segment " | tr -s ' '; }
is "$(shmlimit ls | row)" "$(shmlimit list | row)" "ls is list"
is "$(shmlimit show "$segment")" "$(shmlimit inspect "$segment")" "show is inspect"
run shmlimit rule rm "$segment" r
is "$rc $(shmlimit rule list "$segment" --json)" "0 []" "rule rm is rule remove"
run shmlimit rm "$segment"
is "$rc $(shmlimit ls | grep -c "^$segment ")" "0 0" "rm is destroy"
run shmlimit --frob
is "$rc $err" "2 shmlimit: --frob: no such option (shmlimit --help lists commands and options)" \
	"an unknown option before the command is named"
run shmlimit -x create "$segment"
is "$rc $err" "2 shmlimit: -x: no such option (shmlimit --help lists commands and options)" \
	"an unknown letter is named"
run shmlimit rule
is "$rc $err" "2 shmlimit: rule: missing command: use rule set, show, list, remove or export" \
	"rule alone says what it lacks"
run shmlimit rule sett
is "$rc $err" "2 shmlimit: rule sett: no such command: use rule set, show, list, remove or export" \
	"an unknown rule command is named"
run shmlimit global
is "$rc $err" "2 shmlimit: global: missing command: use global take, inspect, ping, reset or status" \
	"global without a command names its commands"

# Each command, called with no operand but those that it does not want.
for c in $commands; do
	words=$(echo "$c" | tr _ ' ')
	# Statuses below 125 are those of the command that it runs; 2 of a plugin of Nagios is a critical state.
	case $words in exec | hold) wrong=125 ;; check) wrong=3 ;; *) wrong=2 ;; esac
	run shmlimit $words --help
	is $rc 0 "$words --help exits 0"
	like "$out" "^usage: shmlimit $words " "$words --help begins with its usage"
	usage=$out
	run shmlimit $words -h
	is "$out" "$usage" "$words -h is --help"
	run shmlimit $words one two three four five six seven --help
	is "$rc $out" "0 $usage" "$words --help wins over what else is wrong"
	run shmlimit $words --frobnicate
	is "$rc $err" "$wrong shmlimit: $words: --frobnicate: no such option (shmlimit $words --help lists them)" \
		"$words names an unknown option"
	run shmlimit $words -x
	is "$rc $err" "$wrong shmlimit: $words: -x: no such option (shmlimit $words --help lists them; -- stands before an operand with a dash)" \
		"$words names an unknown letter"
	run shmlimit $words --help=me
	is "$rc $err" "$wrong shmlimit: $words: --help=me: takes no value (usage: --help)" "$words --help takes no value"
	operands=$(printf '%s\n' "$usage" | sed -n "1s/^usage: shmlimit $words *\(.*\) *\[options\]$/\1/p")
	if [ "${operands%...*}" = "$operands" ]; then
		run shmlimit $words one two three four five six seven
		is $rc $wrong "$words with an operand too many exits $wrong"
		like "$err" "^shmlimit: $words: (one|two|three|four|five|seven): one operand too many( .meant is perhaps: [^;]*[)])?; usage: shmlimit $words" \
			"$words names the operand too many, and says what would be right"
	fi
	for operand in ${operands%%\[*}; do
		run shmlimit $words
		is "$rc $err" "$wrong shmlimit: $words: ${operands%% *} is missing; usage: shmlimit $words ${operands% }" \
			"$words says which operand is missing"
		break
	done
	for option in $(printf '%s\n' "$usage" | sed -n 's/^  \(-., \)\{0,1\}--\([a-z-]*\) [A-Z].*/\2/p'); do
		run shmlimit $words "--$option"
		is $rc $wrong "$words --$option without its value exits $wrong"
		like "$err" "^shmlimit: $words: --$option: missing value .usage: --$option [A-Z]" \
			"$words --$option without its value says so"
	done
	for option in $(printf '%s\n' "$usage" | sed -n 's/^  --\([a-z-]*\)   .*/\1/p'); do
		run shmlimit $words "--$option=yes"
		is "$rc $err" "$wrong shmlimit: $words: --$option=yes: takes no value (usage: --$option)" \
			"$words --$option takes no value"
	done
done

run shmlimit take "$segment" rule
is "$rc $err" "2 shmlimit: take: KEY is missing; usage: shmlimit take NAME RULE KEY [RULE KEY...]" \
	"the first operand that is missing is the one that is named"
run shmlimit throttle "$segment" key 15 30
is "$rc $err" "2 shmlimit: throttle: PERIOD is missing; usage: shmlimit throttle NAME KEY CAPACITY COUNT PERIOD \
[QUANTITY]" "a missing operand is named before one that may be left out"

manual=$SOURCE/tools/shmlimit/shmlimit.1
for c in $commands; do
	words=$(echo "$c" | tr _ ' ')
	grep -q "^\.It Nm Cm $(echo "$words" | sed 's/ --/ Fl -/')\( \|$\)" "$manual"
	ok $? "the manual describes $words"
	for option in $(shmlimit $words --help | sed -n 's/^ .*--\([a-z-]*\).*/\1/p' | sort -u); do
		grep -Eq -e "(Fl|,) -$option( |\$)" "$manual"
		ok $? "the manual knows --$option of $words"
	done
done
helps=$(for c in $commands; do shmlimit $(echo "$c" | tr _ ' ') --help; done; shmlimit --help)
for option in $(grep -o 'Fl -[a-z-]*' "$manual" | sed 's/Fl -//' | sort -u); do
	printf '%s\n' "$helps" | grep -q -e "^ .*--$option\( \|$\)"
	ok $? "--$option of the manual is one that some command has"
done
if command -v mandoc >/dev/null; then
	run mandoc -T lint -W style "$manual"
	is "$rc $out$err" "0 " "the manual is good mdoc"
fi

done_testing
