<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit\Adapter\Symfony;

use Symfony\Component\RateLimiter\{LimiterInterface, RateLimiterFactoryInterface};

// Symfony has an interface for factories since 7.3; before that its own factory is a final class.
if (interface_exists(RateLimiterFactoryInterface::class)) {
    interface FactoryInterface extends RateLimiterFactoryInterface
    {
    }
} else {
    interface FactoryInterface
    {
        public function create(?string $key = null): LimiterInterface;
    }
}
