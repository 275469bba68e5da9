<?php
// For opcache.preload, and to be required by programs that are not preloaded.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

foreach (['Error', 'Result', 'Limit', 'Answer', 'Library', 'Limiter', 'Failures', 'Gate'] as $class) {
    require_once __DIR__ . "/$class.php";
}
