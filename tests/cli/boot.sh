#!/bin/sh
# apply --all: the segments and rules of a folder are there after it, whatever was there before.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

# Names of files are names of segments.
a=$SEGMENT.a
b=$SEGMENT.b
mkdir "$TMP/d"
cd "$TMP"
fact() { shmlimit inspect "$1" --json | jq -r ".segment.$2"; }
rules() { shmlimit rule list "$1" --json | jq -r '.[] | "\(.name) \(.algorithm) \(.capacity) \(.rate)"'; }
segments() { (cd /dev/shm && ls -d "${SHM##*/}$SEGMENT"* 2>/dev/null) | sed "s/^${SHM##*/}//" | tr '\n' ' '; }

cat >"d/$a.conf" <<END
[*]
slots = 1Ki
mode = 0640
group = $(id -gn)
on-full = deny
rules = 2
store-keys = 40
clock = coarse
enabled = no

[login]
capacity = 15
rate = 30/60s

[calls]
algorithm = window
rate = 100/m
END
printf '[page]\ncapacity = 5\nrate = 1/s\n' >"d/$b.conf"
printf 'not ours' >"d/README"
printf 'not ours' >"d/.hidden.conf"
printf 'not ours' >"d/.conf"

plan="+ segment $a slots 1Ki mode 0640 group $(id -gn) on-full deny rules 2 store-keys 46 clock coarse
+ rule login capacity 15 rate 30/m
+ rule calls algorithm window rate 100/m
~ enabled yes -> no
+ segment $b
+ rule page capacity 5 rate 1/s"
run shmlimit apply --all d --dry-run
is "$rc $out$err" "0 $plan" "--dry-run shows what would be made"
is "$(segments)" "" "--dry-run makes no segment"
run shmlimit apply --all d
is "$rc $out$err" "0 $plan" "segments that are missing are made"
is "$(segments)" "$a $b " "segments are made of the files that end in .conf, and of no others"
is "$(for f in slots mode gid on_full rules store_keys clock enabled; do fact "$a" $f; done | tr '\n' ' ')" \
	"1024 0640 $(id -g) deny 2 46 coarse false " "each as its file has it"
is "$(for f in slots mode gid on_full rules store_keys clock enabled; do fact "$b" $f; done | tr '\n' ' ')" \
	"65536 0600 $(id -g) evict 64 0 precise true " "a segment made without options is as create makes it"
is "$(rules "$a"), $(rules "$b")" "login funnel 15 30/m
calls window 100 100/m, page funnel 5 1/s" "with their rules"

# Again.
shmlimit enable "$a"
shmlimit take "$a" login key --cost 15 --quiet
made=$(fact "$a" created_unix_ns)
sed -i '/enabled/d' "d/$a.conf"
run shmlimit apply --all d
is "$rc $out$err" "0 " "what is there already is left as it is, in silence"
is "$(shmlimit take "$a" login key --cost 15 --quiet; echo $?) $(fact "$a" created_unix_ns)" "1 $made" \
	"segments, and what their keys have left"
mkdir same
c=$SEGMENT.c
shmlimit disable "$a"
shmlimit rule export "$a" >"same/$c.conf"
shmlimit apply --all same >/dev/null
is "$(shmlimit rule export "$c" | tail -n +2)" "$(tail -n +2 "same/$c.conf")" "of what is exported the like is made"
run shmlimit apply "$a" "same/$c.conf" --prune
is "$rc $out$err" "0 " "an exported file applied to either segment changes nothing, and warns of nothing"
run shmlimit apply "$c" "same/$c.conf" --prune
is "$rc $out$err" "0 " "a segment made of an exported file is left as it is, in silence"
shmlimit destroy "$c"
shmlimit enable "$a"
sed -i 's/^slots.*/slots = 2000/; s/^mode.*/mode = 0600/; s/^on-full.*/on-full = evict/; s/^rules.*/rules = 3/
	s/^store-keys.*/store-keys = 16/; s/^clock.*/clock = precise/; s/^capacity.*/capacity = 20/' "d/$a.conf"
new="and keeps it (to change it: make a new segment, of another name or when no process uses this one)"
run shmlimit apply --all d
is "$rc $out" "0 ~ segment $a
~ rule login capacity 15 -> 20" "rules follow their files"
is "$err" "shmlimit: d/$a.conf:2: warning: slots 2k: segment $a has 1Ki, $new
shmlimit: d/$a.conf:3: warning: mode 0600: segment $a has 0640, and keeps it (to change it: chmod 0600 $SHM$a)
shmlimit: d/$a.conf:5: warning: on-full evict: segment $a has deny, $new
shmlimit: d/$a.conf:6: warning: rules 3: segment $a has 2, $new
shmlimit: d/$a.conf:7: warning: store-keys 22: segment $a has 46, $new
shmlimit: d/$a.conf:8: warning: clock precise: segment $a has coarse, $new" \
	"what a segment was made with stays, and a warning names file and line"
is "$(fact "$a" slots) $(fact "$a" created_unix_ns)" "1024 $made" "a segment that differs from its file is not made again"
run shmlimit apply "$a" "d/$a.conf" --dry-run
is "$rc $(printf '%s\n' "$err" | grep -c warning)" "0 6" "apply of the one file says the same"
run shmlimit apply "$SEGMENT.none" "d/$a.conf"
is "$rc $(segments)" "3 $a $b " "apply of one file makes no segment"
shmlimit rule set "$b" old --capacity 1 --rate 1/s
run shmlimit apply --all d --prune
is "$rc $out" "0 ~ segment $b
- rule old" "--prune removes the rules that are not in the files"

