<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/** An error of the library: its code is the errno, its message what it is about and the library's words. */
final class Error extends \RuntimeException
{
    public function __construct(public readonly string $subject, public readonly string $words, int $errno)
    {
        parent::__construct("$subject: $words", $errno);
    }
}
