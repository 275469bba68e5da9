<?php
// The laws of the PSR-15 middleware.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

require __DIR__ . '/tap.php';
require __DIR__ . '/crowd.php';
require __DIR__ . '/ends.php';
require __DIR__ . '/psr15_interfaces.php';
require getenv('BUILD') . '/php/Shmlimit/autoload.php';
require 'Nyholm/Psr7/autoload.php';
require 'Psr/Log/autoload.php';

use Nyholm\Psr7\Factory\Psr17Factory;
use Nyholm\Psr7\ServerRequest;
use Psr\Http\Message\{ResponseInterface, ServerRequestInterface};
use Psr\Http\Server\RequestHandlerInterface;
use Shmlimit\Adapter\Middleware;
use Shmlimit\{Gate, Limit};

final class Page implements RequestHandlerInterface
{
    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        return (new Psr17Factory())->createResponse(200);
    }
}

final class Lines extends Psr\Log\AbstractLogger
{
    public array $lines = [];

    public function log($level, $message, array $context = []): void
    {
        $this->lines[] = "$level " . preg_replace_callback('/\{(\w+)\}/', fn (array $m) => (string) $context[$m[1]], (string) $message);
    }
}

$segment = getenv('SEGMENT') . '.psr15';
$log = new Lines();
$make = fn () => new Middleware(
    new Gate($segment, spec: 'create=yes prefix=32,64', report: $log->warning(...)),
    new Psr17Factory(),
    fn (ServerRequestInterface $request) => [
        new Limit('client', $request->getServerParams()['REMOTE_ADDR'] ?? '', rate: '30/day'),
    ],
    $log,
);
$ask = fn (Middleware $middleware, string $address) => $middleware->process(
    new ServerRequest('GET', 'http://example.org/login', [], null, '1.1', ['REMOTE_ADDR' => $address]),
    new Page(),
);

is(crowd(function () use ($make, $ask) {
    $middleware = $make();
    return fn () => $ask($middleware, '203.0.113.9')->getStatusCode() === 200;
}), 30, 'five processes, one of them killed, admit exactly the limit');

$middleware = $make();
$response = $ask($middleware, '2001:db8::1');
is($response->getHeaderLine('RateLimit-Policy'), '"client";q=30;w=86400', 'a response has the fields of its limit');
is($ask($middleware, '2001:db8::2')->getHeaderLine('RateLimit'), '"client";r=28;t=5760', 'a net of IPv6 is one client');
is($log->lines, [], 'what is admitted is not logged');
$response = $ask($middleware, '203.0.113.9');
is($response->getStatusCode(), 429, 'a request above the limit is refused');
ok((int) $response->getHeaderLine('Retry-After') > 0, 'a refused request is told when to come again');
is((string) $response->getBody(), "too many requests\n", 'a refused request has a body');
is($log->lines, ['info GET /login: refused with 429: rejected'], 'a refused request is logged');
$response = (new Middleware(new Gate("$segment.absent", report: $log->warning(...)), new Psr17Factory(),
    fn () => [new Limit('r', 'k')], $log))->process(new ServerRequest('GET', '/'), new Page());
is($response->getStatusCode(), 503, 'without a segment a request is refused with 503');
is(count(preg_grep('/^warning segment .*absent: no such segment/', $log->lines)), 1, 'a problem goes to the logger');

$proxied = function (string $spec, array $more) use ($segment, $log): int {
    $middleware = new Middleware(new Gate($segment, spec: $spec, report: $log->warning(...)), new Psr17Factory(),
        fn (ServerRequestInterface $request) => [new Limit('proxied', $request->getServerParams()['REMOTE_ADDR'], rate: '30/day')]);
    $server = $more + ['REMOTE_ADDR' => '10.0.0.7', 'HTTP_X_FORWARDED_FOR' => '203.0.113.9'];
    for ($i = 0; $i < 3; $i++) {
        $middleware->process(new ServerRequest('GET', '/', [], null, '1.1', $server), new Page());
    }
    return count(preg_grep('/^warning a request from 10.0.0.7 has a field X-Forwarded-For: behind a proxy all clients are one/', $log->lines));
};
is($proxied('create=yes proxy_warning=no', []), 0, 'proxy_warning=no says nothing of a proxy that is not configured');
is($proxied('create=yes', ['REMOTE_ADDR' => '203.0.113.7']), 0, 'nothing is said of a public address');
is($proxied('create=yes', ['HTTP_X_FORWARDED_FOR' => '203.0.113.9, 10.0.0.7']), 0, 'an address that is in the field was put in the place of a proxy\'s');
is($proxied('create=yes', []), 1, 'of three requests through a proxy that is not configured one is reported');

