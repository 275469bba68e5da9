#!/bin/sh
# bundles.sh O SUITE...: the wheel, the gem and the npm package that make bundles made in O/bundles are installed on bare machines of
# Debian's releases SUITE, without a compiler or a network, and limit. Prints TAP.
#
# It needs what release.sh needs; a suite takes about three minutes.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u

bundles=$1/bundles
folder=$1/bundle/roots
shift
here=$(cd "${0%/*}" && pwd)
. "$here/root.inc"

failed=0
for suite; do
	root=$folder/$suite
	bare_root "$suite" "$root"
	mkdir "$root/bundles"
	cp "$bundles"/* "$root/bundles/"
	ruby -e 'puts RUBY_VERSION[/\d+\.\d+/]' >"$root/bundles/ruby"
	inside "$root" languages.sh >>"$folder/$suite.log" 2>&1 || { tail -n 20 "$folder/$suite.log" >&2; exit 1; }
	inside_alone "$root" limits.sh 2>>"$folder/$suite.log" >"$folder/$suite.tap" || failed=1
	sed "s/^\(not ok\|ok\) - /&$suite: /" "$folder/$suite.tap"
	! grep -q '^not ok' "$folder/$suite.tap" || { failed=1; tail -n 20 "$folder/$suite.log" >&2; }
	rm -rf "$root"
done
exit $failed
