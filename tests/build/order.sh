#!/bin/sh
# order: the code that a guarantee rests on names it; and on aarch64, where memory is weakly ordered, each access of
# lib/segment/atomic.h is compiled to instructions that keep the order which its table asks for.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

guarantees=$(sed -n 's/^\*\*\(I[0-9]*\)\*\* .*/\1/p' "$SOURCE/lib/doc/guarantees.md")
is "$(printf '%s\n' "$guarantees" | wc -l)" 13 "thirteen guarantees are listed"
for guarantee in $guarantees; do
	is "$(grep -rlw "$guarantee" "$SOURCE/lib" --include='*.[ch]' | head -n 1 | grep -c .)" 1 \
		"the library says which code $guarantee rests on"
done
for call in slot_cas publish word_cas pair_cas cell_cas; do
	is "$(grep -c "^ \*	$call  *full  " "$SOURCE/lib/segment/atomic.h")" 1 "atomic.h says what $call pairs with"
done

# What the functions become, in the order of the instructions: l a load, x s the loads and stores of a swap, and barriers
# of all accesses (A), of loads before what follows (L), of stores (S).
cat >"$TMP/weak.c" <<'END'
#include "atomic.h"
uint64_t f_load_acquire(const uint64_t *p) { return load_acquire(p); }
uint64_t f_load_again(const uint64_t *p) { return load_again(p); }
void f_publish(uint64_t *p, uint64_t v) { publish(p, v); }
int f_word_cas(uint64_t *p, uint64_t old, uint64_t v) { return word_cas(p, old, v); }
int f_cell_cas(uint64_t *p, uint64_t old, uint64_t v) { return cell_cas(p, old, v); }
int f_pair_cas(void *p, const uint64_t *old, const uint64_t *v) { return pair_cas(p, old, v); }
int f_slot_cas(struct layout_slot *s, struct slot_seen old, uint64_t tag, uint64_t v) { return slot_cas(s, old, tag, v); }
struct slot_seen f_slot_read(const struct layout_slot *s) { return slot_read(s); }
int f_slot_unchanged(const struct layout_slot *s, struct slot_seen seen) { return slot_unchanged(s, seen); }
END
headers=${BUILD%/*}/arm64/usr/include
[ -d "$headers" ] || headers=$BUILD/arm64/usr/include
# instructions HEADER...: those of each function, a line each, where atomic.h is looked for in the first folder.
instructions() {
	aarch64-linux-gnu-gcc -std=c11 -D_GNU_SOURCE -O2 -I "$1" -I "$SOURCE/include" -I "$SOURCE/lib/segment" -I "$SOURCE/lib/base" \
		-isystem "$headers" -isystem "$headers/aarch64-linux-gnu" -c "$TMP/weak.c" -o "$TMP/weak.o" &&
		aarch64-linux-gnu-objdump -d --no-show-raw-insn "$TMP/weak.o" | awk '
			/>:$/ { if (name) print name, code; name = $2; gsub(/[<>:]|f_/, "", name); code = "" }
			$2 ~ /^ldr/ { code = code "l" } $2 ~ /^ldx/ { code = code "x" } $2 ~ /^stx/ { code = code "s" } $2 ~ /^(str|stp|swp|cas|ldar|stlr)/ { code = code "?" }
			$2 == "dmb" { code = code ($3 == "ish" ? "A" : $3 == "ishld" ? "L" : "S") }
			END { print name, code }'
}
# kept NAME: does the function keep its order, by what the table of atomic.h asks for?
kept() {
	case $1 in
	load_acquire) order='l[AL]' ;;
	load_again) order='[AL]l' ;;
	slot_read) order='l[AL]l[AL]' ;;
	slot_unchanged) order='[AL]l[AL]l[AL]' ;;
	*) order='AxsA' ;;
	esac
	grep -qE "^$1 $order\$" "$TMP/code"
}
functions='load_acquire load_again publish word_cas cell_cas pair_cas slot_cas slot_read slot_unchanged'
if ! command -v aarch64-linux-gnu-gcc >/dev/null || [ ! -d "$headers" ]; then
	ok 0 "on aarch64 each access keeps its order # SKIP no compiler for aarch64, or no headers"
else
	instructions "$SOURCE/lib/segment" >"$TMP/code"
	for name in $functions; do
		kept "$name"
		ok $? "on aarch64 $name keeps its order: $(sed -n "s/^$name //p" "$TMP/code")"
	done
	# A copy without any one barrier is noticed.
	mkdir "$TMP/broken"
	for fence in $(grep -o 'ck_pr_fence_[a-z_]*();' "$SOURCE/lib/segment/atomic.h" | sort -u | tr -d '();'); do
		sed "s/$fence();//" "$SOURCE/lib/segment/atomic.h" >"$TMP/broken/atomic.h"
		instructions "$TMP/broken" >"$TMP/code"
		broken=
		for name in $functions; do kept "$name" || broken="$broken $name"; done
		[ -n "$broken" ]
		ok $? "without $fence the order is lost:$broken"
	done
fi
done_testing
