#!/bin/sh
# promise: what scripts and programs of 1.0 rely on is there: subcommands and options, the members of JSON, limits as text,
# rules files, and a program that was compiled with 1.0's header. What 1.0 had stands in promise_1_0.txt and promise_1_0.x86_64.o;
# RENEW=tests/cli in the environment writes both, until 1.0 is released. Later versions may have more. (What 1.0 wrote into
# segments and saved files: unit/promise.)
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
there=$SOURCE/tests/cli

# Each command and each of its options.
options() {
	shmlimit --help | sed -nE 's/^  ([a-z]+( (set|show|list|remove|export|take|inspect|ping|reset|status))?) .*/\1/p' | sort -u >"$TMP/commands"
	while read -r words; do
		echo "command $words"
		# shellcheck disable=SC2086 # two words or one
		shmlimit $words --help 2>&1 | grep -oE '^ +(-[a-zA-Z], )?--[a-z][a-z-]*' | sed -E "s/^ +//; s/^(-.), /\1 /; s/^/option $words: /"
	done <"$TMP/commands"
}

# json COMMAND...: each member that it prints, by its path, and of which type it is.
json() {
	words=$*
	shmlimit "$@" --json 2>/dev/null | jq -r --arg of "$(echo "$words" | sed "s/$SEGMENT/web/")" '
		paths(type != "object" and type != "array") as $p
		| "json \($of): \($p | map(if type == "number" then "[]" else . end) | join(".")) \(getpath($p) | type)"'
}

all_json() {
	json inspect "$SEGMENT"
	json top "$SEGMENT" --count 1
	json stat "$SEGMENT" --interval 1ms --count 1
	json keys "$SEGMENT"
	json bans "$SEGMENT"
	json verify "$SEGMENT"
	json rule list "$SEGMENT"
	json rule show "$SEGMENT" login
	json take "$SEGMENT" login user:1
	json peek "$SEGMENT" login user:1
	json count "$SEGMENT" downloads user:1
	json reset "$SEGMENT" --all
	json size --keys 1000/h --capacity 3 --rate 3/h
	shmlimit list --json | jq -r --arg name "$SEGMENT" '.[] | select(.name == $name) | to_entries[] | "json list: [].\(.key) \(.value | type)"'
}

limits() {
	for limit in 5/minute '100 per hour' 10r/s '10/s burst 20' 1000/day 3/month 1k/s 10Mi/s 1/1.5s 5/1m30s '2 per 5 seconds' \
		'4 at once' '4 at once for 10 minutes' '4/1m window' 0/s 0 block unlimited off '1000/hour strict'; do
		shmlimit rule set "$SEGMENT" limit --limit "$limit" >"$TMP/out" 2>&1 || cat "$TMP/out"
		shmlimit rule export "$SEGMENT" | sed -n "/^\[limit\]/,/^\$/{/^\[/d; /^\$/d; s|^|limit $limit: |; p}"
		shmlimit rule remove "$SEGMENT" limit >"$TMP/out" 2>&1
	done
}

shmlimit create "$SEGMENT" --slots 1K --store-keys 46
cat >"$TMP/rules.conf" <<'END'
[login]
capacity = 3
rate = 3/h

[search]
algorithm = window
rate = 4/m
mode = dry-run

[reports]
algorithm = hold
capacity = 4
period = 10m

[downloads]
algorithm = counter
capacity = 100
period = 1h
END
shmlimit apply "$SEGMENT" "$TMP/rules.conf" | sed 's/^/apply: /' >"$TMP/applied"
for i in 1 2 3 4; do shmlimit take "$SEGMENT" login user:42 --quiet; done
shmlimit ban "$SEGMENT" user:43 --for 1h >"$TMP/out" 2>&1
{ options; all_json; limits; cat "$TMP/applied"; } | LC_ALL=C sort -u >"$TMP/now"

if [ -n "${RENEW:-}" ]; then
	cp "$TMP/now" "$RENEW/promise_1_0.txt"
	[ "$(uname -m)" != x86_64 ] || gcc -O2 -c "$SOURCE/tools/examples/limit.c" -I "$SOURCE/include" -o "$RENEW/promise_1_0.x86_64.o"
fi
for kind in command option json limit apply; do
	grep "^$kind" "$there/promise_1_0.txt" >"$TMP/then"
	[ -s "$TMP/then" ]
	ok $? "$kind: there is a list of what 1.0 had"
	is "$(LC_ALL=C comm -23 "$TMP/then" "$TMP/now")" "" "$kind: what 1.0 had is as it was"
done

if [ "$(uname -m)" != x86_64 ] || ! command -v gcc >/dev/null || nm -D "$BUILD/libshmlimit.so" | grep -q '__asan_\|__tsan_'; then
	ok 0 "a program compiled with 1.0's header runs with this library # SKIP it is for x86-64, without sanitizers"
else
	# Its segment may be anyone's: it has a /dev/shm of its own, where that can be had.
	gcc "$there/promise_1_0.x86_64.o" -L "$BUILD" -Wl,-rpath,"$BUILD" -lshmlimit -o "$TMP/limit"
	ok $? "a program compiled with 1.0's header can be linked with this library"
	run unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/shm || exit 99; for i in 1 2 3 4; do "$0" 198.51.100.7; done' "$TMP/limit"
	case $rc$err in
	99* | *unshare:*) ok 0 "a program compiled with 1.0's header runs with this library # SKIP no /dev/shm of its own is permitted" ;;
	*)
		is "$(echo "$out" | cut -d , -f 1 | tr '\n' ';')" 'allowed: 2 of 3 left;allowed: 1 of 3 left;allowed: 0 of 3 left;denied: 0 of 3 left;' \
			"a program compiled with 1.0's header runs with this library"
		;;
	esac
fi
done_testing
