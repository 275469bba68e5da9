<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/** What Limiter::count() found and did. */
final class Count
{
    public function __construct(
        /** False: the sum would be above the bound, or below 0; nothing was written, or with SATURATE what fits. */
        public readonly bool $allowed,
        /** The count now. */
        public readonly int $count,
        /** What this call added; below 0: took away. */
        public readonly int $applied,
        /** How long the count lives from now; 0: there is none. */
        public readonly int $ttlNs,
    ) {
    }
}
