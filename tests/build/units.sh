#!/bin/sh
# units: the systemd units run the command in a sandbox in which it can still do
# what it is there for.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

units="$SOURCE/tools/systemd/shmlimit.service $SOURCE/tools/systemd/shmlimit-state@.service"
setting() { sed -n "s/^$2=//p" "$1"; }

for unit in $units; do
	name=${unit##*/}
	is "$(setting "$unit" ReadWritePaths) $(setting "$unit" ProtectSystem)" "/dev/shm strict" \
		"$name: of all files only the segments and the unit's own folder can be written"
	# By the boot's id a segment is known to be of this boot.
	is "$(setting "$unit" ProcSubset)$(setting "$unit" InaccessiblePaths)$(setting "$unit" TemporaryFileSystem)" "" \
		"$name: nothing hides /proc/sys or covers /dev/shm"
	is "$(setting "$unit" PrivateUsers)" "" "$name: owners and groups are the host's"
done
sandbox() { sed -n '/^CapabilityBoundingSet=/,/^$/p' "$1" | grep =; }
# shellcheck disable=SC2086,SC2046
is "$(sandbox $(set -- $units; echo $1))" "$(sandbox $(set -- $units; echo $2))" "both have the same sandbox"

agent=$SOURCE/tools/systemd/shmlimit-agent@.service
is "$(setting "$agent" ReadWritePaths) $(setting "$agent" ProtectSystem) $(setting "$agent" CapabilityBoundingSet)" \
	"/dev/shm strict CAP_DAC_OVERRIDE" "shmlimit-agent@.service: it writes to segments only, and opens those of other users"
is "$(setting "$agent" ProcSubset)$(setting "$agent" InaccessiblePaths)$(setting "$agent" TemporaryFileSystem)" "" \
	"shmlimit-agent@.service: nothing hides /proc/sys or covers /dev/shm"
is "$(setting "$agent" SystemCallFilter)" "$(setting "${units%% *}" SystemCallFilter)" \
	"shmlimit-agent@.service: it has the system calls of the others"

nft=$SOURCE/tools/systemd/shmlimit-nft@.service
is "$(setting "$nft" ReadWritePaths) $(setting "$nft" ProtectSystem) $(setting "$nft" CapabilityBoundingSet)" \
	"/dev/shm strict CAP_DAC_OVERRIDE CAP_NET_ADMIN" "shmlimit-nft@.service: it can change the firewall, and write to segments only"
is "$(setting "$nft" SystemCallFilter)" "$(setting "$agent" SystemCallFilter)" \
	"shmlimit-nft@.service: it has the system calls of the others"

if command -v systemd-analyze >/dev/null && systemd-analyze --help | grep -q -- --offline; then
	for unit in $units "$agent" "$nft"; do
		run systemd-analyze security --offline=yes --no-pager --threshold=29 "$unit"
		is "$rc" 0 "${unit##*/}: its exposure, as systemd-analyze counts it, is below 3"
		[ "$rc" -eq 0 ] || diag "$out$err"
	done
	unit=${units%% *}
	# The names of a set's system calls, and of the sets in it.
	calls() {
		systemd-analyze syscall-filter --no-pager "$1" | sed -n 's/^    //p' | grep -v '^#' | while read -r call; do
			case $call in
			@*) calls "$call" ;;
			*) echo "$call" ;;
			esac
		done
	}
	sets() { setting "$unit" SystemCallFilter | grep "$1" | tr -d '~'; }
	for set in $(sets '^~'); do calls "$set"; done | sort -u >"$TMP/denied"
	for set in $(sets '^[^~]'); do calls "$set"; done | sort -u | comm -23 - "$TMP/denied" >"$TMP/allowed"
fi

# What the units do: with a folder, with a segment of another group, and with one of another owner.
mkdir "$TMP/conf" "$TMP/state"
printf '[*]\nmode = 0660\ngroup = 12345\nslots = 64\n[page]\ncapacity = 5\nrate = 1/d\n' >"$TMP/conf/$SEGMENT.a.conf"
cat >"$TMP/work" <<END
set -e
shmlimit apply --all "$TMP/conf"
shmlimit take $SEGMENT.a page key --quiet
shmlimit save $SEGMENT.a "$TMP/state/a"
shmlimit destroy $SEGMENT.a
shmlimit load $SEGMENT.a "$TMP/state/a"
test "\$(shmlimit peek $SEGMENT.a page key --json | tr -d ' ' | grep remaining)" = '"remaining":4,'
test "\$(stat -c '%a %g' $SHM$SEGMENT.a)" = '660 12345'
shmlimit apply --all "$TMP/conf"
shmlimit destroy $SEGMENT.a
shmlimit --owner 12345 save $SEGMENT.b "$TMP/state/b"
shmlimit load $SEGMENT.c "$TMP/state/b"
test "\$(stat -c '%a %u' $SHM$SEGMENT.c)" = '600 12345'
END
# In a /dev/shm of its own, since other tests mind segments of other owners. Root may open the second segment only as
# it may open every file.
cat >"$TMP/own" <<END
set -e
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
shmlimit create $SEGMENT.b --slots 64
chown 12345 $SHM$SEGMENT.b
exec "\$@"
END

if [ "$(id -u)" = 0 ] && command -v strace >/dev/null && [ -s "$TMP/allowed" ] && unshare -m true 2>/dev/null && strace -o /dev/null true 2>/dev/null; then
	unshare -m sh "$TMP/own" strace -f -o "$TMP/trace" sh "$TMP/work" >"$TMP/log" 2>&1
	is "$? $(cat "$TMP/log" | grep -v '^+')" "0 " "segments are made, saved and loaded"
	sed -nE 's/^[0-9]+ +([a-z0-9_]+)\(.*/\1/p' "$TMP/trace" | sort -u >"$TMP/used"
	# The shell, env and the tools of the script are in the trace too; they use no more.
	is "$(comm -23 "$TMP/used" "$TMP/allowed" | tr '\n' ' ')" "" "each system call that this takes passes the units' filter"
else
	ok 0 "each system call passes the units' filter # SKIP that takes root, strace, a mount namespace and systemd-analyze"
fi

# The same with the unit's capabilities, nothing to be written but what it names, and a /dev of its own.
capabilities=$(setting "${units%% *}" CapabilityBoundingSet | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
cat >"$TMP/box" <<END
set -e
mount --make-rprivate /
mkdir "$TMP/dev"
mount -t tmpfs -o mode=755 tmpfs "$TMP/dev"
mkdir "$TMP/dev/shm"
for device in null zero full random urandom tty; do
	: >"$TMP/dev/\$device"
	mount --bind "/dev/\$device" "$TMP/dev/\$device"
done
mount --bind /dev/shm "$TMP/dev/shm"
mount --bind "$TMP/state" "$TMP/state"
mount -o bind,remount,ro / 2>/dev/null || { mount --rbind / /; mount -o bind,remount,ro /; }
mount --rbind "$TMP/dev" /dev
exec setpriv --bounding-set=-all,$capabilities --inh-caps=-all --no-new-privs sh -c \
	'touch "$TMP/conf/no" 2>/dev/null && echo "the root can be written"; umask 077; exec sh "$TMP/work"'
END
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && unshare -m true 2>/dev/null; then
	run unshare -m sh "$TMP/own" sh "$TMP/box"
	is "$rc $(printf '%s\n' "$out" | grep -v '^+') $err" "0  " "the commands work with the capabilities and mounts that the units leave"
else
	ok 0 "the commands work in the sandbox # SKIP that takes root, setpriv and a mount namespace"
fi
done_testing
