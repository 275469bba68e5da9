#!/bin/sh
# order: the code that a guarantee rests on names it.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

for guarantee in $(sed -n 's/^| \(I[0-9]*\) |.*/\1/p' "$SOURCE/README.md"); do
	is "$(grep -rlw "$guarantee" "$SOURCE/lib" --include='*.[ch]' | head -n 1 | grep -c .)" 1 \
		"the library says which code $guarantee rests on"
done
for call in slot_cas publish word_cas pair_cas cell_cas; do
	is "$(grep -c "^ \*	$call  *full  " "$SOURCE/lib/segment/atomic.h")" 1 "atomic.h says what $call pairs with"
done
done_testing
