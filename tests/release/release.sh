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
. "$here/root.inc"

failed=0
for suite; do
	root=$folder/$suite
	bare_root "$suite" "$root"
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
	inside_alone "$root" hour.sh 2>>"$folder/$suite.log" >"$folder/$suite.tap" || failed=1
	sed "s/^\(not ok\|ok\) - /&$suite: /" "$folder/$suite.tap"
	! grep -q '^not ok' "$folder/$suite.tap" || { failed=1; tail -n 20 "$folder/$suite.log" >&2; }
	rm -rf "$root"
done
exit $failed
