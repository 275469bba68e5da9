<?php
// The laws of the adapter for Laravel: its provider in a container, and the middleware `throttle:` as it resolves it.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

require __DIR__ . '/tap.php';
require __DIR__ . '/crowd.php';
require getenv('BUILD') . '/php/Shmlimit/autoload.php';
foreach (['Container', 'Cache', 'Routing', 'Http', 'Support'] as $component) {
    require "Illuminate/$component/autoload.php";
}

use Illuminate\Cache\{ArrayStore, RateLimiter, Repository};
use Illuminate\Cache\RateLimiting\Limit;
use Illuminate\Container\Container;
use Illuminate\Http\Exceptions\ThrottleRequestsException;
use Illuminate\Http\{Request, Response};
use Illuminate\Routing\Middleware\ThrottleRequests;
use Shmlimit\Adapter\Laravel\{Provider, Throttle};

$name = getenv('SEGMENT') . '.laravel';

/** An application as far as this needs one. The cache's own provider comes late, as it does in Laravel. */
function application(bool $ours = true, array $options = []): Container
{
    global $name;

    $app = new Container();
    $app->instance('config', new class ($name, $options) {
        public function __construct(private string $name, private array $options)
        {
        }

        public function get(string $key, mixed $default = null): mixed
        {
            return ['shmlimit' => $this->options, 'shmlimit.segment' => $this->name, 'shmlimit.slots' => 64][$key]
                ?? $this->options[preg_replace('/^shmlimit\./', '', $key)] ?? $default;
        }
    });
    if ($ours) {
        (new Provider($app))->register();
    }
    $app->singleton(RateLimiter::class, fn () => new RateLimiter(new Repository(new ArrayStore())));
    return $app;
}

/** One request through `throttle:$parameters`; its response. */
function request(Container $app, string $address, mixed ...$parameters): Response
{
    return handled($app, Request::create('/', 'GET', [], [], [], ['REMOTE_ADDR' => $address]), ...$parameters);
}

function handled(Container $app, Request $request, mixed ...$parameters): Response
{
    $request->setRouteResolver(fn () => new class {
        public function getDomain(): ?string
        {
            return null;
        }
    });
    $middleware = $app->make(ThrottleRequests::class);
    try {
        return $middleware->handle($request, fn () => new Response('page'), ...$parameters);
    } catch (ThrottleRequestsException $thrown) {
        return new Response('refused', $thrown->getStatusCode(), $thrown->getHeaders());
    }
}

$app = application();
$limiter = $app->make(RateLimiter::class);
ok($limiter instanceof Shmlimit\Adapter\Laravel\RateLimiter, 'the container gives the limiter in shared memory');

try {
    application(true, ['segment' => 'web', 'bakend' => 'redis://h'])->make(RateLimiter::class);
    $refused = '';
} catch (InvalidArgumentException $error) {
    $refused = $error->getMessage();
}
is($refused, 'shmlimit.bakend is not an option; there are segment, slots, mode, group, owner, proxy_warning, backend, backend_prefix, deadline_ms, on_failure, local_share',
    'an unknown option is refused, not ignored');

is(crowd(function () {
    $app = application();
    return fn () => request($app, '203.0.113.9', 30, 60)->getStatusCode() === 200;
}), 30, 'five processes with the middleware, one of them killed, admit exactly its limit');
is(crowd(function () {
    $limiter = application()->make(RateLimiter::class);
    return fn () => $limiter->attempt('send', 30, fn () => true, 3600);
}), 30, 'five processes with attempt(), one of them killed, admit exactly its limit');

