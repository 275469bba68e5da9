<?php
// ends: scripts that end in each way in which PHP ends one before its last line.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

const ENDS = ['exit', 'error', 'memory', 'time'];

/** Runs PHP's lines, an end of ENDS, and what closes the lines. Memory runs out in small pieces, so that none is left. Returns what they print. */
function ended(string $end, string $lines, string $close = ''): string
{
    $script = getenv('TMP') . '/ends.php';
    file_put_contents($script, "<?php $lines\n" . match ($end) {
        'exit' => 'exit();',
        'error' => 'missing();',
        'memory' => 'for ($all = null;;) { $one = new stdClass(); $one->next = $all; $all = $one; }',
        'time' => 'set_time_limit(1); for (;;);',
    } . $close);
    $extension = getenv('EXTENSION') === false ? [] : ['-d', 'extension=' . getenv('EXTENSION')];
    $command = [PHP_BINARY, ...$extension, '-d', 'error_log=/dev/null', '-d', 'display_errors=0', '-d', 'memory_limit=16M', $script];
    return (string) shell_exec(implode(' ', array_map(escapeshellarg(...), $command)));
}
