<?php
// What a decision costs in PHP: rows of "figure<TAB>nanoseconds".
//
//     php -d extension=build/php/shmlimit.so tools/php/bench/take.php NAME SEGMENT SECONDS
//     LD_LIBRARY_PATH=build SHMLIMIT=build/php/Shmlimit php tools/php/bench/take.php NAME SEGMENT SECONDS
//
// The first is the extension, the second the classes over FFI. SHMLIMIT is needed for these and for the adapters.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

use Illuminate\Cache\{ArrayStore, RateLimiter, Repository};
use Shmlimit\Adapter\Laravel\RateLimiter as Ours;
use Shmlimit\Adapter\Segment;
use Shmlimit\Adapter\Symfony\Factory;
use Shmlimit\{Gate, Limit, Limiter};
use Symfony\Component\RateLimiter\RateLimiterFactory;
use Symfony\Component\RateLimiter\Storage\InMemoryStorage;

const ROUNDS = 50;
const NS = 1_000_000_000;

[, $name, $segment, $seconds] = $argv;
$segment .= '.php';
$classes = getenv('SHMLIMIT');
$classes === false || require "$classes/autoload.php";

/** Processor time, since others use the machine too. */
function used_ns(): int
{
    $used = getrusage();
    return ($used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec']) * NS
        + ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) * 1000;
}

function once_ns(Closure $call, int $calls): float
{
    $begun = used_ns();
    for ($i = 0; $i < $calls; $i++) {
        $call();
    }
    return (used_ns() - $begun) / $calls;
}

/** The least of some rounds, less what is measured without the limit. */
function row(string $figure, Closure $call, float $without = 0): float
{
    global $name, $seconds;

    $calls = 100;
    while (once_ns($call, $calls) * $calls < (float) $seconds / ROUNDS * NS) {
        $calls *= 2;
    }
    $least = min(array_map(fn () => once_ns($call, $calls), range(1, ROUNDS)));
    printf("%s: %s\t%.1f\n", $name, $figure, $least - $without);
    return $least;
}

Limiter::create($segment, slots: 1024);
register_shutdown_function(fn () => array_map('unlink', glob("/dev/shm/shmlimit.*.$segment")));
$_SERVER['REMOTE_ADDR'] = '192.168.100.1';
$limiter = new Limiter($segment);
$limiter->setRule('client', 2 ** 40, NS, NS);
$limiter->setRule('count', 2 ** 26 - 1, 0, 3600 * NS, Limiter::COUNTER);

$call = row('a call', fn () => null);
row('take', fn () => $limiter->take('client', 'user:42'), $call);
row('peek', fn () => $limiter->peek('client', 'user:42'), $call);
row('count', fn () => $limiter->count('count', 'user:42', 1, 0, 1000), $call);
row('new Limiter, take', fn () => (new Limiter($segment))->take('client', 'user:42'), $call);
$gate = new Gate($segment);
$limit = new Limit('client', 'user:42');
row('ask a gate, header fields', fn () => $gate->ask($limit), $call);
row('a request: new Gate, its address, header fields',
    fn () => (new Gate($segment))->ask(new Limit('client', Gate::client())), $call);

$shared = new Segment($segment);
if ($classes !== false && stream_resolve_include_path('Symfony/Component/RateLimiter/autoload.php')) {
    require 'Symfony/Component/RateLimiter/autoload.php';
    $bucket = ['id' => 'symfony', 'policy' => 'token_bucket', 'limit' => NS, 'rate' => ['interval' => '1 second', 'amount' => NS]];
    $ours = new Factory($bucket, $shared);
    $theirs = new RateLimiterFactory($bucket, new InMemoryStorage());
    row('Symfony: create, consume', fn () => $ours->create('user:42')->consume(), $call);
    row("Symfony's own, in one process's memory", fn () => $theirs->create('user:42')->consume(), $call);
}
if ($classes !== false && stream_resolve_include_path('Illuminate/Cache/autoload.php')) {
    require 'Illuminate/Cache/autoload.php';
    require 'Illuminate/Support/autoload.php';
    $theirs = new RateLimiter(new Repository(new ArrayStore()));
    $ours = Ours::of($theirs, $shared);
    row('Laravel: hit', fn () => $ours->hit('user:42'), $call);
    row("Laravel's own, in one process's memory", fn () => $theirs->hit('user:42'), $call);
}
