<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit\Adapter\Symfony;

use Shmlimit\Adapter\Segment;
use Shmlimit\Limiter as Native;
use Shmlimit\Result;
use Symfony\Component\RateLimiter\Exception\{MaxWaitDurationExceededException, ReserveNotSupportedException};
use Symfony\Component\RateLimiter\{LimiterInterface, RateLimit, Reservation};

/** The limit of one key. Each method is one atomic decision; there is no lock. */
final class Limiter implements LimiterInterface
{
    /** The longest wait that a reservation may cause: a day. */
    public const MAX_WAIT_NS = 86_400_000_000_000;

    /** @param list<int> $terms capacity, count, period, algorithm, longest wait */
    public function __construct(
        private readonly Segment $segment,
        private readonly string $rule,
        private readonly array $terms,
        private readonly string $key,
    ) {
    }

    public function consume(int $tokens = 1): RateLimit
    {
        $this->check($tokens);
        if ($tokens === 0) {
            $limiter = $this->segment->limiter($this->rule, ...$this->terms);
            return self::rateLimit($limiter->peek($this->rule, $this->key), true);
        }
        $result = $this->segment->backend === null
            ? $this->segment->limiter($this->rule, ...$this->terms)->take($this->rule, $this->key, $tokens)
            : $this->takeEverywhere($tokens);
        // A limiter is given keys only; that of a request in PHP-FPM is known.
        $this->segment->forwarded($_SERVER, $this->rule, $this->key);
        return self::rateLimit($result, $result->allowed);
    }

    private function takeEverywhere(int $tokens): Result
    {
        $limiter = $this->segment->everywhere($this->rule, ...$this->terms);
        if ($this->terms[3] === Native::LEASE) {
            return $limiter->take($this->rule, $this->key, $tokens);
        }
        $limit = $this->terms[0];
        $count = $limiter->count($this->rule, $this->key, $tokens, 0, $limit);
        $retryNs = $count->allowed ? 0 : $count->ttlNs;
        return new Result($count->allowed, $limit, max($limit - $count->count, 0), 0, $retryNs, $count->ttlNs);
    }

    /** Token buckets only, and of one host. Without $maxTime it waits up to a day. */
    public function reserve(int $tokens = 1, ?float $maxTime = null): Reservation
    {
        if ($this->terms[3] !== Native::FUNNEL) {
            throw new ReserveNotSupportedException(self::class);
        }
        $this->check($tokens);
        $maxNs = $maxTime === null ? self::MAX_WAIT_NS : (int) (min(max($maxTime, 0), 86400) * 1e9);
        $limiter = $this->segment->limiter($this->rule, ...$this->terms);
        $result = $tokens === 0
            ? $limiter->peek($this->rule, $this->key)
            : $limiter->reserve($this->rule, $this->key, $tokens, $maxNs);
        if (!$result->allowed && $tokens > 0) {
            throw new MaxWaitDurationExceededException(
                sprintf('The rate limiter wait time is longer than the maximum time (%.3F seconds).', $maxNs / 1e9),
                self::rateLimit($result, false),
            );
        }
        $now = microtime(true);
        return new Reservation($now + $result->waitNs / 1e9, self::rateLimit($result, $result->waitNs === 0));
    }

    public function reset(): void
    {
        if ($this->segment->backend !== null) {
            $this->segment->everywhere($this->rule, ...$this->terms)->reset($this->rule, $this->key);
        }
        $this->segment->limiter($this->rule, ...$this->terms)->reset($this->rule, $this->key);
    }

    private function check(int $tokens): void
    {
        if ($tokens < 0 || $tokens > $this->terms[0]) {
            $size = $this->terms[3] === Native::FUNNEL ? 'burst size' : 'size';
            throw new \InvalidArgumentException(
                "Cannot reserve more tokens ($tokens) than the $size of the rate limiter ({$this->terms[0]}).",
            );
        }
    }

    private static function rateLimit(Result $result, bool $accepted): RateLimit
    {
        $waitNs = max($result->retryAfterNs, $result->waitNs);
        $at = \DateTimeImmutable::createFromFormat('U.u', sprintf('%.6F', microtime(true) + $waitNs / 1e9));
        return new RateLimit($result->remaining, $at, $accepted, $result->limit);
    }
}
