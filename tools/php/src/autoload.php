<?php
// Loads classes of Shmlimit when they are first used, where Composer does not. Those of the extension are there already.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Shmlimit\\')) {
        $file = __DIR__ . strtr(substr($class, strlen('Shmlimit')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
