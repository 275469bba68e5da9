#!/bin/sh
# php_load: PHP-FPM where the library cannot be loaded, for each possible reason. The script that runs before all
# others is the README's; it then fails open or closed, as configured.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/php.inc"
. "$SOURCE/tests/server/server.inc"

PATH=$PATH:/usr/sbin
fpm=$(php_fpm) || skip_all "no php-fpm"
command -v cgi-fcgi >/dev/null || skip_all "no libfcgi-bin"

cat >"$TMP/fpm.conf" <<EOF
[global]
daemonize = no
error_log = $TMP/log
log_level = debug
[web]
user = $(id -un)
listen = $TMP/socket
pm = static
pm.max_children = 1
catch_workers_output = yes
php_admin_value[error_log] = $TMP/errors
$(block tools/php/README.md ini auto_prepend_file | own)
EOF
echo '<?php echo "hello";' >"$TMP/hello.php"

ask() {
	env -i SCRIPT_FILENAME="$TMP/hello.php" SCRIPT_NAME=/hello.php REQUEST_METHOD=GET REMOTE_ADDR=203.0.113.9 \
		timeout 120 cgi-fcgi -bind -connect "$TMP/socket" </dev/null 2>&1 | tr -d '\r'
}
# code: the status of the answer on standard input, and the body where it is the script's.
code() { awk '/^Status: / { s = $2 } /^Content-type: / { c = 200 } /^hello/ { b = " hello" } END { print (s ? s : c ? c : "000") b }'; }
ready() { grep -q 'ready to handle connections' "$TMP/log"; }

# answers FPM-OPTION...: what a server with this php.ini and these options answers, failing open, then closed.
answers() {
	for fails in open closed; do
		block tools/php/README.md php "Gate('web'" | own | sed "s/, rate: '[^']*'//" >"$TMP/limit.php"
		[ $fails = closed ] || sed -i "s/Gate('$SEGMENT'/Gate('$SEGMENT', failOpen: true/" "$TMP/limit.php"
		: >"$TMP/log"
		: >"$TMP/errors"
		timeout 600 "$fpm" -F -R "$@" -y "$TMP/fpm.conf" 2>"$TMP/err" &
		server=$!
		servers="$servers $server"
		within ready || { diag "$(cat "$TMP/err" "$TMP/log")"; exit 1; }
		echo "$fails: $(ask | code)"
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
