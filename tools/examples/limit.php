<?php
// One request of one client, limited beside those of every other process on this host.
//
//     shmlimit create web --slots 64K && shmlimit rule set web login --capacity 15 --rate 30/60s
//     make build-php && sudo cp -r build/php/Shmlimit /usr/share/php/ && php -d ffi.enable=1 limit.php 203.0.113.9
//
// SPDX-License-Identifier: BSD-2-Clause
require '/usr/share/php/Shmlimit/preload.php';

$limiter = new Shmlimit\Limiter('web');
$answer = $limiter->take('login', $argv[1]);
printf("%s: %d left, again in %.1f s\n", $answer->allowed ? 'allowed' : 'denied', $answer->remaining, $answer->retryAfterNs / 1e9);
exit($answer->allowed ? 0 : 1);
