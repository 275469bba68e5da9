#!/bin/sh
# dist: the tarball of a commit has the same bytes wherever it is made, knows its version, and is no release before what a
# release needs is there.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need git sha256sum
[ -e "$SOURCE/.git" ] || skip_all "these sources are not in git"

git_as() { git -c user.name='A. Packager' -c user.email=packager@example.org -c commit.gpgsign=false -c tag.gpgsign=false "$@"; }
make_dist() { run make -s --no-print-directory -C "$1" O=build dist; }
unset MAKEFLAGS MAKELEVEL

# One commit of the tree as it is, and the same commit elsewhere.
mkdir "$TMP/one"
(cd "$SOURCE" && git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - 2>"$TMP/err") |
	tar -xf - -C "$TMP/one"
cd "$TMP/one" || exit
git_as init -q && git add -A && git_as commit -q -m 'a commit'
(umask 077 && git clone -q "$TMP/one" "$TMP/two")
version=$(sed -n 's/^.define SHMLIMIT_VERSION "\(.*\)"/\1/p' include/shmlimit.h)

make_dist "$TMP/one"
like "$rc $out$err" "^0 [0-9a-f]{64}  shmlimit-$version-git[0-9]+-[0-9a-f]+\.tar\.gz\$" "make dist prints the checksum of a tarball named after its commit"
(umask 077 && TZ=Asia/Tokyo make -s --no-print-directory -C "$TMP/two" O=other dist) >"$TMP/log" 2>&1
is "$(cd "$TMP/two/other/dist" && cat SHA256SUMS ./*.gz | sha256sum)" "$(cd build/dist && cat SHA256SUMS ./*.gz | sha256sum)" \
	"the same commit gives the same bytes in another folder, with another umask and time zone"
run sh -c 'cd build/dist && sha256sum -c SHA256SUMS'
is "$rc" 0 "SHA256SUMS is right"
mkdir "$TMP/there" && tar -xzf build/dist/*.tar.gz -C "$TMP/there"
unpacked=$(echo "$TMP"/there/*)
is "$(cd "$unpacked" && tools/version.sh deb)" "$(tools/version.sh deb)" "packages made from the tarball have the version of its commit"
is "$(diff -r "$unpacked" . | grep -vE '^Only in \.: (\.git|build)$')" "Only in $unpacked: .tarball-version" "the tarball has each file of the commit"

echo >>README.md
make_dist .
like "$rc $err" '^2 make dist packs a commit' "what is not committed is not packed"
git checkout -q README.md

# A release.
git_as tag -m 'a release' "v$version"
printf '%s\n' "s/^\(HOMEPAGE .*?=\).*/\1/" "s/^\(DEBEMAIL .*?=\).*/\1/" >"$TMP/empty"
sed -i -f "$TMP/empty" tools/project.mk
sed -i "s/^## $version .*/## $version (not yet released)/" CHANGELOG.md
git_as commit -q -a --allow-empty -m 'not ready' && git_as tag -f -m 'a release' "v$version" >"$TMP/log"
make_dist .
is "$rc $(printf '%s\n' "$err" | grep '^release')" "2 release.sh: tools/project.mk: HOMEPAGE is empty
release.sh: tools/project.mk: DEBEMAIL is empty
release.sh: CHANGELOG.md: the first section is not \"## $version (YYYY-MM-DD)\"" "a tagged commit is not packed before addresses and date are there"
sed -i 's|^\(HOMEPAGE .*?=\)|\1 https://example.org/|; s|^\(DEBEMAIL .*?=\)|\1 packager@example.org|' tools/project.mk
sed -i "s/^## $version .*/## $version (2026-12-01)/" CHANGELOG.md
git_as commit -q -a -m ready && git_as tag -f -m 'a release' "v$version" >"$TMP/log"
make_dist .
like "$rc $out" "^0 .*  shmlimit-$version\.tar\.gz\$" "the tarball of a release is named after its version"

# The next version.
run tools/release.sh version 98.7.6
is "$rc $out$err" "0 " "release.sh writes another version into each file that has one"
run tools/release.sh check
is "$rc $err" "1 release.sh: CHANGELOG.md: the first section is not \"## 98.7.6 (YYYY-MM-DD)\"" "each file that has a version has the one that release.sh wrote"
sed -i 's/98\.7\.6/98.7.5/' tools/debian/changelog
run tools/release.sh check
is "$rc $(printf '%s\n' "$err" | head -n 1)" "1 release.sh: tools/debian/changelog: its version is not 98.7.6" "a file with another version is named"
run tools/release.sh version 98.7
is "$rc" 2 "a version has three numbers"
done_testing
