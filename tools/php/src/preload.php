<?php
// For opcache.preload, and to be required by programs that are not preloaded. Requiring it again does nothing.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

$classes = ['Error', 'Result', 'Limit', 'Answer', 'Library', 'Limiter', 'OnFailure', 'Engine', 'GlobalLimiter',
    'Bundle', 'Failures', 'Gate'];
foreach ($classes as $class) {
    if (!class_exists("Shmlimit\\$class", false)) {
        require __DIR__ . "/$class.php";
    }
}
