<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/**
 * Calls to others, in the pace of a rule that all processes of the host share; on the extension and on FFI alike. Every
 * method can throw Error.
 */
final class Pacer
{
    /** Code of the Error of run(): it is not the call's turn within $maxWaitNs. That is errno's ETIMEDOUT. */
    public const TOO_LONG = 110;

    private const EINVAL = 22;
    private const EOPNOTSUPP = 95;
    private const REFUSALS = [429, 503];
    private const SECOND_NS = 10 ** 9;
    /** How often to try again while all places are held: a process that leaves one tells no other. */
    private const PLACE_NS = 20_000_000;

    /**
     * $maxWaitNs: the longest wait for tokens, of which the rule has a bound, too, or for a place; NEVER: as long as the
     * rule allows, and for a place as long as it takes.
     */
    public function __construct(
        private readonly Limiter $limiter,
        private readonly string $rule,
        private readonly int $maxWaitNs = Limiter::NEVER,
    ) {
        if ($maxWaitNs < 0) {
            throw new Error("wait $maxWaitNs", 'must be 0 or more', self::EINVAL);
        }
    }

    /**
     * Wait for the tokens, or for a place under a rule of HOLD, and for the end of a pause; then call, and return what
     * that returns. A place is held until then, also where an exception ends the call. Error with the code TOO_LONG: it
     * takes longer than $maxWaitNs, or the rule, such as one of WINDOW, has no waits; nothing was called.
     */
    public function run(string $key, callable $call, int $cost = 1): mixed
    {
        $place = $this->entered($key, $cost);
        if ($place === null) {
            $result = $this->limiter->acquire($this->rule, $key, $cost, $this->maxWaitNs);
            return $result->allowed ? $call() : throw $this->tooLong($result->retryAfterNs);
        }
        try {
            return $call();
        } finally {
            $this->limiter->leave($this->rule, $key, $place);
        }
    }

    /** A place; null: the rule has none. */
    private function entered(string $key, int $cost): ?string
    {
        $begun = hrtime(true);
        while (true) {
            try {
                $place = $this->limiter->enter($this->rule, $key);
            } catch (Error $error) {
                return $error->getCode() === self::EOPNOTSUPP ? null : throw $error;
            }
            if ($place !== null) {
                if ($cost === 1) {
                    return $place;
                }
                $this->limiter->leave($this->rule, $key, $place);
                throw new Error("rule $this->rule", "has places, so a call's cost must be 1, and not $cost", self::EINVAL);
            }
            $waitNs = $this->limiter->paused($this->rule, $key);
            $leftNs = $this->maxWaitNs - (hrtime(true) - $begun);
            if ($leftNs <= 0 || $waitNs > $leftNs) {
                throw $this->tooLong($waitNs);
            }
            self::sleep(min(max($waitNs, self::PLACE_NS), $leftNs));
        }
    }

    private function tooLong(int $retryAfterNs): Error
    {
        $words = match ($retryAfterNs) {
            0 => 'no place is free',
            Limiter::NEVER => 'never fits',
            default => sprintf('retry after %.3F s', $retryAfterNs / self::SECOND_NS),
        };
        return new Error("$this->rule", $words, self::TOO_LONG);
    }

    private static function sleep(int $ns): void
    {
        // A signal ends it early, and its handler runs.
        time_nanosleep(intdiv($ns, self::SECOND_NS), $ns % self::SECOND_NS);
    }

    /**
     * Pause the key in all processes for as long as the response asks for, at most $mostS seconds, so that no wrong field
     * stops a program for a year. The pause is longer by a random part of up to $jitter: hosts that were asked for the same
     * time do not begin together. Returns its seconds; 0.0: none was asked for; null: there is no pause, though one was
     * asked for, since the segment has no slot for the key, or is off.
     *
     * @param object|list<string> $response as for retryAfter()
     */
    public function heed(
        string $key,
        object|array $response,
        float $defaultS = 1.0,
        float $mostS = 3600.0,
        float $jitter = 0.1,
    ): ?float {
        $seconds = min(self::retryAfter($response, $defaultS), $mostS);
        if ($seconds <= 0) {
            return 0.0;
        }
        $seconds *= 1 + $jitter * mt_rand() / mt_getrandmax();
        return $this->limiter->pause($this->rule, $key, (int) ceil($seconds * self::SECOND_NS)) ? $seconds : null;
    }

