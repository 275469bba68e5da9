<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/** The answer while the backend does not respond. */
enum OnFailure: int
{
    case Deny = 0;
    case Allow = 1;
    /** What a funnel of this host says: a share of the limit. */
    case Local = 2;
    /** Throws an exception: the client has done nothing wrong. */
    case Error = 3;
}
