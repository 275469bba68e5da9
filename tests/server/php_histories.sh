#!/bin/sh
# php_histories: the adapters for Laravel and Symfony answer like their own limiters in memory, while libfaketime moves the clock.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/php.inc"
for component in Illuminate/Routing Symfony/Component/RateLimiter; do
	php -r 'exit(stream_resolve_include_path($argv[1]) ? 0 : 1);' "$component/autoload.php" ||
		skip_all "no php-illuminate-routing, php-symfony-rate-limiter"
done
moved=$(ls /usr/lib/*/faketime/libfaketime.so.1 2>/dev/null | head -n 1)
[ -n "$moved" ] || skip_all "no faketime"
case $BUILD in */?a | */?t) skip_all "a sanitizer comes before libfaketime" ;; esac
echo +0s >"$TMP/moved"
export FAKETIME_TIMESTAMP_FILE="$TMP/moved" FAKETIME_NO_CACHE=1 SEED="${SEED-}"
# PHP loads a library so that it finds libc's clock before the moved one.
LD_PRELOAD="$moved $BUILD/libshmlimit.so.1" php "$SOURCE/tests/server/php_histories.php"
