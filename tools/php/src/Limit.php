<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/** One limit of a request. */
final class Limit
{
    public function __construct(
        public readonly string $rule,
        /** Whose tokens the request takes; null: the limit does not apply to this request. An empty key is a key. */
        public readonly ?string $key,
        /** Tokens that the request takes, 1 or more in a Gate. */
        public readonly int $cost = 1,
        /** In a Gate with create=yes: the rate of the rule, "5/minute", "10/s burst 20" or "20 at once". */
        public readonly ?string $rate = null,
        /**
         * The limit of this request, such as that of its customer's plan, "100/minute burst 200", "unlimited" or "block", under a
         * rule of the algorithm gcra; null, and in a Gate what cannot be read: the rule's own.
         */
        public readonly ?string $limit = null,
        /** In a Gate, in place of `cost` where that is known afterwards: what a request takes before. See Gate::settle(). */
        public readonly ?int $estimate = null,
        /**
         * In a Gate, of places: the request passes while its key holds fewer than this many times the places that are free in the
         * limit before it, whose rate is "64 at once" and whose key is the same for all. It needs no rate.
         */
        public readonly ?float $share = null,
    ) {
        Library::checkNames(null, $rule);
    }
}
