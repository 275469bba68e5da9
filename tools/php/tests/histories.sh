#!/bin/sh
# histories: the adapters for Laravel and Symfony answer like their own limiters in memory, while libfaketime moves the clock.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
for component in Illuminate/Routing Symfony/Component/RateLimiter; do
	php -r 'exit(stream_resolve_include_path($argv[1]) ? 0 : 1);' "$component/autoload.php" ||
		skip_all "no php-illuminate-routing, php-symfony-rate-limiter"
done
. "$SOURCE/tests/server/moved.inc"
# PHP loads a library so that it finds libc's clock before the moved one.
under "$moved $BUILD/libshmlimit.so.1" php "$SOURCE/tools/php/tests/histories.php"
