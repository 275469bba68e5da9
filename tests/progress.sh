#!/bin/bash
# progress.sh MAKE...: runs make, and says what is being built: on a terminal in a line that changes, else in one for every
# 50th file. What fails, and what make says itself, is shown as it is.
#
# SPDX-License-Identifier: BSD-2-Clause
set -o pipefail
end='\n'
every=50
[ ! -t 1 ] || end='\033[K\r' every=1
"$@" | awk -v end="$end" -v every="$every" -v what="${BUILDING:-}" '
	BEGIN { if (what != "") printf "building %s%s", what, end; fflush() }
	match($0, /(^| )-o +[^ ]+/) || match($0, /^install .* [^ ]+$/) {
		n++
		count = split($0, word, " ")
		name = word[count]
		for (i = 1; i < count; i++)
			if (word[i] == "-o")
				name = word[i + 1]
		if (n % every == 0)
			printf "  %d: %s%s", n, name, end
		fflush()
		next
	}
	/^(left out|not built)/
	END { if (n) printf "built: %d files\n", n }'
