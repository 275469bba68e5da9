#!/bin/sh
# The slot table's model, searched with spin: the protocol as it is must hold, and
# each of its broken variants must break the law that claim.pml says it breaks.
# MODEL_FULL=1 adds larger searches (minutes, and up to 8 GB).

. "${0%/*}/../tap.sh"

command -v spin >/dev/null || skip_all "spin is missing"
command -v gcc >/dev/null || skip_all "gcc is missing"

# The sources don't lie beside this test: they are in the first folder above the build that has them.
if [ -z "${SRCDIR:-}" ]; then
	SRCDIR=$BUILD/..
	[ -f "$SRCDIR/Makefile" ] || SRCDIR=$BUILD
	until [ -f "$SRCDIR/tests/model/claim.pml" ] || [ "$(cd "$SRCDIR" && pwd)" = / ]; do
		SRCDIR=$SRCDIR/..
	done
	[ -f "$SRCDIR/tests/model/claim.pml" ] || SRCDIR=.
fi
MODEL=$SRCDIR/tests/model/claim.pml
if [ ! -f "$MODEL" ]; then
	echo "Bail out! no tests/model/claim.pml above $BUILD: set SRCDIR"
	exit 1
fi
cp "$MODEL" "$TMP/claim.pml"

MEMORY_MB=1700		# each of the two searches that run at once

# search NAME MACROS...: the report of one search goes to $TMP/NAME/out.
search() {
	mkdir "$TMP/$1"
	cd "$TMP/$1" || exit
	shift
	case " $* " in
	*' -DPROGRESS '*) kind=-DNP flag=-l ;;
	*) kind=-DSAFETY flag= ;;
	esac
	{
		spin -a "$@" ../claim.pml &&
		gcc -O2 -w $kind -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=$MEMORY_MB -o pan pan.c &&
		./pan $flag -m1000000
	} >out 2>&1
}

# Both lists are read twice: to run the searches, and to judge them.
# NAME | fewest states | macros | title
holds='
claim|1000000|-DSTRANGERS=1 -DOTHERS=1|3 processes, 2 slots, 2 keys and a stranger
window|8000000|-DSTRANGERS=1 -DOTHERS=0 -DSLOTS=3|3 processes want one key, 3 slots
evict|1000000|-DSTRANGERS=1 -DRESETS=1 -DEVICT -DN=2|2 processes, any keys, with evict and reset
refill|500000|-DTICKS=2 -DRESETS=1 -DN=2|2 processes, any keys, two refills and a reset
capacity|300000|-DCAPACITY=2 -DSTRANGERS=1 -DN=2|2 processes, any keys, two tokens
split|400000|-DSPLIT -DSTRANGERS=1 -DN=2|2 processes, any keys, tag and word read one after the other
solo|500000|-DSOLO -DOTHERS=1|3 processes of which two are killed at any moment
progress|200000|-DPROGRESS -DOTHERS=0|3 processes that want one key: always some call ends
keep|100000|-DKEEP_MINE -DOTHERS=1|a tentative slot given up need not be freed
'
holds_full='
full|10000000|-DSTRANGERS=1|3 processes, any keys, 2 slots
full-evict|10000000|-DSTRANGERS=1 -DEVICT -DRESETS=1 -DOTHERS=1|3 processes, evict and reset
full-refill|10000000|-DTICKS=2 -DRESETS=1 -DOTHERS=1|3 processes, two refills
full-split|10000000|-DSPLIT -DSTRANGERS=1 -DOTHERS=1|3 processes, tag and word read one after the other
full-slots|4000000|-DSLOTS=3 -DSTRANGERS=1 -DOTHERS=1|3 processes, 3 slots, 2 keys
'
# VARIANT | law broken, 0 = that some call ends | macros | title
fails='
TWO_CAS|1|-DOTHERS=1|two CASes in place of one charge the wrong key
NO_SECOND_SCAN|2|-DOTHERS=0|without the second scan a key has twins
NO_NONCE|2|-DOTHERS=0 -DSLOTS=3 -DSTRANGERS=1|without a nonce a key has twins
NO_NONCE|3|-DOTHERS=1 -DSTRANGERS=1|without a nonce more than capacity is admitted
IGNORE_TENTATIVE|2|-DOTHERS=1|a second scan blind to tentative slots makes twins
LEAVE_HIGHER|2|-DOTHERS=1|a higher tentative slot left alone makes twins
LEAVE_LOWER|2|-DOTHERS=1|a lower tentative slot left alone makes twins
COMMIT_EARLY|2|-DOTHERS=1|a commit before the second scan has ended makes twins
HELP_WITHOUT_SCAN|2|-DOTHERS=0 -DSLOTS=3 -DSTRANGERS=1|help without a second scan makes twins
STALE_CLOCK|3|-DOTHERS=1|a commit at the time of the call admits more than capacity
CLOCK_EARLY|3|-DOTHERS=1 -DSTRANGERS=1|a commit at a time before the second scan admits more than capacity
TORN|4|-DOTHERS=1|a denial that does not look twice denies without cause
NO_HELP|5|-DOTHERS=1 -DSOLO|without help a killed claimer locks its key out
BOTH_YIELD|0|-DOTHERS=0 -DPROGRESS|two claims that both yield may never end
'
if [ "${MODEL_FULL:-0}" = 1 ]; then
	holds=$holds$holds_full
	MEMORY_MB=8000
fi

(
	echo "$holds" | while IFS='|' read -r name floor macros title; do
		[ -z "$name" ] || (search "$name" $macros)
	done
) &
searches=$!
trap 'kill $searches 2>/dev/null; exit 130' INT TERM HUP
echo "$fails" | while IFS='|' read -r name law macros title; do
	[ -z "$name" ] || (search "$name.$law" "-D$name" "-DONLY=$law" $macros)
done
wait $searches

# Whole: no error, and nothing was left out for want of depth, memory or time.
whole() {
	grep -q ', errors: 0$' "$TMP/$1/out" &&
	! grep -Eqi 'depth too small|out of memory|MEMLIM|not completed|hash factor|truncat' "$TMP/$1/out"
}

states() { awk '/ states, stored/ { printf "%d", $1 }' "$TMP/$1/out"; }

while IFS='|' read -r name floor macros title; do
	[ -n "$name" ] || continue
	whole "$name"
	held=$?
	ok $held "the protocol holds: $title"
	[ $held -eq 0 ] || diag "$(tail -n 30 "$TMP/$name/out")"
	found=$(states "$name")
	diag "$name: ${found:=0} states"
	[ "$found" -ge "$floor" ]
	ok $? "the search is no empty one: $name has at least $floor states"
done <<-END
	$holds
END

# A search that never met these proves nothing about them.
sed -n 's/.*EVENT([0-9]*, "\(.*\)").*/\1/p' "$TMP/claim.pml" >"$TMP/events"
[ "$(wc -l <"$TMP/events")" -ge 16 ]
ok $? "the model names what has to happen"
while read -r event; do
	grep -qx "event: $event" "$TMP"/[a-z]*/out
	ok $? "it happens: $event"
done <"$TMP/events"

while IFS='|' read -r name law macros title; do
	[ -n "$name" ] || continue
	case $law in
	0) want='^pan:1: non-progress cycle' ;;
	*) want="^pan:1: assertion violated \\(\\($law!=$law\\)" ;;
	esac
	like "$(cat "$TMP/$name.$law/out")" "$want" "$name fails: $title"
done <<-END
	$fails
END

done_testing
