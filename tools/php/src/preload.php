<?php
// For opcache.preload, and to be required by programs that are not preloaded. Classes that are there already are left
// alone: those of the extension, and all when it is required again.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

$classes = ['Error', 'Result', 'Count', 'Limit', 'Answer', 'Library', 'Limiter', 'OnFailure', 'Backend', 'GlobalLimiter',
    'Gate', 'Pacer'];
foreach ($classes as $class) {
    if (!class_exists("Shmlimit\\$class", false)) {
        require __DIR__ . "/$class.php";
    }
}

// The library that is installed now stays with this process and its children: an upgrade may replace the file before a
// child asks for it, which would then limit in the segment of another version, beside the older children.
if (ini_get('opcache.preload') && class_exists('FFI', false)) {
    try {
        Shmlimit\Library::ffi();
    } catch (Throwable) { // each request says why
    }
}
