#!/bin/sh
# toy: an algorithm is added to the library by its own folder and one line in lib/algorithm/list.h. What is in toy/ becomes such a folder
# of a copy of the sources; the library, the gate and the command of the copy have it, by its name.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need gcc make jq
unset MAKEFLAGS MAKELEVEL MFLAGS O

tree=$TMP/tree made=$TMP/made
mkdir "$tree"
(cd "$SOURCE" && tar cf - Makefile include lib tools tests/*.mk) | tar xf - -C "$tree"
cp -r "$SOURCE/tests/build/toy" "$tree/lib/algorithm/"
algorithms=$(grep -c '^ALGORITHM(' "$SOURCE/lib/algorithm/list.h")
sed -i "s/^#undef ALGORITHM\$/ALGORITHM($algorithms, toy)\n&/" "$tree/lib/algorithm/list.h"
is "$(diff -rq "$SOURCE/lib" "$tree/lib" | sed "s|$SOURCE|source|g; s|$tree|tree|g" | LC_ALL=C sort)" \
	"Files source/lib/algorithm/list.h and tree/lib/algorithm/list.h differ
Only in tree/lib/algorithm: toy" "an algorithm is a folder, and a line in the list"
make -s -C "$tree" O="$made" CFLAGS=-O1 WERROR=1 "$made/bin/shmlimit" "$made/libshmlimit-gate.so" >"$TMP/log" 2>&1
ok $? "library, gate and command are built with it"
[ -x "$made/bin/shmlimit" ] || diag "$(tail -5 "$TMP/log")"
shmlimit() { "$made/bin/shmlimit" "$@"; }

# ---- The command ----

shmlimit create "$SEGMENT" --slots 1k
run shmlimit rule set "$SEGMENT" client --algorithm toy --rate 3/366d
is "$rc $err" "0 " "the command makes a rule of it, by its name"
run shmlimit rule set "$SEGMENT" other --algorithm top --rate 3/366d
like "$err" 'must be .*gcra or toy' "a wrong name is told the right ones, the new one among them"
run shmlimit rule set "$SEGMENT" other --algorithm toy --rate 3/366d --max-wait 1s
like "$err" 'max-wait: a toy has none of its own' "what its rules are not set with is refused"
run shmlimit rule set "$SEGMENT" other --algorithm toy --rate '3/366d burst 5'
like "$err" 'this algorithm has no burst' "what its limits do not have is refused"
run shmlimit rule set "$SEGMENT" other --algorithm toy --rate 3/1000d
like "$err" 'rate 3/1000d with period 1000d: cannot be represented: must be a capacity of at most 2\^32 - 1 and' \
	"a rule that is out of its range is told the range"
is "$(shmlimit rule list "$SEGMENT" --json | jq -r '.[] | "\(.name) \(.algorithm) \(.capacity)"')" "client toy 3" "rules are listed with it"
answers=
for n in 1 2 3 4; do
	run shmlimit take "$SEGMENT" client somebody
	answers="$answers $rc"
done
is "$answers" " 0 0 0 1" "its rules decide: three of four requests are allowed"
like "$(shmlimit metrics "$SEGMENT")" 'shmlimit_rule_info{segment="'"$SEGMENT"'",rule="client",algorithm="toy"' "metrics have its name"
run shmlimit check "$SEGMENT"
is "$rc" 0 "a segment with its keys is healthy"
shmlimit save "$SEGMENT" "$TMP/state" && shmlimit load "$SEGMENT.again" "$TMP/state"
run shmlimit peek "$SEGMENT.again" client somebody
is "$rc" 1 "its keys are saved and loaded"
run shmlimit rule set "$SEGMENT" client --rate 5/366d
run shmlimit take "$SEGMENT" client somebody
is "$rc" 0 "its rule is changed, and its keys follow"

# ---- The bindings ----

number=0 unknown=
for name in $(sed -n 's/^ALGORITHM(.*, \(.*\))$/\1/p' "$SOURCE/lib/algorithm/list.h"); do
	upper=$(echo "$name" | tr a-z A-Z)
	for known in "python/shmlimit/limiter.py $upper = $number" \
		"ruby/lib/shmlimit/limiter.rb $name: $number" "ruby/sig/shmlimit.rbs :$name" "lua/resty/shmlimit.lua $name = $number" \
		"lua/ext/lua_limiter.c \"$name\"" "node/index.js '$name'" "node/index.d.ts '$name'"; do
		grep -qwF -e "${known#* }" "$SOURCE/tools/${known%% *}" || unknown="$unknown ${known%% *}:$name"
	done
	# PHP's classes have constants for those alone that they have calls for.
	for file in php/src/Limiter.php php/ext/shmlimit.stub.php; do
		[ "$(grep -ow "$upper = [0-9]*" "$SOURCE/tools/$file" || echo "$upper = $number")" = "$upper = $number" ] || unknown="$unknown $file:$name"
	done
	number=$((number + 1))
done
is "$unknown" "" "each binding has the names of the $number algorithms, with their numbers"

# ---- The gate ----

cat >"$TMP/gate.c" <<'END'
#include <shmlimit_gate.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct shmlimit_gate_wrong wrong = { .struct_size = sizeof(wrong) };
	struct shmlimit_gate_answer answer = { .struct_size = sizeof(answer) };
	struct shmlimit_gate_key key = { .bytes = "somebody", .length = 8 };
	struct shmlimit_gate *gate;
	int error = shmlimit_gate_open(argv[argc - 1], &gate);

	if (error != 0 && shmlimit_gate_check(argv[argc - 1], &wrong) != 0)
		printf("%s\n", wrong.text);
	for (int i = 0; error == 0 && i < 4; i++)
		printf("%d\n", shmlimit_gate_ask(gate, &key, 1, &answer));
	if (error == 0)
		shmlimit_gate_close(gate);
	return error != 0;
}
END
gcc -I "$SOURCE/include" "$TMP/gate.c" -L "$made" -lshmlimit-gate -lshmlimit -Wl,-rpath-link,"$made" -o "$TMP/gate"
ok $? "a program with a gate is built"
gate() { run env LD_LIBRARY_PATH="$made" "$TMP/gate" "segment=$SEGMENT.gate create=yes $*"; }
gate rule=client algorithm=toy rate=3/366d
is "$rc $(printf '%s' "$out" | tr '\n' ' ')" "0 0 0 0 1" "a limit of the gate names it, and three of four requests are allowed"
gate rule=client algorithm=top rate=3/366d
like "$out" 'algorithm=gcra or algorithm=toy' "a limit with a wrong name is told the right ones"
gate rule=later algorithm=toy rate=3/366d estimate=1
like "$out" 'cannot be charged afterwards' "what its keys cannot do is refused"
done_testing