// Beside Laravel's own, in one process.
$tell = function (bool $ours) {
    $app = application($ours);
    $told = [];
    for ($i = 0; $i < 4; $i++) {
        $response = request($app, '203.0.113.10', 3, 60);
        $told[] = [$response->getStatusCode(), $response->headers->get('X-RateLimit-Limit'),
            $response->headers->get('X-RateLimit-Remaining'), $response->headers->get('Retry-After') > 3000];
    }
    $limiter = $app->make(RateLimiter::class);
    foreach ([1, 2, 3] as $_) {
        $told[] = $limiter->hit('login|laoqian', 3600);
    }
    $told[] = [$limiter->attempts('login|laoqian'), $limiter->remaining('login|laoqian', 5), $limiter->retriesLeft('login|laoqian', 2)];
    $told[] = [$limiter->tooManyAttempts('login|laoqian', 4), $limiter->tooManyAttempts('login|laoqian', 3)];
    $told[] = $limiter->availableIn('login|laoqian') > 3500;
    $limiter->hit('minute', 60);
    $told[] = $limiter->availableIn('minute') <= 60;
    $limiter->clear('login|laoqian');
    $told[] = [$limiter->attempts('login|laoqian'), $limiter->availableIn('login|laoqian')];
    return $told;
};
is($tell(true), $tell(false), 'middleware and limiter answer as Laravel\'s do');

$limiter->for('upload', fn () => [Limit::perHour(2)->by('user:42'), Limit::perHour(1)->by('all')]);
is(request($app, '203.0.113.11', 'upload')->getStatusCode(), 200, 'a named limiter admits what its limits admit');
is(request($app, '203.0.113.11', 'upload')->getStatusCode(), 429, 'a named limiter refuses what one of its limits refuses');
is($limiter->attempts(md5('uploaduser:42')), 1, 'what a later limit refuses is not counted by an earlier one');

$limits = [(object) ['key' => 'by response', 'maxAttempts' => 1, 'decaySeconds' => 3600, 'responseCallback' => null,
    'afterCallback' => fn ($response) => $response->getStatusCode() === 404]];
$handle = new ReflectionMethod($app->make(ThrottleRequests::class), 'handleRequest');
$handle->setAccessible(true);
$handle->invoke($app->make(ThrottleRequests::class), Request::create('/'), fn () => new Response('page'), $limits);
is($limiter->attempts('by response'), 0, 'a limit that counts by the response does not count a page');
$handle->invoke($app->make(ThrottleRequests::class), Request::create('/'), fn () => new Response('none', 404), $limits);
is($limiter->attempts('by response'), 1, 'a limit that counts by the response counts what its callback says');

try {
    $limiter->attempt('fails', 1, fn () => throw new LogicException(), 3600);
} catch (LogicException) {
    is($limiter->attempts('fails'), 0, 'an attempt whose callback throws is not counted');
}
is($limiter->increment('n', 3600, 5) . $limiter->decrement('n', 3600, 2) . $limiter->decrement('n', 3600, 9), '530',
    'a count goes up and down, and not below 0');
is($limiter->hit(str_repeat('k', 5000)) . $limiter->hit(''), '11', 'any string is a key');
$limiter->hit('date', new DateTimeImmutable('+1 hour'));
ok($limiter->availableIn('date') > 3500, 'a count lives until a date');
$limiter->hit('ten', 3660 * 86400);
ok(abs($limiter->availableIn('ten') - 3660 * 86400) <= 1, 'a count lives for ten years, if it shall');
$refused = function (string $key, callable $call) use ($limiter) {
    try {
        $call();
    } catch (InvalidArgumentException) {
        return $limiter->attempts($key) === 0;
    }
    return false;
};
ok($refused('years', fn () => $limiter->hit('years', 3661 * 86400)), 'a time that no count can live is refused, and not shortened');
$one = Shmlimit\Adapter\Laravel\RateLimiter::of($limiter, $app->make(Shmlimit\Adapter\Segment::class), 'one_');
$other = Shmlimit\Adapter\Laravel\RateLimiter::of($limiter, $app->make(Shmlimit\Adapter\Segment::class), 'other_');
is([$one->hit('k'), $one->hit('k'), $other->hit('k')], [1, 2, 1], 'applications with other prefixes do not share counts');
is($limiter->attempt('none', 0, fn () => true), false, 'a limit of 0 admits nothing');
is(request($app, '203.0.113.12', 0, 1)->getStatusCode(), 429, 'a middleware with a limit of 0 admits nothing');
is($limiter->attempt('all', Limit::none()->maxAttempts, fn () => true), true, 'no limit admits everything');
ok($refused('huge', fn () => $limiter->attempt('huge', 10 ** 8, fn () => true)), 'a limit beyond what is counted is refused, and not ignored');

