#!/bin/bash
# note_skips.sh PROGRAM: runs a test for prove, and appends what it skips, and why, to the file SKIPPED.
#
# SPDX-License-Identifier: BSD-2-Clause
set -o pipefail
name=${1##*/tests/}
"$1" | awk -v name="${name%.t}" '
	{ print; fflush() }
	/^(not )?ok .*# SKIP|^1\.\.0.*# SKIP/ {
		sub(/.*# SKIP */, "")
		print name ": " ($0 != "" ? $0 : "no reason is given") >>ENVIRON["SKIPPED"]
	}'
