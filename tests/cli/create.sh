#!/bin/sh
# create, destroy: a segment is made as asked for, or not at all.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

n=0
fact() { shmlimit inspect "$1" --json | jq -r ".segment.$2"; }

run shmlimit create "$SEGMENT.default"
is "$rc $out$err" "0 " "create prints nothing"
is "$(fact "$SEGMENT.default" slots)" 65536 "without --slots there are 65536"
is "$(fact "$SEGMENT.default" mode)" 0600 "without --mode it is its owner's"
is "$(fact "$SEGMENT.default" on_full)" evict "without --on-full it evicts"
is "$(fact "$SEGMENT.default" clock)" precise "without --clock it is precise"
is "$(fact "$SEGMENT.default" rules) $(fact "$SEGMENT.default" rules_max)" "64 4096" "without --rules there is room for 64, and more if need be"
is "$(fact "$SEGMENT.default" rules_used)" 0 "a new segment has no rules"
is "$(fact "$SEGMENT.default" enabled)" true "a new segment is enabled"
is "$(fact "$SEGMENT.default" gid)" "$(id -g)" "without --group it is of its maker's"
is "$(fact "$SEGMENT.default" name)" "$SEGMENT.default" "its name is as given"

run shmlimit create "$SEGMENT.default" --slots 16
is "$rc $err" "2 shmlimit: segment $SEGMENT.default: exists already (shmlimit inspect $SEGMENT.default shows it; create \
--if-missing keeps it)" "a name that is taken is refused"
is "$(fact "$SEGMENT.default" slots)" 65536 "a segment whose name was taken stays as it was"

made=$(fact "$SEGMENT.default" created_unix_ns)
run shmlimit create "$SEGMENT.default" --if-missing
is "$rc $out$err $(fact "$SEGMENT.default" created_unix_ns)" "0  $made" "--if-missing leaves a segment that is there as it is"
run shmlimit create "$SEGMENT.default" --if-missing --slots 128Ki --slots-max 2Mi --rules 64 --clock coarse
new="make a new segment, of another name or when no process uses this one"
is "$rc $out$err" "0 shmlimit: warning: slots 128Ki: segment $SEGMENT.default has 64Ki, and keeps it (to change it: shmlimit grow \
$SEGMENT.default --slots 128Ki)
shmlimit: warning: slots-max 2Mi: segment $SEGMENT.default has 1Mi, and keeps it (to change it: $new)
shmlimit: warning: clock coarse: segment $SEGMENT.default has precise, and keeps it (to change it: $new)" \
	"--if-missing warns of what it was made with otherwise, and names the way, which destroys nothing"
run shmlimit create "$SEGMENT.default" --if-missing --slots 16
is "$rc $out$err" "0 " "more slots than asked for are no reason for a warning"
run shmlimit create "$SEGMENT.missing" --if-missing --slots 16
is "$rc $err $(fact "$SEGMENT.missing" slots)" "0  16" "--if-missing makes a segment that is missing"
run shmlimit destroy "$SEGMENT.missing" --if-exists
is "$rc $out$err" "0 " "destroy --if-exists removes a segment"
run shmlimit destroy "$SEGMENT.missing" --if-exists
is "$rc $out$err" "0 " "destroy --if-exists succeeds if there is none"
printf 'not ours' >"$SHM$SEGMENT.foreign"
run shmlimit create "$SEGMENT.foreign" --if-missing
is "$rc $(printf '%s' "$err" | cut -d : -f 3)" "2  not a shmlimit segment" "--if-missing refuses a file that is no segment"
run shmlimit destroy "$SEGMENT.foreign" --if-exists
is $rc 2 "destroy --if-exists refuses it, too"

# good OPTION VALUE FACT WANT
good() {
	n=$((n + 1))
	run shmlimit create "$SEGMENT.$n" --slots 16 "$1" "$2"
	is "$rc $err" "0 " "create $1 $2 works"
	is "$(fact "$SEGMENT.$n" "$3")" "$4" "$1 $2 makes $3 $4"
}

