<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/**
 * The C libraries: the one for servers and applications, which brings the basic one, and the one for many hosts, which
 * is loaded by the first GlobalLimiter. What they declare is in the files shmlimit.h and shmlimit_global.h beside this
 * one, made from the libraries' own headers.
 *
 * @internal
 */
final class Library
{
    private const EINVAL = 22;
    private const ELIBACC = 79;
    private const EILSEQ = 84;

    private static ?\FFI $ffi = null;
    private static ?\FFI $globalFfi = null;

    public static function ffi(): \FFI
    {
        return self::$ffi ??= self::load('SHMLIMIT', 'shmlimit.h', 'libshmlimit-gate');
    }

    /** Its types are none of ffi()'s: what is handed over is to be cast. */
    public static function globalFfi(): \FFI
    {
        return self::$globalFfi ??= self::load('SHMLIMIT_GLOBAL', 'shmlimit_global.h', 'libshmlimit-global');
    }

    /** Throws if the answer is an error. */
    public static function check(int $answer, string $subject): int
    {
        return $answer >= 0 ? $answer : throw self::error($answer, $subject);
    }

    public static function error(int $answer, string $subject): Error
    {
        return new Error($subject, self::ffi()->shmlimit_strerror($answer), -$answer);
    }

    /**
     * Throws if no segment can have this name, or no rule the other. WHY NOT shmlimit_check_names(): that a gate is
     * configured wrongly is to be known also where the library cannot be loaded.
     */
    public static function checkNames(?string $segment, ?string $rule = null): void
    {
        if ($segment !== null && preg_match('#^(?!\.)[^/\x00-\x1f\x7f]{1,239}$#D', $segment) !== 1) {
            throw new Error($segment, "must be a segment's name: 1 to 239 bytes, no / or control characters, not a dot "
                . 'first', self::EILSEQ);
        }
        if ($rule !== null && preg_match('#^~?[A-Za-z0-9._:@+-]{1,63}$#D', $rule) !== 1) {
            throw new Error($rule, "must be a rule's name: 1 to 63 letters, digits and . _ : @ + -", self::EILSEQ);
        }
    }

    /** A string for C, which would end it at a NUL. */
    public static function name(string $name): string
    {
        return str_contains($name, "\0") ? '' : $name;
    }

    /** A number of tokens or nanoseconds for C, which would take a negative one for a huge one. */
    public static function unsigned(int $number): int
    {
        return $number >= 0 ? $number : self::check(-self::EINVAL, (string) $number);
    }

    /** C's result of a decision. */
    public static function result(bool $allowed, \FFI\CData $r): Result
    {
        $numbers = [$r->limit, $r->remaining, $r->wait_ns, $r->retry_after_ns, $r->reset_after_ns];
        return new Result($allowed, ...array_map(self::int(...), $numbers));
    }

    /** What C counts in 64 bits, of which an int has 63. */
    public static function int(int $u64): int
    {
        return $u64 >= 0 ? $u64 : PHP_INT_MAX;
    }

    /** Bytes in C's memory, for as long as what is returned lives. */
    public static function bytes(string $bytes): \FFI\CData
    {
        $c = self::ffi()->new('char[' . max(1, strlen($bytes)) . ']');
        \FFI::memcpy($c, $bytes, strlen($bytes));
        return $c;
    }

    /** Throws Error, for whatever reason the library cannot be used: no FFI extension, FFI disabled, no such file. */
    private static function load(string $scope, string $file, string $library): \FFI
    {
        try {
            try {
                return \FFI::scope($scope);
            } catch (\FFI\Exception) {
                return @\FFI::load(__DIR__ . "/$file"); // PHP 8.4 warns of what it throws
            }
        } catch (\Throwable $thrown) {
            throw new Error($library, 'cannot be loaded (' . $thrown->getMessage() . ')', self::ELIBACC);
        }
    }
}
