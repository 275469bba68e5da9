<?php
// tap.php: the verbs of tap.sh, for PHP.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

$tap_count = 0;
$tap_failed = 0;

function ok(bool $held, string $title): void
{
    global $tap_count, $tap_failed;

    $tap_count++;
    $tap_failed += $held ? 0 : 1;
    printf("%s %d - %s\n", $held ? 'ok' : 'not ok', $tap_count, $title);
}

function is(mixed $got, mixed $want, string $title): void
{
    ok($got === $want, $title);
    if ($got !== $want) {
        $text = 'got:  ' . json_encode($got, JSON_PARTIAL_OUTPUT_ON_ERROR) . "\nwant: " . json_encode($want);
        fwrite(STDERR, preg_replace('/^/m', '# ', $text) . "\n");
    }
}

function done_testing(): never
{
    global $tap_count, $tap_failed;

    echo "1..$tap_count\n";
    exit($tap_failed === 0 ? 0 : 1);
}
