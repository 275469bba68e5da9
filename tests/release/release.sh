#!/bin/sh
# release.sh O SUITE...: a stranger's hour with the packages, on a bare machine of each of Debian's releases SUITE: make deb, install,
# limit nginx and Flask, look, upgrade to a build with another layout without a failed request, and purge. Prints TAP.
#
# It needs root, debootstrap and Debian's archive, which it finds where this machine's apt does; a suite takes about five minutes.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u

folder=$1/release
shift
here=$(cd "${0%/*}" && pwd)
source=$(cd "$here/../.." && pwd)
for tool in debootstrap unshare git; do
	command -v $tool >/dev/null || { echo "release.sh: $tool is not installed" >&2; exit 1; }
done
[ "$(id -u)" -eq 0 ] || { echo "release.sh: debootstrap needs root" >&2; exit 1; }
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -v security | head -n 1)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# inside ROOT SCRIPT [UNSHARE OPTION]: run a script in a root, with devices, processes and shared memory of its own.
inside() {
	cp "$here/$2" "$1/inside.sh"
	# shellcheck disable=SC2016,SC2086 # the shell inside expands it; one option or none
	unshare --mount --pid --fork --kill-child --ipc ${3:-} sh -c '
		mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/dev" && mkdir "$1/dev/shm" "$1/dev/pts" && mount -t tmpfs tmpfs "$1/dev/shm" || exit
		for device in null zero full random urandom tty; do
			: >"$1/dev/$device" && mount --bind "/dev/$device" "$1/dev/$device" || exit
		done
		ln -s /proc/self/fd "$1/dev/fd"
		exec chroot "$1" sh /inside.sh' inside "$1"
}

failed=0
for suite; do
	root=$folder/$suite
	rm -rf "$root"
	debootstrap --variant=minbase "$suite" "$root" "$archive" >"$folder/$suite.log" 2>&1 || { tail -n 5 "$folder/$suite.log" >&2; exit 1; }
	cp /etc/resolv.conf "$root/etc/"
	cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null
	git clone -q --no-hardlinks "$source" "$root/first"
	git clone -q --no-hardlinks "$source" "$root/second"
	# The next build: another commit, later, with the next layout.
	layout=$(sed -n 's/^#define LAYOUT_VERSION \([0-9]*\)u.*/\1/p' "$source/lib/segment/layout.h")
	sed -i "s/^#define LAYOUT_VERSION ${layout}u/#define LAYOUT_VERSION $((layout + 1))u/" "$root/second/lib/segment/layout.h"
	GIT_COMMITTER_DATE="$(date -u +%Y-%m-%dT%H:%M:%SZ)" git -C "$root/second" -c user.name=later -c user.email=later@example.org \
		commit -q -a -m 'another layout'
	echo "# $suite: make deb, twice"
	inside "$root" build.sh >>"$folder/$suite.log" 2>&1 || { tail -n 20 "$folder/$suite.log" >&2; echo "not ok - $suite: make deb on a bare machine"; failed=1; continue; }
	echo "ok - $suite: make deb on a bare machine"
	inside "$root" hour.sh --net 2>>"$folder/$suite.log" >"$folder/$suite.tap" || failed=1
	sed "s/^\(not ok\|ok\) - /&$suite: /" "$folder/$suite.tap"
	! grep -q '^not ok' "$folder/$suite.tap" || { failed=1; tail -n 20 "$folder/$suite.log" >&2; }
	rm -rf "$root"
done
exit $failed
