#!/bin/sh
# commit_msg: tools/commit-msg.sh accepts a message as CONTRIBUTING.md wants it, and says what is wrong with another.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

# verdict MESSAGE: what it prints, without the line number, and its status.
verdict() {
	printf "$1" >"$TMP/message"
	sh "$SOURCE/tools/commit-msg.sh" "$TMP/message" >"$TMP/out" 2>&1
	rc=$?
	sed 's/^commit message, //' "$TMP/out" | tr '\n' ' '
	echo "$rc"
}

long=$(printf '%066d' 0)
is "$(verdict "lib: $long\n\nWhy, in a line of\nmodest length.\n# a comment of git, which may be as long as git likes and is no part of the message\n")" "0" \
	"a subject of 71 columns, an empty line and a body are accepted"
is "$(verdict "lib: 00$long\n")" "line 1: it has 73 columns, 72 are allowed 1" "a subject of 73 columns is refused"
is "$(verdict "A subject without a module\n")" 'line 1: the subject must be "module: what" 1' "a subject that names no module is refused"
is "$(verdict "lib: what.\n")" "line 1: the subject must not end with a full stop 1" "a full stop after the subject is refused"
is "$(verdict "lib: what\nwhy\n")" "line 2: a line between the subject and the body must be empty 1" "a body without an empty line before it is refused"
is "$(verdict "lib: what\n\nword $long and more\n")" "line 3: it has 80 columns, 72 are allowed 1" "a long line of the body is refused"
is "$(verdict "lib: what\n\nhttps://example.org/$long\n")" "0" "an address, which cannot be broken, is accepted"
is "$(verdict "fixup! lib: what, and a subject that is far longer than seventy-two columns are\n")" "0" "a commit to be squashed is accepted"
is "$(verdict "lib: what\n\n# ------------------------ >8 ------------------------\n$long$long\n")" "0" "what git shows below the scissors is ignored"
done_testing