run shmlimit apply --all d --dry-run --exit-code
is "$rc $out" "0 " "--exit-code exits 0 if no segment would change"
shmlimit rule set "$b" old --capacity 1 --rate 1/s
run shmlimit apply --all d --prune --dry-run --exit-code
is "$rc $out" "1 ~ segment $b
- rule old" "--exit-code exits 1 if one would"
printf 'nonsense\n' >"d/$SEGMENT.z.conf"
run shmlimit apply --all d --prune --dry-run --exit-code
is "$rc" 2 "--exit-code exits 2 if a file is wrong"
rm "d/$SEGMENT.z.conf"
run shmlimit apply --all d --exit-code
is "$rc $err" "2 shmlimit: --exit-code needs --dry-run" "--exit-code needs --dry-run"
shmlimit rule remove "$b" old

# wrong LINE MESSAGE: of $a.conf at standard input; $b.conf is right.
wrong() {
	rm -f "$SHM$SEGMENT"*
	cat >"d/$a.conf"
	run shmlimit apply --all d
	is "$rc $err" "2 shmlimit: d/$a.conf:$1: $2" "a file is refused: $(printf %.60s "$2")"
	is "$(segments)$out" "$b + segment $b
+ rule page capacity 5 rate 1/s" "its segment is not made, and the others' are"
}

wrong 2 "section [*]: slots 15: must be 16 to 68719476736" <<END
[*]
slots = 15
END
wrong 2 "section [*]: slots many: not a whole number (for example 1500, 1.5k, 2M or 64Ki)" <<END
[*]
slots = many
END
wrong 2 "section [*]: mode 0888: not permissions (in octal, for example 0600 or 0660)" <<END
[*]
mode = 0888
END
wrong 2 "section [*]: group no-such: no such group (a name, which getent group lists, or a number)" <<END
[*]
group = no-such
END
wrong 2 "section [*]: on-full burst: must be evict, allow or deny" <<END
[*]
on-full = burst
END
wrong 2 "section [*]: rules 4097: must be 1 to 4096" <<END
[*]
rules = 4097
END
wrong 2 "section [*]: window-max: no such key: use enabled, slots, slots-max, mode, group, on-full, rules, rules-max, store-keys or clock" <<END
[*]
window-max = 100
END
wrong 2 "section [*]: clock slow: must be precise or coarse" <<END
[*]
clock = slow
END
wrong 3 "section [*]: slots: appears more than once" <<END
[*]
slots = 1Ki
slots = 1Ki
END
wrong 2 "section [*]: size: no such key: use enabled, slots, slots-max, mode, group, on-full, rules, rules-max, store-keys or clock" <<END
[*]
size = 1Ki
END
wrong 5 "rule login: new, its rate is missing: must have rate" <<END
[page]
capacity = 5
rate = 1/s

[login]
capacity = 5
END
wrong 5 "rule two: no room for another rule in segment $a: remove one first (shmlimit rule remove), or create the segment with a larger --rules-max" <<END
[one]
capacity = 5
rate = 1/s

[two]
capacity = 5
rate = 1/s

[*]
rules = 1
rules-max = 1
END
wrong 1 "rule calls: window too large, or too many places: must be 65536 or less" <<END
[calls]
algorithm = window
rate = 65537/m
END
rm "d/$a.conf"

# What there is, is not what it should be.
rm -f "$SHM$SEGMENT"*
echo other >"$SHM$b"
run shmlimit apply --all d
is "$rc $out$err" "2 shmlimit: segment $b: not a shmlimit segment: another program created $SHM$b, or something overwrote it (use another name; or, if no process uses it: shmlimit destroy $b --force)" \
	"what is somebody else's is left alone"
is "$(cat "$SHM$b")" other "what is somebody else's is as it was"
rm "$SHM$b"
cp "d/$b.conf" "d/$(printf '%0239d' 0).conf"
run shmlimit apply --all d --dry-run
is "$rc $out" "0 $(printf '+ segment %0239d' 0)
+ rule page capacity 5 rate 1/s
+ segment $b
+ rule page capacity 5 rate 1/s" "the longest name of a segment will do"

mkdir empty
run shmlimit apply --all empty
is "$rc $out$err" "0 " "an empty folder asks for nothing"
run shmlimit apply --all "$TMP/none"
is "$rc $out$err" "2 shmlimit: $TMP/none: No such file or directory" \
	"a folder that is not there is an error"
run shmlimit apply --all d/README
is "$rc $out$err" "2 shmlimit: d/README: Not a directory" \
	"what is no folder is refused"

# What rules are tried on has its process's id in its name, and lives for a moment.
mkdir one
printf '[page]\ncapacity = 5\nrate = 1/s\n' >"one/$SEGMENT.one.conf"
cat >guess <<'END'
for name in shmlimit-apply.$$ shmlimit-scratch.$$; do
	: >"$SHM$name"
done
echo $$ >pid
exec "$@"
END
run sh guess shmlimit apply --all one
rm -f "${SHM}shmlimit-apply.$(cat pid)" "${SHM}shmlimit-scratch.$(cat pid)"
is "$rc $err" "0 " "a stranger that knows a process's id cannot take the name of what its rules are tried on"
printf '[page]\ncapacity = 70000\nrate = 1/s\nalgorithm = window\n' >one/wrong.conf
rm "one/$SEGMENT.one.conf"
run sh guess shmlimit apply --all one
rm -f "${SHM}shmlimit-apply.$(cat pid)" "${SHM}shmlimit-scratch.$(cat pid)"
is "$rc $(ls /dev/shm | grep -c "shmlimit-.*\.$(cat pid)\b")" "2 0" \
	"nothing is left of what rules were tried on, also where they are refused"
cd /
done_testing
