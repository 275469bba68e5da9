#!/bin/sh
# version.sh deb|python|npm|gem|plain|file: the version of what is built from this tree, as the installing tool orders versions.
#
# include/shmlimit.h has the version that the tree becomes. The commit that is tagged with it, vX.Y.Z, has that version. A commit before
# the tag has a version before it, and one after the tag a version after it, both by the commit's time, so that a later
# build is an upgrade, also from a shallow clone. A tarball by `make dist` has a file that says it; another tree without git
# has the header's version.
#
# SPDX-License-Identifier: BSD-2-Clause
set -euf

top=$(cd "${0%/*}/.." && pwd)
version=$(sed -n 's/^.define SHMLIMIT_VERSION "\(.*\)"/\1/p' "$top/include/shmlimit.h")
when=at time=- commit=-
# The tree may be another user's, as under sudo. Git need not refuse it: this program is a part of it already.
git="git -c safe.directory=*"
if [ -e "$top/.git" ]; then
	command -v git >/dev/null || { echo "version.sh: git is not installed, which knows the version of this tree (on Debian: apt install git)" >&2; exit 1; }
	head=$(TZ=UTC $git -C "$top" log -1 --format='%cd %h' --date=format-local:%Y%m%d%H%M%S --abbrev=8) ||
		{ echo "version.sh: git does not read this tree: without it there is no version" >&2; exit 1; }
	time=${head% *}
	commit=${head#* }
	tagged=$($git -C "$top" rev-parse -q --verify "refs/tags/v$version^{commit}" || :)
	if [ -z "$tagged" ] || ! $git -C "$top" merge-base --is-ancestor "$tagged" HEAD; then
		when=before
	elif [ "$tagged" != "$($git -C "$top" rev-parse HEAD)" ]; then
		when=after
	fi
elif [ -e "$top/.tarball-version" ]; then
	read -r when time commit <"$top/.tarball-version" || [ -n "$commit" ] # its line does not end
fi
case ${1:-}-$when in
deb-at | python-at | npm-at | gem-at | plain-at) echo "$version" ;;
file-*) echo "$when $time $commit" ;;
deb-before) echo "$version~git$time.$commit" ;;
deb-after) echo "$version+git$time.$commit" ;;
python-before) echo "$version.dev$time+$commit" ;;
python-after) echo "$version.post$time+$commit" ;;
npm-before) echo "$version-git.$time" ;;
npm-after) echo "${version%.*}.$((${version##*.} + 1))-git.$time" ;;
gem-before) echo "$version.git$time" ;;
gem-after) echo "$version.$time" ;;
plain-*) echo "$version-git$time-$commit" ;;
*) echo "usage: $0 deb|python|npm|gem|plain|file" >&2 && exit 2 ;;
esac
