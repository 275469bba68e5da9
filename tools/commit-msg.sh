#!/bin/sh
# commit-msg.sh FILE: is this the message of a commit as CONTRIBUTING.md wants it? It says what is not, and fails.
#
# As a hook of git: ln -s ../../tools/commit-msg.sh .git/hooks/commit-msg
#
# SPDX-License-Identifier: BSD-2-Clause
set -u

[ $# -eq 1 ] || { echo "usage: $0 FILE" >&2; exit 2; }
# What git adds below the scissors, and comments, are no part of the message. Nor are commits of git's own.
sed '/^# -* >8 -*$/,$d; /^#/d' "$1" | awk '
	function wrong(what) { print "commit message, line " NR ": " what; bad = 1 }
	NR == 1 && /^(Merge|Revert|fixup!|squash!) / { exit }
	NR == 1 && !/^[[:alnum:]_.,()\/ -]+: ./ { wrong("the subject must be \"module: what\"") }
	NR == 1 && /\.$/ { wrong("the subject must not end with a full stop") }
	NR == 2 && $0 != "" { wrong("a line between the subject and the body must be empty") }
	length($0) > 72 && !/^[^ ]+$/ { wrong("it has " length($0) " columns, 72 are allowed") }
	END { exit bad }' >&2
