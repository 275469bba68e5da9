<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/** What becomes of a request. */
final class Answer
{
    public function __construct(
        /** passed, rejected, rejected-dry-run, unlimited (no limit had a key), failed, delayed, delayed-dry-run */
        public readonly string $status,
        /** The response's status; 0: the request goes on. */
        public readonly int $refusal = 0,
        /** @var array<string, string> header fields to be added to the response's */
        public readonly array $fields = [],
        /** Tokens left in the limit that has the fewest, or in the one that denies; PHP_INT_MAX: not known. */
        public readonly int $remaining = PHP_INT_MAX,
        /** Rejected: the same request fits then; PHP_INT_MAX if it never will. */
        public readonly int $retryAfterNs = 0,
        /** What Gate::leave() and Gate::settle() need, if the request holds places of limits on how many at once, or paid an estimate. */
        public readonly ?string $places = null,
    ) {
    }
}
