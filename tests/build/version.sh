#!/bin/sh
# version: what is built from a later commit has a later version, for each of those who install it, and a tag has its own.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need git

tree=$TMP/tree
mkdir -p "$tree/include" "$tree/tools"
cp "$SOURCE/tools/version.sh" "$tree/tools"
cp "$SOURCE/include/shmlimit.h" "$tree/include"
header=$(sed -n 's/^.define SHMLIMIT_VERSION "\(.*\)"/\1/p' "$SOURCE/include/shmlimit.h")
kinds='deb python npm gem'

# commit TIME: an empty commit of that time; its versions are the next line of each file $TMP/KIND.
commit() {
	GIT_COMMITTER_DATE="2026-11-27T$1Z" git -C "$tree" -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m "$1"
	versions
}
versions() { for kind in $kinds; do "$tree/tools/version.sh" $kind >>"$TMP/$kind" 2>>"$TMP/err"; done; }

is "$("$tree/tools/version.sh" deb)" "$header" "a tree without git, as of a tarball, has the header's version"
git -C "$tree" init -q
git -C "$tree" add -A
commit 09:00:00
commit 09:00:01
commit 21:30:00
git -C "$tree" tag "v$header"
versions
commit 21:30:01
commit 23:00:00
: >>"$TMP/err"
is "$(cat "$TMP/err")" "" "nothing goes wrong"
for kind in $kinds; do
	is "$(sed -n 4p "$TMP/$kind") $(sort -u "$TMP/$kind" | wc -l)" "$header 6" "$kind: the tagged commit has the version, and each other one its own"
done
while read -r earlier <&3 && read -r later <&4; do
	dpkg --compare-versions "$earlier" lt "$later"
	ok $? "deb: $later is an upgrade of $earlier"
done 3<"$TMP/deb" 4<<END
$(tail -n +2 "$TMP/deb")
END
if python3 -c 'from packaging.version import Version' 2>/dev/null; then
	is "$(python3 -c '
import sys
from packaging.version import Version
versions = [Version(line) for line in sys.stdin]
print(len(set(versions)), versions == sorted(versions))' <"$TMP/python")" "6 True" "python: each version is later than those of earlier commits"
fi
if command -v ruby >/dev/null; then
	is "$(ruby -e 'v = $stdin.map { |line| Gem::Version.new(line.strip) }
puts "#{v.size} #{v.each_cons(2).all? { |a, b| a < b }}"' <"$TMP/gem")" "6 true" "gem: each version is later than those of earlier commits"
fi
is "$(printf '%s\n' "$(sed -n 1p "$TMP/npm")" "$(sed -n 5p "$TMP/npm")" | sed 's/-git\.[0-9]*$//')" "$header
${header%.*}.$((${header##*.} + 1))" "npm: before the tag stands the tag's version, after it the next one"

mv "$tree/.git" "$TMP/gone" && mkdir "$tree/.git"
run "$tree/tools/version.sh" deb
[ "$rc" -ne 0 ] && [ -z "$out" ]
ok $? "where git cannot say which commit it is, there is no version"
done_testing
