<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit\Adapter\Symfony;

use Shmlimit\Adapter\Segment;
use Shmlimit\Limiter as Native;
use Symfony\Component\RateLimiter\LimiterInterface;
use Symfony\Component\RateLimiter\Policy\NoLimiter;

/** Makes limiters from the arrays of `framework.rate_limiter`. The id is the rule's name. */
final class Factory implements FactoryInterface
{
    /** @var list<int> what Segment::limiter() is given */
    private readonly array $terms;

    /** @param array{id: string, policy: string, limit?: int, interval?: string, rate?: array} $config */
    public function __construct(private readonly array $config, private readonly Segment $segment)
    {
        $limit = $config['limit'] ?? 0;
        $hosts = $segment->backend !== null;
        if ($limit < 1 && $config['policy'] !== 'no_limit') {
            throw new \InvalidArgumentException("Limiter \"{$config['id']}\": a limit of $limit never accepts a hit.");
        }
        $this->terms = match ($config['policy']) {
            'token_bucket' => [
                $limit,
                $config['rate']['amount'] ?? 1,
                self::ns($config['rate']['interval'] ?? ''),
                $hosts ? Native::LEASE : Native::FUNNEL,
                $hosts ? 0 : Limiter::MAX_WAIT_NS,
            ],
            'fixed_window' => [$limit, 0, self::ns($config['interval'] ?? ''), Native::COUNTER, 0],
            'sliding_window' => $hosts ? throw new \LogicException(
                "Limiter \"{$config['id']}\": hosts cannot share a sliding window.",
            ) : [$limit, 0, self::ns($config['interval'] ?? ''), Native::WINDOW, 0],
            'no_limit' => [],
            default => throw new \LogicException("Limiter policy \"{$config['policy']}\" does not exist."),
        };
    }

    public function create(?string $key = null): LimiterInterface
    {
        if ($this->terms === []) {
            return new NoLimiter();
        }
        return new Limiter($this->segment, $this->config['id'], $this->terms, Segment::key($key ?? ''));
    }

    private static function ns(string $interval): int
    {
        try { // PHP 8.3 throws what an earlier one warns of
            $end = $interval === '' ? false : @(new \DateTimeImmutable('@0'))->modify("+$interval");
        } catch (\Exception) {
            $end = false;
        }
        $ns = $end === false ? 0 : $end->getTimestamp() * 1_000_000_000 + (int) $end->format('u') * 1000;
        return $ns > 0 ? $ns : throw new \LogicException("Cannot parse interval \"$interval\".");
    }
}
