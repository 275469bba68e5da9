<?php
// The laws of the adapters for Laravel and Symfony on two hosts, which are segments, with one backend.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

require __DIR__ . '/tap.php';
require __DIR__ . '/crowd.php';
require getenv('BUILD') . '/php/Shmlimit/autoload.php';
foreach (['Illuminate/Container', 'Illuminate/Cache', 'Illuminate/Routing', 'Illuminate/Http', 'Illuminate/Support', 'Symfony/Component/RateLimiter'] as $component) {
    require "$component/autoload.php";
}

use Illuminate\Cache\{ArrayStore, RateLimiter, Repository};
use Illuminate\Cache\RateLimiting\Limit;
use Illuminate\Container\Container;
use Illuminate\Http\Exceptions\ThrottleRequestsException;
use Illuminate\Http\{Request, Response};
use Illuminate\Routing\Middleware\ThrottleRequests;
use Shmlimit\Adapter\Laravel\Provider;
use Shmlimit\Adapter\Segment;
use Shmlimit\Adapter\Symfony\Factory;
use Symfony\Component\RateLimiter\Exception\ReserveNotSupportedException;

$name = getenv('SEGMENT');
$url = getenv('BACKEND');
$nobody = 'unix://' . getenv('TMP') . '/nobody';

/** The class and message of what is thrown. */
function thrown(callable $call): string
{
    try {
        $call();
        return 'nothing';
    } catch (Throwable $thrown) {
        return $thrown::class . ': ' . $thrown->getMessage();
    }
}

/** Laravel's container, as laravel.php has it, of one host. */
function laravel(string $segment, array $options): Container
{
    $app = new Container();
    $app->instance('config', new class (['segment' => $segment, 'slots' => 64, ...$options]) {
        public function __construct(private array $options)
        {
        }

        public function get(string $key, mixed $default = null): mixed
        {
            return ['shmlimit' => $this->options][$key] ?? $this->options[substr($key, strlen('shmlimit.'))] ?? $default;
        }
    });
    (new Provider($app))->register();
    $app->singleton(RateLimiter::class, fn () => new RateLimiter(new Repository(new ArrayStore())));
    return $app;
}

function limiter(string $host, mixed ...$options): RateLimiter
{
    global $name, $url;

    return laravel("$name.$host", ['backend' => $url, 'deadline_ms' => 5000, ...$options])->make(RateLimiter::class);
}

is(crowd(function () {
    $limiter = limiter(getmypid() % 2 === 0 ? 'one' : 'two');
    return fn () => $limiter->attempt('send', 30, fn () => true, 3600);
}), 30, 'Laravel: two hosts of several processes, one of them killed, admit exactly the limit of attempt()');

$hosts = [limiter('one'), limiter('two')];
$told = [];
foreach ([0, 1, 0, 1] as $host) {
    $told[] = $hosts[$host]->hit('k', 3600);
}
is($told, [1, 2, 3, 4], 'Laravel: a hit counts on all hosts');
is([$hosts[1]->attempts('k'), $hosts[1]->availableIn('k') > 3500], [4, true], 'Laravel: a host knows what it was answered');
$hosts[0]->clear('k');
is($hosts[0]->hit('k', 3600), 1, 'Laravel: clear() begins anew on all hosts');
ok(str_starts_with(thrown(fn () => $hosts[0]->decrement('k')), 'LogicException: '), 'Laravel: there is no decrement() with a backend');
is(thrown(fn () => $hosts[0]->attempt('throws', 1, fn () => throw new DomainException('own'), 3600)), 'DomainException: own',
    'Laravel: what the callback throws comes through');
$statuses = [];
foreach ([0, 1, 0, 1] as $host) {
    $hosts[$host]->for('upload', fn () => [Limit::perDay(3)->by('user'), Limit::perDay(2)->by('all')]);
    $request = Request::create('/');
    try {
        $statuses[] = (new Shmlimit\Adapter\Laravel\Throttle($hosts[$host]))
            ->handle($request, fn () => new Response('page'), 'upload')->getStatusCode();
    } catch (ThrottleRequestsException $thrown) {
        $statuses[] = $thrown->getStatusCode();
    }
}
is($statuses, [200, 200, 429, 429], 'Laravel: a named limiter refuses what one of its limits refuses on all hosts');

foreach (['deny' => [false, []], 'allow' => [true, ['on_failure' => 'allow']], 'local' => [true, ['local_share' => 500]]] as $word => [$admits, $more]) {
    $gone = limiter("gone.$word", ...['backend' => $nobody, ...$more]);
    is($gone->attempt('gone', 4, fn () => true, 3600), $admits, "Laravel: without the backend on_failure $word decides");
}
is(array_map(fn () => $gone->attempt('share', 4, fn () => true, 3600), [1, 2, 3]), [true, true, false], 'Laravel: a share is kept');
foreach (['share' => ['local_share' => 0, 'on_failure' => 'local'], 'on_failure' => ['on_failure' => 'perhaps'], 'options' => ['backend' => null, 'local_share' => 5]] as $what => $options) {
    ok(str_starts_with(thrown(fn () => limiter('wrong', ...$options)), 'InvalidArgumentException: '), "Laravel: wrong $what are refused");
}

$factories = fn (string $policy, array $config) => array_map(
    fn (string $host) => new Factory(['id' => $policy, 'policy' => $policy, ...$config],
        new Segment("$name.$host", 64, backend: Segment::backend(['backend' => $url, 'deadline_ms' => 5000]))), ['one', 'two']);
foreach (['fixed_window' => ['limit' => 30, 'interval' => '1 day'],
    'token_bucket' => ['limit' => 30, 'rate' => ['interval' => '30 days', 'amount' => 30]]] as $policy => $config) {
    $admitted = crowd(function () use ($factories, $policy, $config) {
        $limiter = $factories($policy, $config)[getmypid() % 2]->create('crowd');
        return fn () => $limiter->consume()->isAccepted();
    });
    // A lease of a process that was killed may hold tokens.
    ok($policy === 'fixed_window' ? $admitted === 30 : $admitted <= 30 && $admitted > 0, "Symfony: two hosts admit no more than the limit of a $policy: $admitted");
    [$one, $two] = array_map(fn (Factory $factory) => $factory->create('both'), $factories($policy, $config));
    $told = [];
    foreach ([[$one, 10], [$two, 10], [$one, 10], [$two, 1]] as [$limiter, $tokens]) {
        $limit = $limiter->consume($tokens);
        $told[] = [$limit->isAccepted(), $limit->getLimit()];
    }
    is($told, [[true, 30], [true, 30], [true, 30], [false, 30]], "Symfony: a $policy is one on two hosts");
    is([$limit->getRemainingTokens(), $limit->getRetryAfter()->getTimestamp() > time()], [0, true], "Symfony: a $policy says when there is more");
    $two->reset();
    is($two->consume(30)->isAccepted(), true, "Symfony: a reset of a $policy is one on all hosts");
}
is(thrown(fn () => $one->reserve()), ReserveNotSupportedException::class . ': ' . (new ReserveNotSupportedException($one::class))->getMessage(),
    'Symfony: there are no reservations on many hosts');
ok(str_starts_with(thrown(fn () => $factories('sliding_window', ['limit' => 3, 'interval' => '1 day'])), 'LogicException: Limiter "sliding_window": hosts'),
    'Symfony: hosts cannot share a sliding window');
done_testing();
