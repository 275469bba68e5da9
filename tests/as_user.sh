#!/bin/sh
# as_user.sh PROGRAM: runs a test, for root those of some builds as a user without rights: in a user namespace, in which
# root's files are this user's. So each law that root could keep by its rights alone is tried without these, too.
#
# SPDX-License-Identifier: BSD-2-Clause
case $(id -u):$1 in
0:*/clang/tests/* | 0:*/gcc-address/tests/cli/* | 0:*/gcc-address/tests/gate/*)
	unshare --user --map-user=1000 --map-group=1000 true 2>/dev/null &&
		exec unshare --user --map-user=1000 --map-group=1000 "$@"
	;;
esac
exec "$@"
