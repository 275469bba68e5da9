<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/**
 * The limits of one request, of which some are this host's and some are leased from an engine, all or none.
 *
 * @internal
 */
final class Bundle
{
    private const EDESTADDRREQ = 89;

    /**
     * As Limiter::takeAll(): those of this host first, at once, then those of the engine in their order. Where one
     * denies, what was taken before is given back, and its result is the only one, under its index. An Error in the
     * engine's place says why there is none.
     *
     * A rule may be removed and set again as another at any time: so the segment is asked which are leases.
     *
     * @param list<Limit> $limits
     * @return array<int, Result>
     */
    public static function takeAll(Limiter $limiter, GlobalLimiter|Error|null $engine, array $limits): array
    {
        $there = array_filter($limits, fn (Limit $limit) => $limiter->isLease($limit->rule));
        if ($there === [] || count($limits) > Library::ffi()->SHMLIMIT_REQUESTS_MAX) {
            return $limiter->takeAll($limits);
        }
        $here = array_diff_key($limits, $there);
        $results = [];
        if ($here !== []) {
            $found = $limiter->takeAll(array_values($here));
            $results = array_combine(array_slice(array_keys($here), 0, count($found)), $found);
            $last = array_key_last($results);
            if (!$results[$last]->allowed) {
                return [$last => $results[$last]];
            }
        }
        $taken = array_filter($here, fn (int $i) => self::wasTaken($results[$i]), ARRAY_FILTER_USE_KEY);
        try {
            foreach ($there as $i => $limit) {
                $source = self::present($engine, $limiter->about($limit->rule));
                $results[$i] = $source->take($limit->rule, $limit->key ?? '', $limit->cost);
                if (!$results[$i]->allowed) {
                    self::giveBack($limiter, $taken);
                    return [$i => $results[$i]];
                }
                if (self::wasLeased($source->onFailure, $results[$i])) {
                    $taken[] = $limit;
                }
            }
        } catch (Error $error) {
            self::giveBack($limiter, $taken);
            throw $error;
        }
        ksort($results);
        return $results;
    }

    private static function present(GlobalLimiter|Error|null $engine, string $subject): GlobalLimiter
    {
        return match (true) {
            $engine === null => throw new Error(
                $subject,
                'it is a lease, and there is no engine to lease from',
                self::EDESTADDRREQ,
            ),
            $engine instanceof Error => throw new Error(
                $subject,
                "it is a lease, and of the engine: $engine->words",
                $engine->getCode(),
            ),
            default => $engine,
        };
    }

    /** A dry run that would have been denied answers allowed and has taken nothing; nor has a rule that is off. */
    private static function wasTaken(Result $result): bool
    {
        return $result->retryAfterNs === 0 && $result->remaining < $result->limit;
    }

    /**
     * Nor has an answer without the engine, and giving back what was not leased would make tokens. One of Allow says
     * nothing of a lease, as does one that spent the last token of it; one of Local looks like any other. What is not
     * certain is not given back.
     */
    private static function wasLeased(OnFailure $onFailure, Result $result): bool
    {
        return self::wasTaken($result) && match ($onFailure) {
            OnFailure::Deny => true,
            OnFailure::Allow => $result->remaining !== 0 || $result->resetAfterNs !== 0,
            OnFailure::Local => false,
        };
    }

    /** @param array<Limit> $taken */
    private static function giveBack(Limiter $limiter, array $taken): void
    {
        foreach ($taken as $limit) {
            try {
                $limiter->refund($limit->rule, $limit->key ?? '', $limit->cost);
            } catch (Error) {
                continue;
            }
        }
    }
}
