#!/bin/sh
# load: PHP-FPM where the library cannot be loaded, for each possible reason. The script that runs before all
# others is the README's; it then fails open or closed, as configured.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tools/php/tests/fpm.inc"

echo '<?php echo "hello";' >"$TMP/hello.php"

# answer: the status, and the body where it is the script's.
answer() {
	fcgi "$TMP" hello.php 203.0.113.9 >"$TMP/answer"
	echo "$(code <"$TMP/answer")$(sed -n 's/^hello/ hello/p' "$TMP/answer")"
}

# answers FPM-OPTION...: what a server with this php.ini and these options answers, failing open, then closed.
answers() {
	for fails in open closed; do
		block tools/php/README.md php "Gate('web'" | own | sed "s/, rate: '[^']*'//" >"$TMP/limit.php"
		[ $fails = closed ] || sed -i "s/Gate('$SEGMENT'/Gate('$SEGMENT', failOpen: true/" "$TMP/limit.php"
		start_fpm "$TMP" 1 "$@"
		echo "$fails: $(answer)"
		cp "$TMP/errors" "$TMP/errors.$fails"
		kill -TERM $server
		wait $server
	done
}
reason() { sed -n "s/^.*segment $SEGMENT: \(.*\): requests that need it pass without a limit\$/\1/p" "$TMP/errors.open"; }

fails_as_told='open: 200 hello
closed: 503'
limits='open: 200 hello
closed: 200 hello'
shmlimit create "$SEGMENT" --slots 64
shmlimit rule set "$SEGMENT" client --capacity 100 --rate 1/h
block tools/php/README.md ini opcache.preload | own >"$TMP/php.ini"

is "$(answers -c "$TMP/php.ini")" "$limits" "with everything in place FPM serves"
is "$(cat "$TMP/errors.open")" "" "with everything in place nothing is logged"

is "$(answers -n)" "$fails_as_told" "without the extension FFI a gate fails as it was told to"
like "$(reason)" 'libshmlimit-gate: cannot be loaded \(Class "FFI" not found\)' "without the extension FFI the log says so"

sed 's/^ffi.enable.*/ffi.enable = false/; /^ffi.preload/d' "$TMP/php.ini" >"$TMP/disabled.ini"
is "$(answers -c "$TMP/disabled.ini")" "$fails_as_told" "where FFI is disabled a gate fails as it was told to"
like "$(reason)" 'libshmlimit-gate: cannot be loaded \(FFI API is restricted' "where FFI is disabled the log says so"

sed 's/^ffi.enable.*/ffi.enable = true/; /^ffi.preload/d' "$TMP/php.ini" >"$TMP/late.ini"
is "$(answers -c "$TMP/late.ini")" "$limits" "FFI that is not preloaded is loaded by each request"
is "$(LD_LIBRARY_PATH='' answers -c "$TMP/late.ini")" "$fails_as_told" \
	"where the library is missing a gate fails as it was told to"
like "$(reason)" "libshmlimit-gate: cannot be loaded \(Failed loading 'libshmlimit-gate.so.1'( \(libshmlimit-gate.so.1: cannot open.*)?\)" \
	"where the library is missing the log says so"

sed 's/^opcache.enable.*/opcache.enable = 0/' "$TMP/php.ini" >"$TMP/slow.ini"
is "$(answers -c "$TMP/slow.ini")" "$fails_as_told" "where opcache is off, so that nothing is preloaded, a gate fails as it was told to"
like "$(reason)" 'libshmlimit-gate: cannot be loaded \(FFI API is restricted' "where opcache is off the log says so"

{
	cat "$TMP/php.ini"
	php -r 'echo "disable_functions = ", implode(",", get_extension_funcs("posix")), "\n";'
} >"$TMP/posix.ini"
is "$(answers -c "$TMP/posix.ini")" "$limits" "where posix functions are disabled a gate decides as ever"
is "$(cat "$TMP/errors.open")" "" "where posix functions are disabled nothing is logged"
done_testing
