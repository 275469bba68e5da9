#!/bin/sh
# need.sh [WHY: PACKAGE...]...: install these Debian packages where they are missing. PACKAGE|OTHER is one of them: releases of
# Debian name a few differently, and the first that this one has is installed.
#
# It first says what is missing and what needs it. Then it installs that with apt-get, as root or through a sudo that
# asks for no password; else it prints the command to run, and fails. No service is started, now or at the next boot.
# With INSTALL=ask in the environment it always prints the command, and fails. With INSTALL=no it only says what is missing, and
# succeeds. Without dpkg it says what is needed.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u

if ! command -v dpkg-query >/dev/null; then
	echo "need.sh: not a Debian system; what is needed, by the names of Debian's packages: $*" >&2
	exit 0
fi

missing=
list=
why=
for word in "$@"; do
	case $word in
	*:)
		why=${word%:}
		continue
		;;
	esac
	case $word in
	*\|*)
		# One that is installed will do. Else it is the first that can be.
		for one in $(echo "$word" | tr '|' ' '); do
			[ "$(dpkg-query -W -f '${db:Status-Status}' "$one" 2>/dev/null)" != installed ] || continue 2
		done
		for one in $(echo "$word" | tr '|' ' '); do
			word=$one
			! apt-cache policy "$one" 2>/dev/null | grep -q 'Candidate: [^(]' || break
		done
		;;
	esac
	status=$(dpkg-query -W -f '${db:Status-Status}' "$word" 2>/dev/null)
	case "$status $missing " in
	installed\ * | *" $word "*) continue ;;
	esac
	missing="$missing $word"
	list="$list
$(printf '  %-25s %s' "$word" "$why")"
done
[ -n "$missing" ] || exit 0

if [ "${INSTALL:-}" = no ]; then
	echo "missing packages, and what is skipped, left out or fails without them:$list
to install them: apt-get install --no-install-recommends$missing"
	exit 0
fi
install="apt-get install -y --no-install-recommends$missing"
by=
[ "$(id -u)" -eq 0 ] || ! command -v sudo >/dev/null || by='sudo '
please="please run$([ -n "$by" ] || [ "$(id -u)" -eq 0 ] || echo ' as root'): "
# A machine that was never asked what there is to install knows no package.
[ -n "$(find /var/lib/apt/lists -name '*_Packages*' -print -quit 2>/dev/null)" ] || please="$please${by}apt-get update && "
if [ "${INSTALL:-}" = ask ]; then
	echo "missing packages:$list
$please$by$install" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	! sudo -n true 2>/dev/null || exec sudo -n "$0" "$@"
	echo "need.sh: missing packages:$list
$please$by$install
or go on without them: add INSTALL=no" >&2
	exit 1
fi
echo "missing packages, which are installed now, and what needs them:$list"

# Debian's packages ask this file whether they may start a service. What they enabled is disabled again.
policy=/usr/sbin/policy-rc.d
units=/lib/systemd/system
before=$(ls $units 2>/dev/null)
if [ ! -e $policy ]; then
	trap 'rm -f $policy' EXIT
	trap 'exit 130' INT TERM HUP
	printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy || exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a command and a list of words
apt-get update -qq && $install -qq >/dev/null
rc=$?
if command -v systemctl >/dev/null; then
	for unit in $(ls $units 2>/dev/null); do
		case "
$before
$unit" in
		*"
$unit
"*) ;;
		*) systemctl disable -q "$unit" 2>/dev/null ;;
		esac
	done
fi
[ $rc -eq 0 ] || echo "need.sh: that failed; please run: $install" >&2
exit $rc
