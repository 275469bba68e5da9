<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/** One limit on a request: whose funnel of which rule, and what it costs. A key of null: it is none on this request. */
final class Limit
{
    public function __construct(
        public readonly string $rule,
        public readonly ?string $key,
        public readonly int $cost = 1,
    ) {
        Library::checkNames(null, $rule);
    }
}
