#!/bin/sh
# adapters_hosts: the adapters for Laravel and Symfony, whose limits two hosts share by a backend.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"

php -m | grep -qx pcntl || skip_all "PHP has no pcntl"
for component in Illuminate/Routing Symfony/Component/RateLimiter; do
	php -r 'exit(stream_resolve_include_path($argv[1]) ? 0 : 1);' "$component/autoload.php" ||
		skip_all "no php-illuminate-routing, php-symfony-rate-limiter"
done
need_backend
start_backend
TMP=$TMP BACKEND=$backend_url php "$SOURCE/tools/php/tests/adapters_hosts.php"
