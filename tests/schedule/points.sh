#!/bin/sh
# points: each access to shared memory has a point in front of it where it is built
# for the scheduler, and nothing of that is in a release.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

# What others do not wait for, or is made of those that have a point.
without='add_relaxed fence_load slot_read slot_unchanged'
for access in $(sed -nE 's/^static inline .*[ *]([a-z_0-9]+)\(.*/\1/p' "$SOURCE/lib/segment/atomic.h" | sort -u); do
	case " $without " in *" $access "*) continue ;; esac
	grep -q "^#define $access(.*point_reached(" "$SOURCE/lib/segment/atomic.h"
	ok $? "$access has its point"
done
symbols=$(nm "$BUILD"/points/lib/*/*.o "$BUILD"/points/lib/algorithm/*/*.o | awk '$1 == "U" && $2 ~ /^point_/ { print $2 }' | sort -u | tr '\n' ' ')
is "$symbols" "point_clock point_reached " "the scheduler's library stops at them"
nm "$BUILD"/lib/*/*.o "$BUILD"/lib/algorithm/*/*.o >"$TMP/release"
ok $? "the library is there,"
is "$(grep -c point_ "$TMP/release")" 0 "the release library contains no scheduling points"
done_testing
