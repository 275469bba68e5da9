<?php

/**
 * What the extension declares, as ../src declares it for PHP's FFI; ../tests/ext.sh compares the two.
 * arginfo.php makes shmlimit_arginfo.h of it.
 */

namespace Shmlimit;

final class Error extends \RuntimeException
{
    public readonly string $subject;
    public readonly string $words;

    public function __construct(string $subject, string $words, int $errno) {}
}

final class Result
{
    public readonly bool $allowed;
    public readonly int $limit;
    public readonly int $remaining;
    public readonly int $waitNs;
    public readonly int $retryAfterNs;
    public readonly int $resetAfterNs;

    public function __construct(
        bool $allowed,
        int $limit,
        int $remaining,
        int $waitNs,
        int $retryAfterNs,
        int $resetAfterNs,
    ) {}
}

final class Count
{
    public readonly bool $allowed;
    public readonly int $count;
    public readonly int $applied;
    public readonly int $ttlNs;

    public function __construct(bool $allowed, int $count, int $applied, int $ttlNs) {}
}

final class Limit
{
    public readonly string $rule;
    public readonly ?string $key;
    public readonly int $cost;
    public readonly ?string $rate;
    public readonly ?string $limit;
    public readonly ?int $estimate;
    public readonly ?float $share;

    public function __construct(
        string $rule,
        ?string $key,
        int $cost = 1,
        ?string $rate = null,
        ?string $limit = null,
        ?int $estimate = null,
        ?float $share = null,
    ) {}
}

final class Answer
{
    public readonly string $status;
    public readonly int $refusal;
    public readonly array $fields;
    public readonly int $remaining;
    public readonly int $retryAfterNs;
    public readonly ?string $places;

    public function __construct(
        string $status,
        int $refusal = 0,
        array $fields = [],
        int $remaining = PHP_INT_MAX,
        int $retryAfterNs = 0,
        ?string $places = null,
    ) {}
}

/** @not-serializable */
final class Limiter
{
    public const NEVER = PHP_INT_MAX;
    public const FUNNEL = 0;
    public const TOKEN_BUCKET = 0;
    public const WINDOW = 2;
    public const LEASE = 3;
    public const COUNTER = 4;
    public const GCRA = 6;
    public const SATURATE = 0x10000;
    public const RESTART = 0x20000;

    public readonly string $segment;

    public function __construct(string $segment, bool $readOnly = false, int $owner = 0) {}

    public static function create(string $segment, int $slots = 0, int $mode = 0, int $group = -1): bool {}

    public static function keyIp(string $address, int $prefixV4 = 32, int $prefixV6 = 64, int $nth = 0): string {}

    public function setRule(
        string $rule,
        int $capacity,
        int|float $refill,
        int $periodNs,
        int $algorithm = 0,
        int $maxWaitNs = 0,
    ): bool {}

    public function setLimit(string $rule, string $limit, int $maxWaitNs = 0): bool {}

    public function limit(string $rule): string {}

    public function take(string $rule, string $key, int $cost = 1, ?string $limit = null): Result {}

    public function takeSome(string $rule, string $key, int $most, ?string $limit = null): int {}

    public function peek(string $rule, string $key, int $cost = 1, ?string $limit = null): Result {}

    public function reserve(
        string $rule,
        string $key,
        int $cost = 1,
        int $maxWaitNs = PHP_INT_MAX,
        ?string $limit = null,
    ): Result {}

    public function acquire(
        string $rule,
        string $key,
        int $cost = 1,
        int $maxWaitNs = PHP_INT_MAX,
        ?string $limit = null,
    ): Result {}

    public function refund(string $rule, string $key, int $tokens = 1, ?string $limit = null): Result {}

    public function charge(string $rule, string $key, int $tokens = 1, ?string $limit = null): Result {}

    public function count(
        string $rule,
        string $key,
        int $n = 1,
        int $ttlNs = 0,
        int $bound = PHP_INT_MAX,
        int $flags = 0,
    ): Count {}

    public function takeAll(array $limits): array {}

    public function throttle(string $key, int $capacity, int|float $count, int $periodS, int $quantity = 1): array {}

    public function pause(string $rule, string $key, int $forNs): bool {}

    public function paused(string $rule, string $key): int {}

    public function enter(string $rule, string $key): ?string {}

    public function leave(string $rule, string $key, string $place): bool {}

    public function reset(?string $rule = null, ?string $key = null): void {}

    public function fields(string $rule, Result $result): array {}

    public function gone(): bool {}

    public function owner(): int {}
}

/** @not-serializable */
final class Gate
{
    public function __construct(
        string $segment,
        bool $dryRun = false,
        int $status = 429,
        bool $failOpen = false,
        ?string $backend = null,
        string $spec = '',
        ?callable $report = null,
    ) {}

    public static function client(): string {}

    public function enforce(Limit ...$limits): string {}

    public function forwarded(array $server, Limit ...$limits): void {}

    public function ask(Limit ...$limits): Answer {}

    public function enter(Limit ...$limits): Answer {}

    public function leave(?string $places): void {}

    public function settle(?string $places, array $used): ?string {}

    public function used(array $used): void {}
}
