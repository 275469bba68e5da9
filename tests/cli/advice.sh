#!/bin/sh
# advice: what a message advises works, and what is typed by habit is done, or answered with what is meant.
#
# SPDX-License-Identifier: BSD-2-Clause
OWN_SHM=yes
. "${0%/*}/../tap.sh"
cd "$TMP" || exit
segment=$SEGMENT.s

# advice: the text in the last parentheses of $err, after "to change it: "
advice() { printf '%s\n' "$err" | sed -n 's/.*(to change it: \(.*\))$/\1/p'; }
# fact OPTION: of the segment
fact() { shmlimit rule export "$segment" | sed -n "s/^$1 = //p" | head -n 1; }

shmlimit create "$segment" --slots 64 --slots-max 256 --mode 0600
shmlimit rule set "$segment" login --capacity 5 --rate 5/d

# ---- options of a segment that is in use ----
n=0
while read -r option value; do
	printf '[*]\n%s = %s\n' "$option" "$value" >file
	run shmlimit apply "$segment" file
	is "$rc" 0 "$option = $value in a file changes nothing, and is no failure"
	n=$((n + $(printf '%s\n' "$err" | grep -c 'destroy')))
	case $(advice) in
	shmlimit\ * | chmod\ *)
		eval "$(advice)"
		is "$? $(fact "$option")" "0 $value" "$option: the command that the warning has changes it"
		;;
	*) like "$err" 'make a new segment, of another name or when no process uses this one' "$option: only a new segment can have it" ;;
	esac
done <<'TABLE'
slots 128
slots 1Ki
mode 0640
on-full deny
clock coarse
store-keys 62
TABLE
is "$n" 0 "no advice removes a segment that is in use"
shmlimit take "$segment" login user:42 --quiet
before=$(shmlimit peek "$segment" login user:42 | sed -n 's/^remaining: //p')
run shmlimit grow "$segment" --slots 1Ki
file() { echo "/dev/shm/$(ls /dev/shm | grep -x "shmlimit\.[0-9]*\.$1")"; }
held=$(file "$segment")
is "$rc $err" "2 shmlimit: --slots 1Ki: segment $segment was created for 256 at the most: use fewer, or put a copy in its place that can grow, \
with all its keys (shmlimit save $segment FILE && shmlimit load $segment.new FILE --can-grow && shmlimit grow $segment.new --slots 1Ki && \
mv ${held%"$segment"}$segment.new $held)" \
	"grow beyond slots-max names the way"
way=${err#*keys (}
run sh -c "$(printf '%s\n' "${way%)}" | sed 's/FILE/file/g')"
is "$rc $err" "0 " "the commands that it names work as they stand"
slots=$(shmlimit metrics "$segment" | awk '/^shmlimit_segment_slots\{/ { n += $2 } END { print n }')
[ "$slots" -ge 1024 ]
ok $? "after these commands the segment has the slots"
is "$(shmlimit peek "$segment" login user:42 | sed -n 's/^remaining: //p')" "$before" "after these commands a key has what it had"
run shmlimit grow "$segment" --slots 2Ki
like "$rc $err" '^[02] (|.*has grown before.*)$' "it can grow again"

# ---- what is never allowed ----
run shmlimit take "$segment" login user:42 --cost 6
is "$rc $err" "1 shmlimit: rule login: 6 tokens never fit: its capacity is 5" "a cost above the capacity is reported as such"
run shmlimit take "$segment" login user:42 --cost 6 --quiet
is "$rc $err" "1 " "--quiet says nothing of a cost above the capacity"
run shmlimit take "$segment" login user:42 --cost 5
is "$rc $err" "1 " "a cost that fits later is denied without a message"

