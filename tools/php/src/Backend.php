<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/** The backend, a Redis or Valkey server, from which a GlobalLimiter leases tokens. 0 is the default. */
final class Backend
{
    public function __construct(
        /** redis://[[user]:password@]host[:port][,host[:port]...][/db], redis+sentinel:// or rediss:// (see shmlimit_global(3)) or unix://[[user]:password@]/path[?db=N], %-encoded */
        #[\SensitiveParameter] public readonly string $url,
        /** null: Deny. */
        public readonly ?OnFailure $onFailure = null,
        /** The longest time that a call waits: 100 us to 10 s, default 50 ms. It must be the same on all hosts. */
        public readonly int $deadlineNs = 0,
        /** The duration of a lease, which also sets its size: 1 ms to 10 s, default 100 ms. It must be the same on all hosts. */
        public readonly int $leaseNs = 0,
        /** A failing backend is left alone for this long: 1 ms to 1 h, default 200 ms. */
        public readonly int $openNs = 0,
        /** ... after this number of failures in a row in one process: default 1. */
        public readonly int $openAfter = 0,
        /** Local: this host's share in thousandths of the limit: 1 to 1000, must be set. */
        public readonly int $localMilli = 0,
        /** The prefix of the backend's keys, without '{'; up to 64 bytes. */
        public readonly string $prefix = 'shmlimit:',
        /** While the host has no agent, a thread of this process is it. Problems are then not reported, since no other thread may call PHP. */
        public readonly bool $agentThread = false,
        /** false: no call waits; $onFailure decides at once what is not leased here, and the agent leases for the next requests. */
        public readonly bool $wait = true,
    ) {
    }

    /** The URL may contain a password, which no dump may show. */
    public function __debugInfo(): array
    {
        return ['url' => '...'] + get_object_vars($this);
    }
}
