#!/bin/sh
# blocks: each command and configuration of README, guides and man pages is run by a test, or blocks.pl has the reason why not.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

need perl

law() { perl "$SOURCE/tests/build/blocks.pl" "$1"; }
is "$(law "$SOURCE" 2>&1)" "" "each example is run by a test, or is in the list"

# A command that nothing runs, and examples that a test or the list would have, and that were renamed.
mkdir "$TMP/changed"
(cd "$SOURCE" && cp -R README.md Makefile bench lib tests tools "$TMP/changed")
cd "$TMP/changed" || exit
printf '\n    shmlimit create new\n' >>tools/lua/gateways.md
sed -i 's/^docker build/podman build/' lib/doc/containers.md
sed -i 's/location \/search/location \/find/; s/^    make nginx/    make enginx/' tools/nginx/README.md
sed -i 's/shmlimit check web --max-evictions/shmlimit check web --max-evicted/; s/`make deb`/`make debs`/' tools/shmlimit/oncall.md README.md
law . >"$TMP/found"
is "$(grep -vc ': no test runs it: \|: no example \|: no such option: --max-evicted\|: make has no such target: make debs' "$TMP/found") $(sed 's/: .*//' "$TMP/found" | sort | uniq -c | sed 's|^ *||' | tr '\n' ' ')" \
	"0 1 README.md 2 lib/doc/containers.md 1 tests/server/nginx.sh 2 tests/server/readmes.sh 1 tools/lua/gateways.md 2 tools/nginx/README.md 1 tools/shmlimit/oncall.md " \
	"what nothing runs is named, and what is asked for and gone"
done_testing
