<?php
// For opcache.preload, and to be required by programs that are not preloaded. Classes that are there already are left
// alone: those of the extension, and all when it is required again.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

$classes = ['Error', 'Result', 'Count', 'Limit', 'Answer', 'Library', 'Limiter', 'OnFailure', 'Backend', 'GlobalLimiter',
    'Gate'];
foreach ($classes as $class) {
    if (!class_exists("Shmlimit\\$class", false)) {
        require __DIR__ . "/$class.php";
    }
}
