# tap.sh: the same verbs as tap.h, for shell tests. Source it first:
#
#	. "${0%/*}/../tap.sh"
#
# It sets BUILD (the build folder that the test lies in) and SOURCE (the
# project's folder), puts the commands built there first in PATH, makes a private
# folder $TMP that is removed at the end, and a prefix $SEGMENT for names of
# segments: whatever in /dev/shm begins with it is removed at the end too, also
# when the test is interrupted. A segment's file is "$SHM$name".
#
# A test starts in the same state whatever started it: no signal is ignored (a background job of a shell ignores
# SIGINT, and a shell cannot undo that for its children, so env does), the umask is 022, the locale is C, and nothing
# in the environment changes what the standard tools print. Where there is bash, it runs the test, since it knows which
# line called a function: a test that fails says at which line.
#
# A test that looks at all segments sets OWN_SHM=yes first: where that is permitted (to root) it has a /dev/shm of its
# own, in which no other test makes segments.

set -u
if [ "${TAP_STARTED:-}" != $$ ]; then
	export TAP_STARTED=$$
	# shellcheck disable=SC2046 # "bash --posix" is two words, and may be none
	set -- $(command -v bash >/dev/null && echo bash --posix) "$0" "$@"
	if [ -n "${OWN_SHM:-}" ] && unshare --mount mount -t tmpfs shm /dev/shm 2>/dev/null; then
		set -- unshare --mount sh -c 'mount -t tmpfs -o mode=1777 shm /dev/shm && exec "$@"' sh env --default-signal "$@"
	fi
	exec env --default-signal "$@"
fi
umask 022
# Some tests have words of a command in one variable: a folder with spaces in its name would be several.
case ${TMPDIR:-} in *[!A-Za-z0-9/._-]*) unset TMPDIR ;; esac
unset CDPATH POSIXLY_CORRECT GREP_OPTIONS GREP_COLORS COLUMNS LINES
BUILD=$(cd "${0%/*}/../.." && pwd)
SOURCE=${SOURCE:-$BUILD}
while [ "$SOURCE" != / ] && [ ! -f "$SOURCE/include/shmlimit.h" ]; do
	SOURCE=$(dirname "$SOURCE")
done
[ "$SOURCE" != / ] || SOURCE=$PWD
PATH=$BUILD/bin:$PATH
LC_ALL=C
export PATH LC_ALL
TMP=$(mktemp -d)
SEGMENT=test.$$.$(basename "$0" .t)
# Each command of ours begins SLOW seconds later: a test passes nevertheless (tests/README.md).
if [ -n "${SLOW:-}" ]; then
	mkdir "$TMP/.slow"
	printf '#!/bin/sh\n%s %s\nexec "%s" "$@"\n' "$(command -v sleep)" "$SLOW" "$BUILD/bin/shmlimit" >"$TMP/.slow/shmlimit"
	chmod 755 "$TMP/.slow/shmlimit"
	PATH=$TMP/.slow:$PATH
fi
SHM=/dev/shm/shmlimit.$(sed -n 's/^#define LAYOUT_VERSION \([0-9]*\)u$/\1/p' "$SOURCE/lib/segment/layout.h").
export SHM
tap_count=0
tap_failed=0

tap_clean() {
	rm -rf "$TMP"
	rm -f "/dev/shm/$SEGMENT"* /dev/shm/shmlimit.*."$SEGMENT"*
}
trap tap_clean EXIT
trap 'exit 130' INT TERM HUP

diag() { printf '%s\n' "$*" | sed 's/^/# /' >&2; }

# tap_where: the line that failed, and those that it was called from, where the shell knows them (bash does).
tap_where() {
	depth=0
	said=failed
	while frame=$(caller $depth 2>/dev/null); do
		depth=$((depth + 1))
		file=${frame##* }
		case $file in
		*/tap.sh) continue ;;
		*/tests/*.t) file=${file%.t}.sh ;;
		esac
		file=tests/${file##*/tests/}
		# That of an annex is in the annex's folder.
		for source in "$SOURCE"/*/"${file#*/}"; do
			source=${source%/*}/tests/${source##*/}
			[ ! -f "$source" ] || file=${source#"$SOURCE"/}
		done
		echo "$said at $file:${frame%% *}"
		said='  called'
	done
}

# ok STATUS TITLE: the title is a law, STATUS 0 means that it held.
ok() {
	tap_count=$((tap_count + 1))
	if [ "$1" -eq 0 ]; then
		printf 'ok %d - %s\n' $tap_count "$2"
	else
		printf 'not ok %d - %s\n' $tap_count "$2"
		tap_failed=$((tap_failed + 1))
		[ -z "$(tap_where)" ] || diag "$(tap_where)"
	fi
}

# is GOT WANT TITLE: two strings are equal.
is() {
	if [ "$1" = "$2" ]; then
		ok 0 "$3"
	else
		ok 1 "$3"
		diag "got:  $1"
		diag "want: $2"
	fi
}

# like GOT PATTERN TITLE: a string matches an extended regular expression.
like() {
	if printf '%s\n' "$1" | grep -Eq -e "$2"; then
		ok 0 "$3"
	else
		ok 1 "$3"
		diag "got:  $1"
		diag "want: $2"
	fi
}

# run COMMAND...: sets $out (standard output), $err (standard error), $rc. A
# death by signal is reported as a failed test even where failure is expected.
run() {
	"$@" >"$TMP/.out" 2>"$TMP/.err" </dev/null
	rc=$?
	out=$(cat "$TMP/.out")
	err=$(cat "$TMP/.err")
	if [ $rc -gt 125 ]; then
		ok 1 "does not die: $*"
		diag "exit status $rc" "$err"
	fi
}

# need COMMAND...: skip the test where one is missing.
need() {
	for tap_command in "$@"; do
		command -v "$tap_command" >/dev/null || skip_all "$tap_command is not installed"
	done
}

# has_terminal: can script(1) run a command on a terminal? A chroot may have none.
has_terminal() { script -qec true /dev/null </dev/null >/dev/null 2>&1; }

skip_all() {
	printf '1..0 # SKIP %s\n' "$1"
	exit 0
}

# block PAGE LANGUAGE [TEXT]: the first example of the page that has this language and text; block.awk says more.
block() { language=$2 text=${3-} awk -v page="$1" -f "$SOURCE/tests/block.awk" "$SOURCE/$1"; }

# sum_file FILE: a checksum of what a segment has reserved at once. Behind that are terabytes of holes.
sum_file() { head -c 16777216 "$1" | cksum; }

# segment_end NAME: where its table ends in the file. Its list of rules cannot grow.
segment_end() { shmlimit inspect "$1" --json | jq .segment.size; }

# done_testing: the last line of every test.
done_testing() {
	printf '1..%d\n' $tap_count
	[ $tap_failed -eq 0 ]
	exit $?
}
