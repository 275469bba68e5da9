#!/bin/sh
# container.sh O: what the Containerfile says is done in roots that debootstrap makes, one for each FROM, and the image is run: as two pods of
# one node that share /dev/shm by a hostPath. Prints TAP. It needs what release.sh needs.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u

folder=$1/release
here=$(cd "${0%/*}" && pwd)
source=$(cd "$here/../.." && pwd)
. "$here/root.inc"
log=$folder/container.log
: >"$log"
fail() { echo "not ok - container: $1"; tail -n 20 "$log" >&2; exit 1; }

stage=0
root=
while read -r word arguments <&3; do
	case $word in
	FROM)
		stage=$((stage + 1))
		root=$folder/stage$stage
		case $arguments in debian:12*) bare_root bookworm "$root" ;; *) fail "FROM $arguments" ;; esac
		case $arguments in *' AS build') build=$root ;; esac
		;;
	RUN)
		in_root "$root" env DEBIAN_FRONTEND=noninteractive sh -c "$arguments" >>"$log" 2>&1 || fail "RUN $arguments"
		;;
	COPY)
		case $arguments in
		'. /src') git clone -q --no-hardlinks "$source" "$root/src" && in_root "$root" git config --global safe.directory '*' ;;
		--from=build*)
			# shellcheck disable=SC2086 # a source and a target
			set -- ${arguments#--from=build }
			cp -a "$build$1/." "$root$2/"
			;;
		*) false ;;
		esac >>"$log" 2>&1 || fail "COPY $arguments"
		;;
	ENTRYPOINT) [ "$arguments" = '["shmlimit"]' ] || fail "ENTRYPOINT $arguments" ;;
	esac
done 3<"$source/tools/container/Containerfile"
echo "ok - container: each step of the Containerfile can be done"

# A node's folder in memory, mounted at /dev/shm of two pods.
node=$folder/node
mkdir -p "$node"
mount -t tmpfs tmpfs "$node" || fail "no folder in memory"
trap 'umount "$node"' EXIT
shm=$node
in_root "$root" shmlimit create web >>"$log" 2>&1 && in_root "$root" shmlimit rule set web login --capacity 20 --rate 1/h >>"$log" 2>&1 ||
	fail "a pod makes the segment"
for pod in 1 2; do
	in_root "$root" sh -c 'for i in $(seq 30); do shmlimit take web login user:42 | head -n 1; done' >"$folder/pod$pod" 2>>"$log" &
done
wait
allowed=$(cat "$folder/pod1" "$folder/pod2" | sort | uniq -c | awk '{ print $3 "=" $1 }' | tr '\n' ' ')
[ "$allowed" = 'allowed=20 denied=40 ' ] || fail "two pods share the limit: $allowed"
echo "ok - container: two pods of a node share the limit by a hostPath"
shm=
in_root "$root" shmlimit peek web login user:42 2>&1 | tee -a "$log" | grep -q 'no such segment' || fail "a pod without the hostPath sees the segment"
echo "ok - container: a pod without it does not see the segment"
rm -rf "$folder/stage1" "$folder/stage2"
