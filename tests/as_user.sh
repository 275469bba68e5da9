#!/bin/sh
# as_user.sh PROGRAM: runs a test, for root those of some builds as a user without rights: in a user namespace, in which
# root's files are this user's. So each law that root could keep by its rights alone is tried without these, too. It has
# a /dev/shm of its own, which such a user cannot make (OWN_SHM in tap.sh).
#
# SPDX-License-Identifier: BSD-2-Clause
case $(id -u):$1 in
0:*/clang/tests/* | 0:*/gcc-address/tests/cli/* | 0:*/gcc-address/tests/gate/*)
	own='mount -t tmpfs -o mode=1777 shm /dev/shm && exec "$@"'
	for command in "unshare --mount sh -c" "sh -c"; do
		[ "$command" != "sh -c" ] || own='exec "$@"'
		# shellcheck disable=SC2086 # several words
		$command "$own" sh unshare --user --map-user=1000 --map-group=1000 true 2>/dev/null &&
			exec $command "$own" sh unshare --user --map-user=1000 --map-group=1000 "$@"
	done
	;;
esac
exec "$@"
