<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/** A Redis or Valkey server, which a GlobalLimiter leases tokens from. 0 is the default. */
final class Engine
{
    public function __construct(
        /** redis://[[user]:password@]host[:port][/db] or unix://[[user]:password@]/path[?db=N], %-encoded */
        #[\SensitiveParameter] public readonly string $url,
        /** null: Deny. */
        public readonly ?OnFailure $onFailure = null,
        /** The longest that a call waits: 100 us to 10 s, default 5 ms. The same on all hosts. */
        public readonly int $deadlineNs = 0,
        /** How long a lease lasts, and how much is leased: 1 ms to 10 s, default 100 ms. The same on all hosts. */
        public readonly int $leaseNs = 0,
        /** How long nobody asks an engine that failed: 1 ms to 1 h, default 200 ms. */
        public readonly int $openNs = 0,
        /** ... so many times running, in one process: default 1. */
        public readonly int $openAfter = 0,
        /** Local: this host's share, thousandths of the limit: 1 to 1000, default 1000. */
        public readonly int $localMilli = 0,
        /** Of the keys there, without '{'; up to 64 bytes. */
        public readonly string $prefix = 'shmlimit:',
    ) {
    }

    /** The URL may have a password in it, which no dump is to show. */
    public function __debugInfo(): array
    {
        return ['url' => '...'] + get_object_vars($this);
    }
}
