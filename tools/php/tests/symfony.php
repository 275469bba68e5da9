<?php
// The laws of the adapter for Symfony.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

require __DIR__ . '/tap.php';
require __DIR__ . '/crowd.php';
require getenv('BUILD') . '/php/Shmlimit/autoload.php';
require 'Symfony/Component/RateLimiter/autoload.php';
require 'Symfony/Component/HttpFoundation/autoload.php';

use Shmlimit\Adapter\Segment;
use Shmlimit\Adapter\Symfony\{Factory, LoginRateLimiter};
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\RateLimiter\Exception\{MaxWaitDurationExceededException, ReserveNotSupportedException};
use Symfony\Component\RateLimiter\RateLimiterFactory;
use Symfony\Component\RateLimiter\Storage\InMemoryStorage;

const POLICIES = [
    'token_bucket' => ['limit' => 30, 'rate' => ['interval' => '30 hours', 'amount' => 30]],
    'fixed_window' => ['limit' => 30, 'interval' => '1 day'],
    'sliding_window' => ['limit' => 30, 'interval' => '1 day'],
];

$name = getenv('SEGMENT') . '.symfony';
$segment = new Segment($name, 64);
$factory = fn (string $policy, array $more = []) =>
    new Factory([...POLICIES[$policy] ?? [], ...$more, 'id' => $policy, 'policy' => $policy], $segment);

/** The class of what is thrown. */
function thrown(callable $call): string
{
    try {
        $call();
        return 'nothing';
    } catch (Throwable $thrown) {
        return $thrown::class;
    }
}

foreach (POLICIES as $policy => $config) {
    is(crowd(function () use ($factory, $policy) {
        $limiter = $factory($policy)->create('crowd');
        return fn () => $limiter->consume()->isAccepted();
    }), 30, "five processes, one of them killed, admit exactly the limit of a $policy");

    // Beside Symfony's own, in one process.
    $theirs = new RateLimiterFactory([...$config, 'id' => $policy, 'policy' => $policy], new InMemoryStorage());
    $tell = function (object $limiter) {
        $told = [];
        foreach ([1, 10, 20, 19, 1] as $tokens) {
            $limit = $limiter->consume($tokens);
            $told[] = [$limit->isAccepted(), $limit->getRemainingTokens(), $limit->getLimit()];
        }
        $wait = $limit->getRetryAfter()->getTimestamp() - time();
        $limiter->reset();
        return [$told, $wait > 0, $limiter->consume(30)->isAccepted()];
    };
    is($tell($factory($policy)->create('user:42')), $tell($theirs->create('user:42')), "a $policy answers as Symfony's does");
    is(thrown(fn () => $factory($policy)->create('k')->consume(31)), InvalidArgumentException::class,
        "a $policy refuses to take more tokens than its limit");
}

$bucket = $factory('token_bucket')->create('reserve');
is($bucket->reserve(30)->getRateLimit()->isAccepted(), true, 'a reservation of tokens that are there is accepted');
$reservation = $bucket->reserve(2, 7300);
ok($reservation->getWaitDuration() > 7000 && $reservation->getWaitDuration() <= 7200, 'a reservation waits for its tokens');
is($reservation->getRateLimit()->isAccepted(), false, 'a reservation that waits is not accepted yet');
is(thrown(fn () => $bucket->reserve(1, 1000)), MaxWaitDurationExceededException::class, 'a longer wait than allowed is refused');
is(thrown(fn () => $bucket->reserve(23)), MaxWaitDurationExceededException::class, 'a wait of more than a day is refused');
$look = $bucket->consume(0);
is([$look->isAccepted(), $look->getRemainingTokens()], [true, 0], 'no token can be consumed, to look');
ok($look->getRetryAfter()->getTimestamp() > time() + 3600, 'a look at an empty bucket tells when there is a token');
is(thrown(fn () => $factory('fixed_window')->create('k')->reserve()), ReserveNotSupportedException::class,
    'a window has no reservations');

is($factory('no_limit')->create('k')->consume(1000)->isAccepted(), true, 'a policy of no limit admits everything');
foreach (array_keys(POLICIES) as $policy) {
    is(thrown(fn () => $factory($policy, ['limit' => 0])), InvalidArgumentException::class, "a $policy of 0 is refused, as by Symfony");
}
is(thrown(fn () => $factory('leaky', ['limit' => 1])), LogicException::class, 'an unknown policy is refused');
is(thrown(fn () => $factory('fixed_window', ['interval' => 'a fortnite'])), LogicException::class, 'a wrong interval is refused');
is($factory('fixed_window')->create()->consume()->isAccepted(), true, 'a limiter needs no key');
is($factory('fixed_window', ['limit' => 40])->create('more')->consume()->getLimit(), 40, 'a changed configuration is obeyed');