good --slots 16 slots 16
good --slots 64 slots 64
good --slots 1000 slots 1000
good --slots 2K slots 2000
good --slots 2k slots 2000
good --slots 1M slots 1000000
good --slots 2Ki slots 2048
good --slots 2kI slots 2048
good --slots 1mi slots 1048576
good --slots 1.5k slots 1500
good --slots 1.5Ki slots 1536
good --mode 0660 mode 0660
good --mode 600 mode 0600
good --mode 0644 mode 0644
good --group "$(id -g)" gid "$(id -g)"
good --group "$(id -gn)" gid "$(id -g)"
good --on-full evict on_full evict
good --on-full allow on_full allow
good --on-full deny on_full deny
good --rules 1 rules 1
good --rules 4096 rules 4096
good --rules-max 64 rules_max 64
good --rules-max 10 rules 10
good --store-keys 0 store_keys 0
good --store-keys 1 store_keys 14
good --store-keys 62 store_keys 62
good --store-keys 63 store_keys 70
good --store-keys 1K store_keys 1006
good --store-keys 1Ki store_keys 1024
good --clock precise clock precise
good --clock coarse clock coarse

(umask 077 && shmlimit create "$SEGMENT.umask" --slots 16 --mode 0666)
is "$(fact "$SEGMENT.umask" mode)" 0666 "the umask does not apply"
is "$(stat -c %a "$SHM$SEGMENT.umask")" 666 "the mode is the file's"

run shmlimit create --slots=16 -- "$SEGMENT.before"
is $rc 0 "options may stand before the name"
run shmlimit create "$SEGMENT.twice" --slots 16 --slots 32
is "$(fact "$SEGMENT.twice" slots)" 32 "the last of two equal options counts"

# bad MESSAGE OPTION VALUE...
bad() {
	message=$1
	shift
	run shmlimit create "$SEGMENT.bad" "$@"
	is "$rc $out$err" "2 shmlimit: $message" "create $* is refused"
	[ ! -e "$SHM$SEGMENT.bad" ]
	ok $? "create $* leaves nothing behind"
}

range='must be 16 to 68719476736'
syntax='not a whole number (for example 1500, 1.5k, 2M or 64Ki)'
bad "--slots 15: $range" --slots 15
bad "--slots 0: $range" --slots 0
bad "--slots 65Gi: $range" --slots 65Gi
bad "--slots 68.8G: $range" --slots 68.8G
bad "--slots 68719476737: $range" --slots 68719476737
bad "--slots 18446744073709551616: $range" --slots 18446744073709551616
bad "--slots 18446744073709552K: $range" --slots 18446744073709552K
bad "--slots 18446744074G: $range" --slots 18446744074G
bad "--slots many: $syntax" --slots many
bad "--slots : $syntax" --slots ''
bad "--slots -1: $syntax" --slots -1
bad "--slots +16: $syntax" --slots +16
bad "--slots  16: $syntax" --slots ' 16'
bad "--slots 1.0001k: $syntax" --slots 1.0001k
bad "--slots 64KB: $syntax" --slots 64KB
bad "--slots 1T: $range" --slots 1T
bad "--slots 1P: $syntax" --slots 1P
bad "--slots 1.K: $syntax" --slots 1.K
bad "--slots K: $syntax" --slots K
bad "--slots .5K: $syntax" --slots .5K
bad "--slots 0x100: $syntax" --slots 0x100
bad "--mode 888: not permissions (in octal, for example 0600 or 0660)" --mode 888
bad "--mode rw: not permissions (in octal, for example 0600 or 0660)" --mode rw
bad "--mode 00660: not permissions (in octal, for example 0600 or 0660)" --mode 00660
for mode in 0 '' 4755 1000 0200 0400 0060 0177 0577; do
	bad "--mode $mode: must be 0600 to 0777 with the owner's read and write bits (0600)" --mode "$mode"
done
group='no such group (a name, which getent group lists, or a number)'
bad "--group no-such-group: $group" --group no-such-group
bad "--group : $group" --group ''
bad "--group 4294967295: $group" --group 4294967295
bad "--group 99999999999999999999: $group" --group 99999999999999999999
bad "--on-full explode: must be evict, allow or deny" --on-full explode
bad "--on-full : must be evict, allow or deny" --on-full ''
bad "--on-full EVICT: must be evict, allow or deny" --on-full EVICT
bad "--rules 0: must be 1 to 4096" --rules 0
bad "--rules 4097: must be 1 to 4096" --rules 4097
bad "--rules 64K: must be 1 to 4096" --rules 64K
bad "--store-keys 1025: must be 0 to 1024" --store-keys 1025
bad "--clock sundial: must be precise or coarse" --clock sundial

