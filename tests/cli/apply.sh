#!/bin/sh
# apply, rule export: the rules become those of a file, all of it or nothing.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64 --rules 5 --rules-max 5
cd "$TMP"
rules() {
	shmlimit rule list "$segment" --json |
		jq -r '.[] | "\(.name) \(.capacity) \(.rate) \(.max_wait_ns) \(.next_pays) \(.mode)"'
}
enabled() { shmlimit inspect "$segment" --json | jq .segment.enabled; }

# apply OPTION...: of standard input.
apply() {
	shmlimit apply "$segment" - "$@" >"$TMP/.out" 2>"$TMP/.err"
	rc=$?
	out=$(cat "$TMP/.out")
	err=$(cat "$TMP/.err")
}

cat >rules.ini <<END
# The site's limits.
[login]
capacity = 15
rate = 30/60s
; mails may wait
[mail]
capacity=20
	rate: 10/s   ; an inline comment
  max-wait =  1m
next-pays = yes
mode = dry-run

[*]
enabled = no
END

plan="+ rule login capacity 15 rate 30/m
+ rule mail capacity 20 rate 10/s max-wait 1m next-pays yes mode dry-run
~ enabled yes -> no"
run shmlimit apply "$segment" rules.ini --dry-run
is "$rc $out$err" "0 $plan" "--dry-run shows what would change"
is "$(rules) $(enabled)" " true" "--dry-run changes nothing"
run shmlimit apply "$segment" rules.ini
is "$rc $out$err" "0 $plan" "apply shows the same"
is "$(rules) $(enabled)" "login 15 30/m 0 false enforce
mail 20 10/s 60000000000 true dry-run false" "apply does what --dry-run showed"
run shmlimit apply "$segment" rules.ini
is "$rc $out$err" "0 " "what is so already is not shown"
run shmlimit apply "$segment" rules.ini --prune
is "$rc $out$err" "0 " "a file of all rules leaves nothing to prune"

# Changes.
shmlimit enable "$segment"
shmlimit take "$segment" login key --cost 5 --quiet
apply <<END
[login]
capacity = 20
END
is "$rc $out$err" "0 ~ rule login capacity 15 -> 20" "a rule that exists needs no key but what changes"
is "$(shmlimit peek "$segment" login key --json | jq '.remaining >= 10 and .remaining < 20')" true \
	"keys of a rule that changed keep their tokens"
apply <<END
[mail]
rate = 1/s
max-wait = 0s
next-pays = no
mode = enforce
[login]
capacity = 20
rate = 30/m
END
is "$rc $out$err" "0 ~ rule mail rate 10/s -> 1/s max-wait 1m -> 0s next-pays yes -> no mode dry-run -> enforce" \
	"what changes is shown, and no more"
is "$(enabled)" true "the switch stays where it is not spoken of"
apply </dev/null
is "$rc $out$err" "0 " "an empty file changes nothing"
apply --dry-run <<END
[*]
[login]
END
is "$rc $out$err" "0 " "empty sections change nothing"

# Pruning.
shmlimit throttle "$segment" key 15 30 60 >/dev/null
shmlimit rule set "$segment" old --capacity 1 --rate 1/s
shmlimit rule set "$segment" older --capacity 1 --rate 1/s
printf '[login]\n[new]\ncapacity = 1\nrate = 1/s\n' >prune.ini
before=$(rules)
run shmlimit apply "$segment" prune.ini
is "$rc $out$err" "2 shmlimit: prune.ini:2: rule new: no room for another rule in segment $segment: remove one first (shmlimit rule remove), or create the segment with a larger --rules-max" "a rule for which there is no room is refused"
is "$(rules)" "$before" "before anything is changed"
run shmlimit apply "$segment" prune.ini --prune --dry-run
is "$rc $out$err" "0 - rule mail
- rule old
- rule older
+ rule new capacity 1 rate 1/s" "--prune shows what would go, and what has room then"
is "$(rules)" "$before" "with --dry-run it goes not yet"
run shmlimit apply "$segment" prune.ini --prune
is "$rc $(rules | sort)" "0 login 20 30/m 0 false enforce
new 1 1/s 0 false enforce
~throttle 0 null 0 false enforce" "what is not in the file goes, but a throttle's stays"