// As Limit::perDay($user->plan)->by($user->id), in four processes that each ask once for each of 10,000 customers.
$name = getenv('SEGMENT') . '.plans';
Shmlimit\Limiter::create($name, 16384);
$found = [];
$pipes = [];
for ($process = 0; $process < 4; $process++) {
    [$pipes[], $child] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, STREAM_IPPROTO_IP);
    if (pcntl_fork() === 0) {
        $shared = Shmlimit\Adapter\Laravel\RateLimiter::of($limiter, new Shmlimit\Adapter\Segment($name));
        $throttle = new Throttle($shared);
        $told = '';
        for ($n = 0; $n < 10000; $n++) {
            $limit = Limit::perMinutes(1440, $n % 7)->by("customer $n");
            try {
                $handle->invoke($throttle, Request::create('/'), fn () => new Response('page'), [$limit]);
                $told .= '1';
            } catch (ThrottleRequestsException) {
                $told .= '0';
            }
        }
        fwrite($child, $told);
        posix_kill(getmypid(), SIGKILL);
    }
    fclose($child);
}
foreach ($pipes as $pipe) {
    foreach (str_split(stream_get_contents($pipe)) as $n => $allowed) {
        $found[$n] = ($found[$n] ?? 0) + (int) $allowed;
    }
}
while (pcntl_wait($status) > 0);
is($found, array_map(fn ($n) => min($n % 7, 4), range(0, 9999)), '10,000 customers with limits of their own are exact over four processes');
unlink(getenv('SHM') . $name);

$late = new Container();
$late->instance('config', $app->make('config'));
$own = new RateLimiter(new Repository(new ArrayStore()));
$own->for('before', fn () => Limit::perHour(1));
$late->instance(RateLimiter::class, $own);
(new Provider($late))->register();
ok($late->make(RateLimiter::class)->limiter('before') !== null, 'limits that were named before the provider came are kept');

$proxied = fn (array $parameters, array $options = [], array $server = [], ?object $user = null) => warnings(function () use ($parameters, $options, $server, $user) {
    $app = application(true, $options);
    $app->make(RateLimiter::class)->for('client', fn (Request $request) => [Limit::perHour(99)->by('all'), Limit::perHour(99)->by($request->ip())]);
    for ($i = 0; $i < 3; $i++) {
        $request = Request::create('/', 'GET', [], [], [], $server + ['REMOTE_ADDR' => '10.0.0.7', 'HTTP_X_FORWARDED_FOR' => '203.0.113.9']);
        $request->setUserResolver(fn () => $user);
        handled($app, $request, ...$parameters);
    }
});
$user = new class {
    public function getAuthIdentifier(): string
    {
        return '42';
    }
};
$name = getenv('SEGMENT') . '.proxy';
is($proxied([99, 60]), 1, 'of three requests through a proxy that is not configured one is reported');
is($proxied(['client']), 1, 'of three requests with a named limit on their address one is reported');
is($proxied([99, 60], ['proxy_warning' => 'no']), 0, 'proxy_warning of no says nothing of a proxy that is not configured');
is($proxied([99, 60], [], ['REMOTE_ADDR' => '203.0.113.7']), 0, 'nothing is said of a public address');
is($proxied([99, 60], [], [], $user), 0, 'nothing is said of a user, whose address is not the key');
Request::setTrustedProxies(['10.0.0.0/8'], Request::HEADER_X_FORWARDED_FOR);
is([$proxied([99, 60]), $proxied(['client'])], [0, 0], 'nothing is said where Laravel trusts the proxy');
unlink(getenv('SHM') . $name);
done_testing();
