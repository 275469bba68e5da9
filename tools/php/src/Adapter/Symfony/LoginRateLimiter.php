<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit\Adapter\Symfony;

use Symfony\Component\HttpFoundation\RateLimiter\AbstractRequestRateLimiter;
use Symfony\Component\HttpFoundation\Request;

/**
 * For `login_throttling: limiter:`, as Symfony's default: one limit for each address, and a smaller one for each address and
 * user name.
 */
final class LoginRateLimiter extends AbstractRequestRateLimiter
{
    private const LAST_USERNAME = '_security.last_username';

    public function __construct(
        private readonly FactoryInterface $addresses,
        private readonly FactoryInterface $names,
    ) {
    }

    protected function getLimiters(Request $request): array
    {
        $name = (string) $request->attributes->get(self::LAST_USERNAME, '');
        $name = preg_match('//u', $name) === 1 ? mb_strtolower($name, 'UTF-8') : strtolower($name);
        $address = (string) $request->getClientIp();
        return [$this->addresses->create($address), $this->names->create("$name-$address")];
    }
}