# Export.
shmlimit rule set "$segment" login --max-wait 90s --next-pays yes --mode off
run shmlimit rule export "$segment"
is "$rc $err" "0 " "rule export works"
printf '%s\n' "$out" >export.ini
is "$out" "# Segment $segment, for shmlimit apply
[*]
slots = 64
slots-max = 1Ki
mode = 0600
group = $(id -gn)
on-full = evict
rules = 5
rules-max = 5
store-keys = 0
clock = precise
enabled = yes

[login]
algorithm = funnel
capacity = 20
rate = 30/m
max-wait = 1m30s
next-pays = yes
protected = no
mode = off

[new]
algorithm = funnel
capacity = 1
rate = 1/s
max-wait = 0s
next-pays = no
protected = no
mode = enforce

# Not ~throttle: made by a library when it is needed" "what the segment was made with and all of each rule is there"
run shmlimit apply "$segment" export.ini --prune
is "$rc $out$err" "0 " "applied, it changes nothing"
before=$(rules)
shmlimit rule set "$segment" login --capacity 1 --rate 1/w --max-wait 0 --next-pays no --mode enforce
shmlimit rule remove "$segment" new
shmlimit disable "$segment"
run shmlimit apply "$segment" export.ini
is "$rc $out$err" "0 ~ rule login capacity 1 -> 20 rate 1/w -> 30/m max-wait 0s -> 1m30s next-pays no -> yes \
mode enforce -> off
+ rule new capacity 1 rate 1/s
~ enabled no -> yes" "later it brings all of them back"
is "$(rules | sort) $(enabled)" "$(printf '%s\n' "$before" | sort) true" "rules that were brought back are as they were"

# How a file may be written.
name=$(printf '%059d.:@+' 0)
printf '\357\273\277[%s] # the longest name\r\ncapacity = 1\r\nrate = 1/s\r\n\r\n  # indented\r\n' "$name" >odd.ini
apply <odd.ini
is "$rc $out$err" "0 + rule $name capacity 1 rate 1/s" "a byte order mark and carriage returns do no harm"
shmlimit rule export "$segment" >odd.ini
apply <odd.ini
is "$rc $out$err" "0 " "the longest name can be exported and applied"
printf ';%0197d\n[new]\ncapacity = 2' 0 >odd.ini
apply <odd.ini
is "$rc $out$err" "0 ~ rule new capacity 1 -> 2" "a line may have 198 bytes, and the last one no end"

# All or nothing.
before=$(rules)
was=$(sum_file "$SHM$segment")

# wrong LINE MESSAGE: of the file at standard input, whose other lines would change something.
wrong() {
	cat >wrong.ini
	for options in '' --dry-run --prune; do
		run shmlimit apply "$segment" wrong.ini $options
		is "$rc $out$err" "2 shmlimit: wrong.ini:$1: $2" "a file is refused: $(printf %.60s "$2") $options"
	done
	is "$(rules)" "$before" "nothing of a file that is refused was applied"
}

good='[new]
capacity = 5'
wrong 4 "rule login: capacity 0: must be 1 or more" <<END
$good
[login]
capacity = 0
END
wrong 7 "rule login: max-wait 2: unit missing: write 2s if these are seconds (or ns, us, ms, s, m, h, d, w, month or y)" <<END
$good
[login]
capacity = 15