# Where segments stand, in a mount namespace of the test's own.
if unshare --mount true 2>/dev/null; then
	# elsewhere MOUNT MESSAGE
	elsewhere() {
		run unshare --mount sh -c "$1 && shmlimit create '$SEGMENT.bad' --slots 16"
		is "$rc $out$err" "2 shmlimit: segment $SEGMENT.bad: $2" "no segment is made where that cannot be: $1"
	}
	elsewhere 'mount -t tmpfs -o ro tmpfs /dev/shm' \
		"/dev/shm is read-only: remount it (mount -o remount,rw /dev/shm)"
	elsewhere 'mount -t tmpfs tmpfs /dev' \
		"/dev/shm is no tmpfs, or /proc is missing: mount both (mount -t tmpfs -o mode=1777 tmpfs /dev/shm)"
	elsewhere 'mount --bind /proc /dev/shm' \
		"/dev/shm is no tmpfs, or /proc is missing: mount both (mount -t tmpfs -o mode=1777 tmpfs /dev/shm)"
	run unshare --mount sh -c 'mount -t tmpfs tmpfs /dev && shmlimit list'
	is "$rc $err" "2 shmlimit: /dev/shm: No such file or directory" "list names a missing /dev/shm"
	block lib/shmlimit.7 mdoc 'mount -o' >"$TMP/huge"
	is "$(block lib/doc/sizing.md text 'mount -o')" "$(head -n 1 "$TMP/huge")" "the guide has shmlimit(7)'s way to huge pages"
	if [ -d /sys/kernel/mm/transparent_hugepage ]; then
		run unshare --mount sh -e -c 'mount -t tmpfs shm /dev/shm && . "$1" && grep " /dev/shm .*huge=within_size" /proc/mounts' sh "$TMP/huge"
		is "$rc $err" "0 " "a host can give segments huge pages, and say how many it has"
	fi
fi
run sh -c "ulimit -f 1; shmlimit create '$SEGMENT.bad' --slots 16"
is "$rc $err" "2 shmlimit: segment $SEGMENT.bad: larger than a file may be here: use fewer slots, a smaller rules-max or store-keys, or a higher limit (ulimit -f)" "a limit of files is an error, and not the end"

# Only where a table of that size is sure not to fit.
if [ "$(df -Pk /dev/shm | awk 'END { print $2 }')" -lt 1000000000 ]; then
	bad "segment $SEGMENT.bad: no room in /dev/shm: use fewer slots or a smaller store-keys, or destroy segments that no process uses (shmlimit list)" --slots 64Gi
fi

# badly named: NAME MESSAGE
badly_named() {
	run shmlimit create "$1" --slots 16
	is "$rc $out$err" "2 shmlimit: segment $2" "a segment '$(printf %.20s "$1")' is not made"
	run shmlimit destroy "$1"
	is "$rc $out$err" "2 shmlimit: segment $2" "a segment '$(printf %.20s "$1")' cannot be destroyed"
}

name="bad name: must be 1 to 239 bytes without '/' and control characters, the first not '.'"
long=$(printf '%0240d' 0)
badly_named '' "\"\": $name"
badly_named a/b "a/b: $name"
badly_named /etc/passwd "/etc/passwd: $name"
badly_named .hidden ".hidden: $name"
badly_named .. "..: $name"
badly_named "$(printf 'be\007l')" "be\x07l: $name"
badly_named "$long" "$long: name too long: must be 1 to 239 bytes"

edge=$(printf '%s.%0239d' "$SEGMENT" 0 | cut -c1-239)
run shmlimit create "$edge" --slots 16
is "$rc" 0 "a name of 239 bytes is fine"
run shmlimit create "$SEGMENT.with blank" --slots 16
is "$rc" 0 "a name with a blank is fine"

run shmlimit destroy "$SEGMENT.default"
is "$rc $out$err" "0 " "destroy prints nothing"
[ ! -e "$SHM$SEGMENT.default" ]
ok $? "a destroyed segment is gone"
run shmlimit destroy "$SEGMENT.default"
is "$rc $err" "3 shmlimit: segment $SEGMENT.default: no such segment (shmlimit create $SEGMENT.default makes one; \
shmlimit list lists all)" "what is not there cannot be destroyed"

done_testing
