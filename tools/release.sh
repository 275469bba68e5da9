#!/bin/sh
# release.sh check: names what the tree lacks before its commit can be tagged as a release, with status 1 if there is anything.
# release.sh version X.Y.Z: writes this version into each file that has one.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

cd "${0%/*}/.."
version=$(sed -n 's/^.define SHMLIMIT_VERSION "\(.*\)"/\1/p' include/shmlimit.h)
# What of a line is a version of ours.
ours='^shmlimit \(|VERSION "|VERSION = "|^version = "|^  "version": "|luarocks make'
number='[0-9]+\.[0-9]+\.[0-9]+'
# An annex names its own files in its .mk.
# shellcheck disable=SC2046 # several words
files=$(grep -lE "$ours" include/shmlimit.h tools/debian/changelog $(sed -n 's/^versions_[a-z]* := //p' tools/*/*.mk))

lacks=0
lack() {
	echo "release.sh: $*" >&2
	lacks=1
}

case ${1:-} in
check)
	for file in $files; do
		[ "$(grep -E "$ours" "$file" | grep -oE "$number" | sort -u)" = "$version" ] || lack "$file: its version is not $version"
	done
	for name in HOMEPAGE DEBEMAIL; do
		grep -qE "^$name +\?= [^ ]" tools/project.mk || lack "tools/project.mk: $name is empty"
	done
	grep -m 1 '^## ' CHANGELOG.md | grep -qE "^## $version \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$" ||
		lack "CHANGELOG.md: the first section is not \"## $version (YYYY-MM-DD)\""
	exit $lacks
	;;
version)
	echo "${2:-}" | grep -qxE "$number" || { echo "usage: $0 version X.Y.Z" >&2; exit 2; }
	# shellcheck disable=SC2086 # names without spaces
	sed -i -E "/$ours/s/$(echo "$version" | sed 's/\./\\./g')/$2/" $files
	for file in tools/*/*-"$version"-1.rockspec; do
		[ "$version" = "$2" ] || mv "$file" "${file%-"$version"-1.rockspec}-$2-1.rockspec"
	done
	;;
*)
	echo "usage: $0 check|version X.Y.Z" >&2
	exit 2
	;;
esac