; seven
max-wait = 2
END
wrong 4 "rule login: rate fast: not a limit: must be such as 5/minute, \"10/s burst 20\", \"20 at once\", block or unlimited" <<END
$good
[login]
rate = fast
END
wrong 4 "rule login: next-pays true: must be yes or no" <<END
$good
[login]
next-pays = true
END
wrong 4 "rule login: mode : must be enforce, dry-run, off or block" <<END
$good
[login]
mode =
END
wrong 4 "rule login: burst: no such key: use algorithm, capacity, rate, period, warmup, cold-factor, count-refused, max-wait, \
next-pays, credit, cut-off, law, least, zone, protected or mode" <<END
$good
[login]
burst = 5
END
wrong 5 "rule login: mode: appears more than once" <<END
$good
[login]
mode = off
mode = off
END
wrong 5 "section [new]: begins in line 1 already, and can appear once" <<END
$good
[*]
enabled = no
[new]
END
wrong 6 "section [*]: begins in line 3 already, and can appear once" <<END
$good
[*]
enabled = no
[login]
[*]
END
wrong 4 "section [*]: rate: no such key: use enabled, slots, slots-max, mode, group, on-full, rules, rules-max, store-keys or clock" <<END
$good
[*]
rate = 1/s
END
wrong 4 "section [*]: slots 3: must be 16 to 68719476736" <<END
$good
[*]
slots = 3
END
wrong 5 "section [*]: enabled: appears more than once" <<END
$good
[*]
enabled = no
enabled = no
END
wrong 4 "section [*]: enabled on: must be yes or no" <<END
$good
[*]
enabled = on
END
wrong 3 "rule log in: bad name: must be 1 to 63 letters, digits and . _ : @ + -" <<END
$good
[log in]
mode = off
END
wrong 3 'rule "": bad name: must be 1 to 63 letters, digits and . _ : @ + -' <<END
$good
[]
END
wrong 3 "rule ~throttle: bad name: must be 1 to 63 letters, digits and . _ : @ + -" <<END
$good
[~throttle]
mode = off
END
long=$(printf '%064d' 0)
wrong 3 "rule $long: name too long: must be 1 to 63 characters" <<END
$good
[$long]
END
wrong 3 "rule fresh: new, its rate is missing: must have rate" <<END
$good
[fresh]
capacity = 1
END
wrong 3 "rule login: capacity 281474976710656 is out of range (1 to 4611686018 at this rate and max-wait)" <<END
$good
[login]
capacity = 281474976710656
rate = 1/s
END
wrong 3 "section [login: must be [RULE] or [*] and nothing after it" <<END
$good
[login
mode = off
END
wrong 3 "section [login] mode = off: must be [RULE] or [*] and nothing after it" <<END
$good
[login] mode = off
END
wrong 1 "mode: not in a section: put it after [RULE] or [*]" <<END
mode = off
$good
END
wrong 3 "not understood (a line is [RULE], KEY = VALUE, or a comment after ; or #)" <<END
$good
mode
END
wrong 4 "not understood (a line is [RULE], KEY = VALUE, or a comment after ; or #)" <<END
$good

capacity 15
END
printf '%s\n#%0198d\n' "$good" 0 >odd.ini
wrong 3 "a line of 200 bytes: must be less than 200" <odd.ini
printf '%s\n#\0\n' "$good" >odd.ini
wrong 3 "contains a NUL byte" <odd.ini
printf '%s\n[\033[2J]x\n' "$good" >odd.ini
wrong 3 "section [\x1b[2J]x: must be [RULE] or [*] and nothing after it" <odd.ini
is "$(sum_file "$SHM$segment")" "$was" "not a byte of the segment was changed"

apply <<END
[login]
capacity = 0
END
is "$rc $out$err" "2 shmlimit: standard input:2: rule login: capacity 0: must be 1 or more" \
	"standard input is named, too"

# Files that are none: with --prune, none of these must be taken for an empty one.
for file in /no/such.ini "$TMP"; do
	reason=$(LC_ALL=C cat "$file" 2>&1 >/dev/null | sed 's/.*: //')
	run shmlimit apply "$segment" "$file" --prune
	is "$rc $out$err" "2 shmlimit: $file: $reason" \
		"a file that can't be read is refused: $reason"
done
shmlimit apply "$segment" - --prune <&- >"$TMP/.out" 2>"$TMP/.err"
is "$? $(cat "$TMP/.out" "$TMP/.err")" "2 shmlimit: standard input: Bad file descriptor" "standard input that is closed is not an empty file"
is "$(rules)" "$before" "standard input that is closed prunes nothing"

# Input without a rule, such as that of a pipe whose first command failed.
for content in '' '# no rule' '[*]'; do
	for options in --prune '--prune --dry-run'; do
		printf '%s\n' "$content" >"$TMP/.in"
		# shellcheck disable=SC2086
		apply $options <"$TMP/.in"
		is "$rc $out$err" "2 shmlimit: standard input: no rules: --prune would remove every rule of segment $segment \
(remove single rules with: shmlimit rule remove $segment RULE)" "apply $options refuses the input '$content', which has no rule"
	done
done
is "$(rules)" "$before" "a refused apply --prune removes no rule"

# Drift: the exit status is diff's.
shmlimit apply "$segment" export.ini >/dev/null
run shmlimit apply "$segment" export.ini --dry-run --exit-code
is "$rc $out$err" "0 " "--exit-code exits 0 if nothing would change"
shmlimit rule set "$segment" new --capacity 3
run shmlimit apply "$segment" export.ini --dry-run --exit-code
is "$rc $out$err" "1 ~ rule new capacity 3 -> 1" "--exit-code exits 1 if something would change"
is "$(shmlimit rule show "$segment" new --json | jq .capacity)" 3 "--exit-code changes nothing"
run shmlimit apply "$segment" /no/such.ini --dry-run --exit-code
is "$rc" 2 "--exit-code exits 2 on trouble"
run shmlimit apply "$segment" export.ini --exit-code
is "$rc $err" "2 shmlimit: --exit-code needs --dry-run" "--exit-code needs --dry-run"

# Every error of a file is said, in one go.
before=$(rules)
cat >wrong.ini <<END
[new]
capacity = 0
burst = 5
rate
mode = on
[log in]
capacity = 1
[login]
capacity = 281474976710656
rate = 1/s
[fresh]
capacity = 1
[new]
capacity = 2
[*]
enabled = perhaps
END
run shmlimit apply "$segment" wrong.ini
is "$rc $out" "2 " "a file with several errors is refused"
is "$(printf '%s\n' "$err" | sed 's/^shmlimit: wrong.ini:\([0-9]*\): \(rule [a-z]*\|section [^ :]*\|not understood\).*/\1 \2/')" \
	"2 rule new
3 rule new
4 not understood
5 rule new
13 section [new]
16 section [*]
6 rule log
8 rule login
11 rule fresh" "every error is printed: those of the text, then those of the rules"
is "$(rules)" "$before" "nothing is applied of a file with several errors"
i=0
while [ $i -lt 100 ]; do
	echo nonsense
	i=$((i + 1))
done >wrong.ini
run shmlimit apply "$segment" wrong.ini
is "$rc $(printf '%s\n' "$err" | wc -l | tr -d ' ') $(printf '%s\n' "$err" | tail -n 1)" \
	"2 21 shmlimit: wrong.ini:20: 20 errors: the rest of the file is not read" "a file of errors ends after 20 of them"

# --create.
run shmlimit apply "$SEGMENT.fresh" export.ini --create --dry-run --exit-code
is "$rc $(printf '%s\n' "$out" | sed 1q | cut -d ' ' -f 1-5) $(shmlimit list | grep -c "$SEGMENT.fresh")" \
	"1 + segment $SEGMENT.fresh slots 64 0" "--create --dry-run shows the segment that would be made"
run shmlimit apply "$SEGMENT.fresh" export.ini --create
is "$rc $err" "0 " "--create makes the segment"
is "$(shmlimit rule export "$SEGMENT.fresh" | tail -n +2)" "$(grep -v '^# \(Segment\|Not\)' export.ini | sed '$d')" \
	"--create makes what the file says"
run shmlimit apply "$SEGMENT.fresh" export.ini --create
is "$rc $out$err" "0 " "--create leaves a segment that is there as it is"
printf '[*]\nslots = few\n[a]\nrate = 1/s\n' >wrong.ini
run shmlimit apply "$SEGMENT.none" wrong.ini --create
is "$rc $err" "2 shmlimit: wrong.ini:2: section [*]: slots few: not a whole number (for example 1500, 1.5k, 2M or 64Ki)" \
	"--create makes nothing of a file with an error"

for words in "apply $SEGMENT.none export.ini" "apply $SEGMENT.none export.ini --dry-run" "rule export $SEGMENT.none"; do
	run shmlimit $words
	is "$rc $out$err" "3 shmlimit: segment $SEGMENT.none: no such segment (shmlimit create $SEGMENT.none makes one; \
shmlimit list lists all)" "$words needs a segment"
done

cd /
done_testing