# ---- habits ----
run shmlimit rule set "$segment" page 9/minute
is "$rc $err $(shmlimit rule show "$segment" page | sed -n 's/^rate: *//p')" "0  9/m" "rule set takes a limit as its third operand"
run shmlimit rule set "$segment" page 9/minute --rate 8/minute
is "$rc $err" "2 shmlimit: 9/minute: the same as --rate 8/minute: give one of them" "a limit as an operand and --rate are refused"
run shmlimit rule set "$segment" page 9/minute --limit 8/minute
is "$rc $err" "2 shmlimit: 9/minute: the same as --limit 8/minute: give one of them" "a limit as an operand and --limit are refused"
run shmlimit rule set "$segment" page --rate 0/s
is "$rc $err $(shmlimit rule show "$segment" page | sed -n 's/^mode: *//p')" "0  block" "a rate of 0 blocks"
run shmlimit reset "$segment" user:42
is "$rc $err" "2 shmlimit: reset: user:42: one operand too many (meant is perhaps: --rule RULE --key user:42); usage: shmlimit reset NAME" \
	"reset of a key says how a key is given"
run shmlimit reset "$segment" --rule login --key user:42
is "$rc $err" "0 " "the options that reset names reset the key"
printf '[login]\nlimit = 7/minute\n' >file
run shmlimit apply "$segment" file
is "$rc $err $(shmlimit rule show "$segment" login | sed -n 's/^rate: *//p')" "0  7/m" "limit in a rules file is the rate"
printf '[login]\nlimit = 7/minute\nrate = 8/minute\n' >file
run shmlimit apply "$segment" file
is "$rc $err" "2 shmlimit: file:3: rule login: rate: appears more than once" "limit and rate in a section are refused"
for option in slots enabled; do
	printf '[login]\n%s = 1\n' $option >file
	run shmlimit apply "$segment" file
	is "$rc $err" "2 shmlimit: file:2: rule login: $option: is an option of the segment: put it in the section [*]" \
		"$option in the section of a rule belongs elsewhere"
done
run shmlimit check "$segment" --interval 5
is "$rc $err" "3 shmlimit: --interval 5: unit missing: write 5s if these are seconds (or ns, us, ms, s, m, h, d, w, month or y)" \
	"a check that is called in a wrong way is unknown, not critical"

# ---- a table beside one long name ----
long=$SEGMENT.$(printf '%0150d' 0)
shmlimit create "$long" --slots 16
shmlimit create "$SEGMENT.short" --slots 16
listed() { shmlimit list | grep -E "^(NAME |$SEGMENT)"; } # other tests have segments, too
is "$(listed | grep -v "^$long " | awk 'length > 150' | wc -l)" 0 "a long name moves no other line of list"
is "$(listed | grep -c "^$long  ")" 1 "a long name is shown in full"
is "$(listed | awk '{ print NF }' | sort -u)" 7 "each line of list has its columns"
shmlimit destroy "$SEGMENT.short"
shmlimit destroy "$long"

# ---- no room ----
if [ "$(id -u)" = 0 ] && [ "$(stat -fc %T /dev/shm)" = tmpfs ] && mountpoint -q /dev/shm && [ "$(ls /dev/shm | grep -vc "$SEGMENT")" = 0 ]; then
	shmlimit create "$segment.full" --slots 16 --rules 1
	shmlimit rule set "$segment.full" r 5/d
	mount -o remount,size=1M /dev/shm
	dd if=/dev/zero of=/dev/shm/"$SEGMENT.rest" bs=4k 2>/dev/null
	n=0
	while [ $n -lt 4096 ] && shmlimit rule set "$segment.full" "r$n" 5/d 2>/dev/null; do n=$((n + 1)); done
	run shmlimit ban "$segment.full" mallory --for 1h
	like "$rc $err" '^2 shmlimit: rule ban: no room in /dev/shm: the key is not banned [(]give it more: mount -o remount,size=' \
		"a ban without room in /dev/shm says so"
	rm "/dev/shm/$SEGMENT.rest"
	run shmlimit ban "$segment.full" mallory --for 1h
	is "$rc $err" "0 " "with room in /dev/shm the key is banned"
fi
done_testing
