<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit\Adapter\Laravel;

use Illuminate\Cache\RateLimiter as CacheRateLimiter;
use Illuminate\Routing\Middleware\ThrottleRequests;
use Illuminate\Support\ServiceProvider;
use Shmlimit\Adapter\Segment;

/**
 * Has Laravel's rate limiter count in shared memory, and the middleware `throttle:` decide in one step. The configuration
 * `shmlimit.segment` is the segment's name (laravel), `shmlimit.slots`, `.mode` (0600), `.group` and `.owner` as Segment has
 * them; `.proxy_warning` (true); `.backend` and the others of Segment::backend() for limits of all hosts. `cache.prefix` keeps applications apart that share a segment, like in a shared Redis.
 */
final class Provider extends ServiceProvider
{
    private const OPTIONS = ['segment', 'slots', 'mode', 'group', 'owner', 'proxy_warning', ...Segment::BACKEND];

    public function register(): void
    {
        $this->app->singleton(Segment::class, function ($app) {
            $unknown = array_diff(array_keys($app->make('config')->get('shmlimit', [])), self::OPTIONS);
            if ($unknown !== []) {
                throw new \InvalidArgumentException(
                    'shmlimit.' . reset($unknown) . ' is not an option; there are ' . implode(', ', self::OPTIONS),
                );
            }
            $of = fn (string $name, mixed $default) => $app->make('config')->get("shmlimit.$name", $default);
            $backend = [];
            foreach (Segment::BACKEND as $option) {
                $backend[$option] = $of($option, null);
            }
            return new Segment(
                $of('segment', 'laravel'),
                $of('slots', 0),
                $of('mode', 0),
                $of('group', null),
                $of('owner', 0),
                backend: Segment::backend($backend),
                proxyWarning: filter_var($of('proxy_warning', true), FILTER_VALIDATE_BOOL),
            );
        });
        $this->app->extend(
            CacheRateLimiter::class,
            fn (CacheRateLimiter $limiter, $app) => RateLimiter::of(
                $limiter,
                $app->make(Segment::class),
                (string) $app->make('config')->get('cache.prefix', ''),
            ),
        );
        $this->app->bind(ThrottleRequests::class, Throttle::class);
    }
}
