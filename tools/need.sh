#!/bin/sh
# need.sh PACKAGE...: have these Debian packages installed, or say how.
#
# Installs what is missing with apt-get, as root or through a sudo that asks
# no questions; else prints the line to run and fails. On a system without dpkg
# it says what is needed and leaves it at that.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u

if ! command -v dpkg-query >/dev/null; then
	echo "need.sh: not a Debian system; this needs what Debian calls: $*" >&2
	exit 0
fi

missing=
for package in "$@"; do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)
	[ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" -eq 0 ]; then
	as=
elif sudo -n true 2>/dev/null; then
	as=sudo
else
	echo "need.sh: missing packages; please run: sudo $install" >&2
	exit 1
fi

echo "need.sh: installing$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # both are lists of words
$as apt-get update -qq && $as $install -qq >/dev/null
rc=$?
[ $rc -eq 0 ] || echo "need.sh: that failed; please run: ${as:+$as }$install" >&2
exit $rc
