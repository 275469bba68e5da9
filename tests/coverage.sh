#!/bin/sh
# coverage: how many branches of each file of lib/ were taken, as gcovr found, and
# whether tests/coverage.md has something to say of each file that is not complete.
#
#	coverage.sh FILE        what gcovr --csv wrote
#
# SPDX-License-Identifier: BSD-2-Clause
awk -F, -v notes="${0%/*}/coverage.md" '
BEGIN {
	while ((getline line < notes) > 0)
		if (match(line, /^\| [a-z_]+\.[ch] \|/))
			told[substr(line, 3, RLENGTH - 4)] = 1
}
NR == 1 {
	for (i = 1; i <= NF; i++)
		column[$i] = i
	next
}
$column["branch_total"] > $column["branch_covered"] {
	file = $1
	sub(/.*\//, "", file)
	missing = $column["branch_total"] - $column["branch_covered"]
	printf "%-16s %4d of %4d, %d not taken%s\n", file, $column["branch_covered"], $column["branch_total"], missing,
		file in told ? "" : ": tests/coverage.md does not say why"
	if (!(file in told))
		untold++
}
END { exit untold > 0 }' "$1"