$waiting = new class implements RequestHandlerInterface {
    public ?Closure $inside = null;

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        return $this->inside === null ? throw new LogicException('on purpose') : ($this->inside)();
    }
};
$middleware = new Middleware(new Gate("$segment.places", spec: 'create=yes'), new Psr17Factory(),
    fn () => [new Limit('hold', 'all', rate: '1 at once for 1h')], $log);
$call = fn () => $middleware->process(new ServerRequest('GET', '/'), $waiting)->getStatusCode();
$inner = [];
$waiting->inside = function () use ($call, &$inner) {
    $inner[] = $call();
    return (new Psr17Factory())->createResponse(200);
};
is([$call(), $call(), $inner], [200, 200, [429, 429]], 'a request holds a place while the next handler handles it');
$waiting->inside = null;
foreach ([1, 2] as $ignored) {
    try {
        $call();
        $thrown = null;
    } catch (LogicException $thrown) {
    }
}
is($thrown?->getMessage(), 'on purpose', 'a handler that throws leaves the place');

foreach (ENDS as $end) {
    $printed = ended($end, 'require "' . __DIR__ . '/psr15_interfaces.php";' . "
        require getenv('BUILD') . '/php/Shmlimit/autoload.php';
        require 'Nyholm/Psr7/autoload.php';
        require 'Psr/Log/autoload.php';
        class Page implements Psr\\Http\\Server\\RequestHandlerInterface {
            function handle(Psr\\Http\\Message\\ServerRequestInterface \$request): Psr\\Http\\Message\\ResponseInterface {
                echo (new Shmlimit\\Limiter('$segment.places'))->peek('hold', 'all')->remaining;
                end_it();
            }
        }
        (new Shmlimit\\Adapter\\Middleware(new Shmlimit\\Gate('$segment.places'), new Nyholm\\Psr7\\Factory\\Psr17Factory(),
            fn () => [new Shmlimit\\Limit('hold', 'all')]))->process(new Nyholm\\Psr7\\ServerRequest('GET', '/'), new Page());
        function end_it() {", '}');
    $free = (new Shmlimit\Limiter("$segment.places"))->peek('hold', 'all')->remaining;
    is([$printed, $free], ['0', 1], "a handler leaves the place although it ends the script, here by: $end");
}

$middleware = new Middleware(new Gate("$segment.tokens", spec: 'create=yes'), new Psr17Factory(),
    fn () => [new Limit('tokens', 'all', rate: '1/day burst 100', estimate: 10)], $log,
    fn ($request, ?ResponseInterface $response) => ['tokens' => $response === null ? 1 : (int) $response->getHeaderLine('X-Tokens')]);
$call = fn () => $middleware->process(new ServerRequest('GET', '/'), $waiting)->getStatusCode();
$left = fn () => (new Shmlimit\Limiter("$segment.tokens"))->peek('tokens', 'all')->remaining;
$waiting->inside = fn () => (new Psr17Factory())->createResponse(200)->withHeader('X-Tokens', '25');
is([$call(), $left()], [200, 75], 'a request is charged what its response says that it used');
$waiting->inside = null;
try {
    $call();
} catch (LogicException) {
}
is($left(), 74, 'a request whose handler threw is charged, too');
$waiting->inside = fn () => (new Psr17Factory())->createResponse(200)->withHeader('X-Tokens', '500');
is([$call(), $call(), $left()], [200, 429, 0], 'a request that used too much makes later ones wait; a refused one is not charged');
done_testing();
