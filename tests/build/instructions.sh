#!/bin/sh
# instructions: a decision takes as many instructions as on record in bench/results.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need valgrind
[ -x "$BUILD/bench/decide" ] || skip_all "no bench/decide: a package that the benches need is missing"
case $BUILD in */gcc | */build) ;; *) skip_all "only the plain build of gcc is on record" ;; esac

run "$SOURCE/bench/instructions.sh" "$BUILD"
[ "$rc" -ne 3 ] || skip_all "$out"
is "$rc" 0 "no operation takes 3 % more or fewer instructions than on record (make bench-record when that is meant)"
[ "$rc" -eq 0 ] || diag "$out"
done_testing
