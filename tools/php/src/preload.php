<?php
// For opcache.preload, and to be required by programs that are not preloaded.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

$classes = ['Error', 'Result', 'Limit', 'Answer', 'Library', 'Limiter', 'OnFailure', 'Engine', 'GlobalLimiter',
    'Bundle', 'Failures', 'Gate'];
foreach ($classes as $class) {
    require_once __DIR__ . "/$class.php";
}
