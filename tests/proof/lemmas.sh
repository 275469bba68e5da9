#!/bin/sh
# lemmas: what is true of products and quotients, proved by z3 over integers: see lemmas.smt2. Each lemma has a wrong
# one beside it that must be refuted.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

command -v z3 >/dev/null || skip_all "no z3"
z3 "$SOURCE/tests/proof/lemmas.smt2" >"$TMP/out" 2>&1
is $? 0 "z3 reads all of them"
while read -r title && read -r answer; do
	case $title in
	...*) is "$answer" sat "refuted: $title" ;;
	*) is "$answer" unsat "$title" ;;
	esac
done <"$TMP/out"
is "$(grep -c '^unsat$' "$TMP/out")" "$(grep -c '^sat$' "$TMP/out")" "as many were refuted as were proved"
done_testing
