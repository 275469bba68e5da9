<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/** What is answered when the engine says nothing. */
enum OnFailure: int
{
    case Deny = 0;
    case Allow = 1;
    /** What a funnel of this host says: a share of the limit. */
    case Local = 2;
}