    /**
     * For how many seconds nothing is to be sent to the server that gave this response: what Retry-After says, in seconds
     * or as a date, where the status is 429 or 503; else what the RateLimit fields say, if nothing is left. 429 or 503
     * without either: $defaultS. 0.0: go on.
     *
     * @param object|list<string> $response of PSR-7 or of Symfony's HttpClient; or the status line and the header lines, as
     *     in $http_response_header, of which the last response counts
     */
    public static function retryAfter(object|array $response, float $defaultS = 1.0): float
    {
        [$status, $fields] = is_array($response) ? self::lines($response) : self::message($response);
        $refused = in_array($status, self::REFUSALS, true);
        $told = $refused && isset($fields['retry-after']) ? self::seconds($fields['retry-after'], $fields['date'] ?? '') : null;
        return $told ?? self::reset($fields) ?? ($refused ? $defaultS : 0.0);
    }

    /**
     * @param list<string> $lines
     * @return array{int, array<string, string>}
     */
    private static function lines(array $lines): array
    {
        [$status, $fields] = [0, []];
        foreach ($lines as $line) {
            if (preg_match('#^HTTP/\S+ +(\d{3})#', $line, $found) === 1) {
                [$status, $fields] = [(int) $found[1], []];
            } elseif (str_contains($line, ':')) {
                [$name, $value] = explode(':', $line, 2);
                $name = strtolower(trim($name));
                $fields[$name] = (isset($fields[$name]) ? "$fields[$name], " : '') . trim($value);
            }
        }
        return [$status, $fields];
    }

    /** @return array{int, array<string, string>} */
    private static function message(object $response): array
    {
        // Symfony's throws for 429 without this false; PSR-7's takes no argument.
        $headers = array_change_key_case($response->getHeaders(false));
        return [$response->getStatusCode(), array_map(fn ($values) => implode(', ', (array) $values), $headers)];
    }

    /** Of Retry-After: seconds, or a date, which is compared with the server's. */
    private static function seconds(string $text, string $date): ?float
    {
        if (preg_match('/^\d{1,15}(\.\d+)?$/D', trim($text)) === 1) {
            return (float) trim($text);
        }
        $until = self::time($text);
        return $until === null ? null : (float) max(0, $until - (self::time($date) ?? time()));
    }

    /** Seconds since 1970 of a date of HTTP, in each of its three forms; null: it is none. */
    private static function time(string $text): ?int
    {
        $text = preg_replace('/\s+/', ' ', trim($text));
        foreach (['D, d M Y H:i:s \G\M\T', 'l, d-M-y H:i:s \G\M\T', 'D M j H:i:s Y'] as $format) {
            $at = \DateTimeImmutable::createFromFormat("!$format", $text, new \DateTimeZone('UTC'));
            if ($at !== false) {
                return $at->getTimestamp();
            }
        }
        return null;
    }

    /**
     * Of RateLimit and its forerunners: the time after which there is something again, if nothing is left now.
     *
     * @param array<string, string> $fields
     */
    private static function reset(array $fields): ?float
    {
        $found = [0.0];
        $field = $fields['ratelimit'] ?? '';
        $number = fn (string $item, string $before, string $name, string $after): ?int =>
            preg_match("/$before\\s*$name\\s*=\\s*(\\d{1,15})\\s*$after/", $item, $is) === 1 ? (int) $is[1] : null;
        foreach (explode(',', $field) as $item) {
            if ($number($item, ';', 'r', '(;|$)') === 0) {
                $found[] = (float) $number($item, ';', 't', '(;|$)');
            }
        }
        // Draft 7 had one quota, of parameters alone: limit=100, remaining=0, reset=50.
        if ($number($field, '(?:^|[,;])', 'remaining', '([,;]|$)') === 0) {
            $found[] = (float) $number($field, '(?:^|[,;])', 'reset', '([,;]|$)');
        }
        foreach (['ratelimit-', 'x-ratelimit-'] as $prefix) {
            [$left, $reset] = [trim($fields[$prefix . 'remaining'] ?? ''), trim($fields[$prefix . 'reset'] ?? '')];
            if (preg_match('/^0+$/D', $left) === 1 && preg_match('/^\d{1,15}$/D', $reset) === 1) {
                // Some say when, and not after how long.
                $found[] = (float) max(0, (int) $reset - ((int) $reset > 10 ** 9 ? time() : 0));
            }
        }
        return max($found) ?: null;
    }
}
