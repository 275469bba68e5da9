<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit\Adapter\Laravel;

use Closure;
use Illuminate\Routing\Middleware\ThrottleRequests;

/** The middleware `throttle:`, which counts and checks in one step, and uncounts what a later limit refuses. */
class Throttle extends ThrottleRequests
{
    /** The key of a request without a user is made of its address. */
    protected function resolveRequestSignature($request)
    {
        if ($this->limiter instanceof RateLimiter && !$request->user()) {
            $this->limiter->forwarded($request, $request->ip());
        }
        return parent::resolveRequestSignature($request);
    }

    /** The limits have their own keys here, and hashes of these later. */
    protected function handleRequestUsingNamedLimiter($request, Closure $next, $limiterName, Closure $limiter)
    {
        return parent::handleRequestUsingNamedLimiter($request, $next, $limiterName, function ($request) use ($limiter) {
            $limits = $limiter($request);
            foreach (is_array($limits) ? $limits : [$limits] as $limit) {
                if ($this->limiter instanceof RateLimiter && is_string($limit->key ?? null)) {
                    $this->limiter->forwarded($request, $limit->key);
                }
            }
            return $limits;
        });
    }

    protected function handleRequest($request, Closure $next, array $limits)
    {
        if (!$this->limiter instanceof RateLimiter) {
            return parent::handleRequest($request, $next, $limits);
        }
        $admitted = [];
        foreach ($limits as $limit) {
            $later = ($limit->afterCallback ?? null) !== null;
            $refused = $later
                ? $this->limiter->tooManyAttempts($limit->key, $limit->maxAttempts)
                : !$this->limiter->admit($limit->key, $limit->maxAttempts, self::seconds($limit));
            if ($refused) {
                foreach ($admitted as $before) {
                    $this->limiter->uncount($before->key, self::seconds($before));
                }
                throw $this->buildException($request, $limit->key, $limit->maxAttempts, $limit->responseCallback);
            }
            if (!$later) {
                $admitted[] = $limit;
            }
        }
        $response = $next($request);
        foreach ($limits as $limit) {
            // Since Laravel 12 a limit may count by the response.
            if (($limit->afterCallback ?? null) !== null && ($limit->afterCallback)($response)) {
                $this->limiter->hit($limit->key, self::seconds($limit));
            }
            $left = $this->calculateRemainingAttempts($limit->key, $limit->maxAttempts);
            $response = $this->addHeaders($response, $limit->maxAttempts, $left);
        }
        return $response;
    }

    /** Laravel counted minutes before version 11. */
    private static function seconds(object $limit): int|float
    {
        return $limit->decaySeconds ?? $limit->decayMinutes * 60;
    }
}
