#!/bin/sh
# foreign.sh ARCHITECTURE FOLDER PACKAGE...: unpack Debian packages of another
# architecture into a folder, to cross-build against. Downloads them with
# apt-get, whose state for that architecture is kept in the folder too: the
# system learns of no foreign architecture. Does nothing if they are there.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

[ $# -ge 3 ] || { echo "usage: $0 ARCHITECTURE FOLDER PACKAGE..." >&2; exit 2; }
architecture=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
shift 2

stamp=$folder/.unpacked
[ "$(cat "$stamp" 2>/dev/null)" != "$*" ] || exit 0
mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial"
chmod -R a+rX "$folder"
apt() {
	apt-get -qq -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" \
		-o APT::Sandbox::User=root -o Dir::State::Lists="$folder/apt/lists" \
		-o Dir::State::status=/dev/null -o Dir::Cache="$folder/apt/cache" "$@"
}
apt update
(cd "$folder" && apt download "$@" && for deb in ./*.deb; do dpkg-deb -x "$deb" .; done)
rm -rf "$folder/apt" "$folder"/*.deb
echo "$*" >"$stamp"
