#!/bin/sh
# adapters: the adapters for frameworks, with Debian's packages of these, over FFI and with the extension.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"

php -m | grep -qx pcntl || skip_all "PHP has no pcntl"
runs=0
# laws NAME CLASS-FILE PACKAGE
laws() {
	for option in "" "extension=$BUILD/php/shmlimit.so"; do
		how="over FFI"
		[ -z "$option" ] || how="with the extension"
		runs=$((runs + 1))
		if ! php -r 'exit(stream_resolve_include_path($argv[1]) ? 0 : 1);' "$2"; then
			ok 0 "all laws of php_$1 hold $how # SKIP $3 is not installed"
			continue
		fi
		if [ -n "$option" ] && [ ! -f "$BUILD/php/shmlimit.so" ]; then
			ok 0 "all laws of php_$1 hold $how # SKIP php-dev is not installed"
			continue
		fi
		# shellcheck disable=SC2086 # nothing, or two words
		run env SEGMENT="$SEGMENT.$runs" ${option:+EXTENSION="$BUILD/php/shmlimit.so"} php ${option:+-d $option} "$SOURCE/tools/php/tests/$1.php"
		is "$rc" 0 "all laws of php_$1 hold $how"
		[ "$rc" -eq 0 ] || diag "$out" "$err"
	done
}
laws symfony Symfony/Component/RateLimiter/autoload.php php-symfony-rate-limiter
laws laravel Illuminate/Routing/autoload.php php-illuminate-routing
laws psr15 Nyholm/Psr7/autoload.php php-nyholm-psr7

# The README's program.
if php -r 'exit(stream_resolve_include_path("Symfony/Component/RateLimiter/autoload.php") ? 0 : 1);'; then
	{
		echo "<?php require '$BUILD/php/Shmlimit/autoload.php'; require 'Symfony/Component/RateLimiter/autoload.php'; ?>"
		block tools/php/README.md php 'Symfony\Factory' | own | sed "s/'symfony'/'$SEGMENT.readme'/; s/1 minute/1 day/"
	} >"$TMP/readme.php"
	for _ in 1 2 3 4 5 6 7 8 9 10 11; do
		php "$TMP/readme.php" 2>&1 | grep -o 'Uncaught.*RateLimitExceededException' || echo passes
	done >"$TMP/out"
	is "$(uniq -c "$TMP/out" | tr -s ' ')" " 10 passes
 1 Uncaught Symfony\Component\RateLimiter\Exception\RateLimitExceededException" \
		"the README's limiter for Symfony passes 10 requests, in 10 processes, and refuses the next one"
else
	ok 0 "the README's limiter for Symfony # SKIP php-symfony-rate-limiter is not installed"
fi
done_testing
