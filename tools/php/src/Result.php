<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/** What a decision found. Times and tokens that an int cannot hold are PHP_INT_MAX. */
final class Result
{
    public function __construct(
        public readonly bool $allowed,
        /** The rule's capacity, tokens. */
        public readonly int $limit,
        /** Whole tokens left now. */
        public readonly int $remaining,
        /** Allowed: wait this long before going on; 0 except for reservations. */
        public readonly int $waitNs,
        /** Denied: the same request fits then; Limiter::NEVER if it never will. */
        public readonly int $retryAfterNs,
        /** Until the funnel is full again. */
        public readonly int $resetAfterNs,
    ) {
    }
}