$of = fn (string $policy, array $config) => new Factory(['id' => 'same', 'policy' => $policy, ...$config], $segment);
$admits = function (Factory $factory, int $n) {
    $limiter = $factory->create('changes');
    return array_sum(array_map(fn () => (int) $limiter->consume()->isAccepted(), range(1, $n)));
};
$told = [];
foreach ([['fixed_window', 3], ['token_bucket', 4], ['fixed_window', 5]] as [$policy, $limit]) {
    $told[] = $admits($of($policy, ['limit' => $limit] + POLICIES[$policy]), 9);
}
is($told, [3, 4, 5], 'a policy that changes takes effect');
is($admits($factory('sliding_window', ['limit' => 1000]), 1001), 1000, 'a sliding window of any size is exact');
foreach (['1500 milliseconds' => 1.5, '200 msec' => 0.2, '1 second 900 milliseconds' => 1.9, '1 minute' => 60.0] as $interval => $wanted) {
    $bucket = ['limit' => 1, 'rate' => ['interval' => $interval, 'amount' => 1]];
    $limiter = (new Factory(['id' => "i$wanted", 'policy' => 'token_bucket'] + $bucket, $segment))->create('k');
    $limiter->reserve();
    $begun = microtime(true);
    $wait = $limiter->reserve()->getWaitDuration();
    ok($wait <= $wanted && $wait > $wanted - 0.1 - (microtime(true) - $begun), "an interval of $interval is one, and no other");
}

$login = new LoginRateLimiter($factory('token_bucket', ['limit' => 4]), $factory('fixed_window', ['limit' => 2]));
$request = function (string $user, string $address) {
    $request = new Request([], [], [], [], [], ['REMOTE_ADDR' => $address]);
    $request->attributes->set('_security.last_username', $user);
    return $request;
};
$tries = fn (string $user, string $address, int $n) =>
    array_sum(array_map(fn () => (int) $login->consume($request($user, $address))->isAccepted(), range(1, $n)));
is($tries('laoqian', '203.0.113.9', 3), 2, 'log-ins of one user from one address are limited');
is($tries('Laoqian', '203.0.113.9', 1), 0, 'capitals make no other user');
is($tries('other', '203.0.113.9', 2), 0, 'log-ins from one address are limited');
is($tries('laoqian', '203.0.113.10', 1), 1, 'another address has its own limit');
$login->reset($request('laoqian', '203.0.113.9'));
is($tries('laoqian', '203.0.113.9', 1), 1, 'a successful log-in resets both limits');

$proxied = fn (callable $consume, array $server = []) => warnings(function () use ($consume, $server) {
    $_SERVER = $server + ['REMOTE_ADDR' => '10.0.0.7', 'HTTP_X_FORWARDED_FOR' => '203.0.113.9'] + $_SERVER;
    for ($i = 0; $i < 3; $i++) {
        $consume(new Request(server: $_SERVER));
    }
});
$byAddress = fn (Request $request) => $factory('token_bucket')->create($request->getClientIp())->consume();
$quiet = new Segment($name, 64, proxyWarning: false);
is($proxied($byAddress), 1, 'of three requests through a proxy that is not configured one is reported');
is($proxied(fn (Request $request) => $login->consume($request)), 1, 'of three log-ins through such a proxy one is reported');
is($proxied($byAddress, ['REMOTE_ADDR' => '203.0.113.7']), 0, 'nothing is said of a public address');
is($proxied(fn () => $factory('token_bucket')->create('user:42')->consume()), 0, 'nothing is said of a key that is no address');
is($proxied(fn (Request $request) => (new Factory(POLICIES['fixed_window'] + ['id' => 'quiet', 'policy' => 'fixed_window'], $quiet))
    ->create($request->getClientIp())->consume()), 0, 'proxyWarning: false says nothing of a proxy that is not configured');
Request::setTrustedProxies(['10.0.0.0/8'], Request::HEADER_X_FORWARDED_FOR);
is($proxied($byAddress), 0, 'nothing is said where Symfony trusts the proxy');

unlink(getenv('SHM') . $name);
for ($i = 0; $i < 6000 && $factory('token_bucket')->create('crowd')->consume()->getRemainingTokens() !== 29; $i++) {
    usleep(10000);
}
ok($i < 6000, 'a segment that is removed is created again');
done_testing();
