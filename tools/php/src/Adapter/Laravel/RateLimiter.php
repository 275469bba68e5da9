<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit\Adapter\Laravel;

use Closure;
use Illuminate\Cache\RateLimiter as CacheRateLimiter;
use Shmlimit\Adapter\Segment;
use Shmlimit\{Count, Limiter};

/**
 * Laravel's rate limiter with counts in shared memory, all under one rule. A count and its time to live are one thing: no
 * count is left behind without a timer.
 */
class RateLimiter extends CacheRateLimiter
{
    private const RULE = 'laravel';
    private const COUNT_MAX = (1 << 26) - 1;
    /** Ten years: times then have a resolution of eight milliseconds. */
    private const TTL_MAX_NS = 3660 * 86_400 * 1_000_000_000;
    private const RESOLUTION_NS = 10_000_000;
    private const TERMS = [self::RULE, self::COUNT_MAX, 0, self::TTL_MAX_NS, Limiter::COUNTER];

    private Segment $segment;
    private string $prefix;

    /** The same limiter, with the limits that it was given by name, on this segment. Its keys begin with the prefix. */
    public static function of(CacheRateLimiter $limiter, Segment $segment, string $prefix = ''): self
    {
        $own = new self($limiter->cache);
        $own->limiters = $limiter->limiters;
        $own->segment = $segment;
        $own->prefix = $prefix;
        return $own;
    }

    /** What Throttle tells of a request: is the key its peer's address? */
    public function forwarded($request, $key): void
    {
        $this->segment->forwarded($request->server->all(), self::RULE, (string) $key);
    }

    /** Count this attempt, unless the limit is reached already, in one atomic step. */
    public function admit($key, $maxAttempts, $decaySeconds = 60): bool
    {
        $bound = max((int) $maxAttempts, 0);
        if ($bound >= self::COUNT_MAX && $bound !== PHP_INT_MAX) {
            throw new \InvalidArgumentException("A limit is below 2^26, or PHP_INT_MAX for none, but not $bound.");
        }
        $bound = min($bound, self::COUNT_MAX);
        return $this->count($key, 1, $decaySeconds, $bound)->allowed;
    }

    /** As before, but the attempt is counted before the callback, and uncounted if that throws. */
    public function attempt($key, $maxAttempts, Closure $callback, $decaySeconds = 60)
    {
        if (!$this->admit($key, $maxAttempts, $decaySeconds)) {
            return false;
        }
        try {
            return $callback() ?? true;
        } catch (\Throwable $thrown) {
            $this->uncount($key, $decaySeconds);
            throw $thrown;
        }
    }

    public function tooManyAttempts($key, $maxAttempts)
    {
        $count = $this->count($key, 0)->count;
        return $count > 0 && $count >= $maxAttempts;
    }

    public function hit($key, $decaySeconds = 60)
    {
        return $this->increment($key, $decaySeconds);
    }

    public function increment($key, $decaySeconds = 60, $amount = 1)
    {
        return $this->count($key, (int) $amount, $decaySeconds)->count;
    }

    public function decrement($key, $decaySeconds = 60, $amount = 1)
    {
        if ($this->segment->backend !== null) {
            throw new \LogicException('What all hosts share is counted up only: there is no decrement() with a backend.');
        }
        return $this->increment($key, $decaySeconds, -$amount);
    }

    /** Take an attempt back, if it was counted on this host alone. */
    public function uncount($key, $decaySeconds = 60): void
    {
        if ($this->segment->backend === null) {
            $this->increment($key, $decaySeconds, -1);
        }
    }

    public function attempts($key)
    {
        return $this->count($key, 0)->count;
    }

    public function resetAttempts($key)
    {
        if ($this->segment->backend !== null) {
            $this->segment->everywhere(...self::TERMS)->reset(self::RULE, $this->counter($key));
        }
        $this->segment->limiter(...self::TERMS)->reset(self::RULE, $this->counter($key));
        return true;
    }

    public function clear($key): void
    {
        $this->resetAttempts($key);
    }

    public function availableIn($key)
    {
        // A count lives that much longer than it should at most.
        return (int) ceil(max($this->count($key, 0)->ttlNs - self::RESOLUTION_NS, 0) / 1e9);
    }

    private function count($key, int $n, $decaySeconds = 60, int $bound = self::COUNT_MAX): Count
    {
        $seconds = is_numeric($decaySeconds) ? $decaySeconds : $this->availableAt($decaySeconds) - $this->currentTime();
        if ($seconds * 1e9 > self::TTL_MAX_NS) {
            throw new \InvalidArgumentException("A count lives for ten years at most, not for $seconds seconds.");
        }
        $ttlNs = (int) (max($seconds, 1) * 1e9);
        $flags = $bound === self::COUNT_MAX ? Limiter::SATURATE : 0;
        // What is only read is what this host knows.
        $here = $n === 0 || $this->segment->backend === null;
        $shared = $here ? $this->segment->limiter(...self::TERMS) : $this->segment->everywhere(...self::TERMS);
        return $shared->count(self::RULE, $this->counter($key), $n, $ttlNs, $bound, $flags);
    }

    private function counter($key): string
    {
        return Segment::key($this->prefix . $this->cleanRateLimiterKey($key));
    }
}
