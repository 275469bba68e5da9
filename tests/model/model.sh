# model.sh: what this folder's tests share: searching a model with spin, as it is and
# with one thing broken. Source it after tap.sh, fill the tables, and end with
#
#	model_check NAME EVENTS
#
# NAME.pml is the model, on model.pml, and EVENTS how many it has that must happen. The tables, a
# search a line, fields separated by |:
#
#	holds       name, fewest states, macros, title: no law is broken
#	holds_full  the same, larger: only with MODEL_FULL=1 (minutes, and up to 8 GB)
#	fails       macro, law that it breaks, more macros, title; law 0: some call ends (PROGRESS)
#
# PAN is how a search is compiled, MEMORY_MB what each of the two that run at once may use.
# The macro REVERSE lets a search take the processes in the other order: a variant may then fail early.
# Small searches, of less than SMALL states, and variants, which fail early, are compiled
# with -O0, since optimizing them takes longer than the search, and have a hash table of
# 2^20 places instead of 2^24, which would take longer to clear.
SMALL=500000

command -v spin >/dev/null || skip_all "spin is missing"
command -v gcc >/dev/null || skip_all "gcc is missing"

# search NAME MACROS...: the report of one search goes to $TMP/NAME/out.
search() {
	mkdir "$TMP/$1"
	cd "$TMP/$1" || exit
	shift
	case " $* " in
	*' -DPROGRESS '*) kind=-DNP flag=-l ;;
	*) kind=-DSAFETY flag= ;;
	esac
	case " $* " in
	*' -DREVERSE '*) kind="$kind -DREVERSE" ;;
	esac
	{
		spin -a "$@" "../$model.pml" &&
		gcc -w $PAN $more $kind -DVECTORSZ=2048 -DMEMLIM=$MEMORY_MB -o pan pan.c &&
		./pan $flag -m1000000 -w$hash
	} >out 2>&1
}

search_holds() {
	echo "$holds" | while IFS='|' read -r name floor macros title; do
		[ -n "$name" ] || continue
		more= hash=24
		[ "$floor" -ge $SMALL ] || more=-O0 hash=20
		(search "$name" $macros)
	done
}

search_fails() {
	more=-O0 hash=20
	echo "$fails" | while IFS='|' read -r name law macros title; do
		[ -z "$name" ] || (search "$name.$law" "-D$name" "-DONLY=$law" $macros)
	done
}

# Whole: no error, and nothing was left out for want of depth, memory or time.
whole() {
	grep -q ', errors: 0$' "$TMP/$1/out" &&
	! grep -Eqi 'depth too small|out of memory|MEMLIM|not completed|hash factor|truncat' "$TMP/$1/out"
}

states() { awk '/ states, stored/ { printf "%d", $1 }' "$TMP/$1/out"; }

judge_holds() {
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
}

# A search that never met these proves nothing about them.
judge_events() {
	sed -n 's/.*EVENT([0-9]*, "\(.*\)").*/\1/p' "$TMP/$model.pml" >"$TMP/events"
	[ "$(wc -l <"$TMP/events")" -ge "$1" ]
	ok $? "the model names what has to happen"
	while read -r event; do
		grep -qx "event: $event" "$TMP"/[a-z]*/out
		ok $? "it happens: $event"
	done <"$TMP/events"
}

judge_fails() {
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
}

model_check() {
	model=$1
	cp "$SOURCE/tests/model/model.pml" "$(ls "$SOURCE"/tests/model/"$model".pml "$SOURCE"/*/*/tests/model/"$model".pml 2>/dev/null)" "$TMP/" || exit
	if [ "${MODEL_FULL:-0}" = 1 ]; then
		holds=$holds$holds_full
		MEMORY_MB=8000
		PAN="$PAN -DCOLLAPSE"
	fi
	search_holds &
	searches=$!
	trap 'kill $searches 2>/dev/null; exit 130' INT TERM HUP
	search_fails
	wait $searches
	judge_holds
	judge_events "$2"
	judge_fails
	done_testing
}
