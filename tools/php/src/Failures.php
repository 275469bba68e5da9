<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/**
 * What is out of order is told once, and not once a request: who breaks the limiter must not fill the disk too.
 *
 * That needs a memory that outlives requests. PHP's is APCu, which all children of a pool share: how many requests the
 * segment `web` has failed is apcu_fetch('shmlimit:web'). Without it each gate, so each request, tells it once.
 *
 * @internal
 */
final class Failures
{
    private const SAY_EVERY_S = 60;

    /** @var array<string, int> how many requests each subject failed, where there is no APCu */
    private array $own = [];
    private readonly bool $shared;

    public function __construct(private readonly bool $failOpen)
    {
        $needed = ['apcu_enabled', 'apcu_add', 'apcu_inc', 'apcu_fetch', 'apcu_delete'];
        $this->shared = array_filter($needed, function_exists(...)) === $needed && apcu_enabled();
    }

    public function add(Error $error): void
    {
        if ($this->count($error->subject) === 1) {
            $what = $this->failOpen ? 'pass without a limit' : 'are refused';
            self::log("segment $error->subject: $error->words: requests that need it $what");
        }
    }

    public function over(string ...$subjects): void
    {
        foreach ($this->counted($subjects) as $subject => $count) {
            if ($this->forget($subject)) {
                $what = $this->failOpen ? 'passed without a limit' : 'were refused';
                self::log("segment $subject: in order again; requests that $what: $count");
            }
        }
    }

    /** What an engine is told of: the same words once a minute, or once a gate where there is no APCu. */
    public function say(string $line): void
    {
        $key = "shmlimit-said:$line";
        $news = $this->shared ? apcu_add($key, true, self::SAY_EVERY_S) : !isset($this->own[$key]);
        if (!$this->shared) {
            $this->own[$key] = 1;
        }
        if ($news) {
            self::log($line);
        }
    }

    private static function log(string $line): void
    {
        if (function_exists('error_log')) {
            error_log($line);
        }
    }

    private function count(string $subject): int
    {
        return $this->shared ? apcu_inc("shmlimit:$subject") : $this->own[$subject] = ($this->own[$subject] ?? 0) + 1;
    }

    /**
     * @param array<string> $subjects
     * @return array<string, int>
     */
    private function counted(array $subjects): array
    {
        if (!$this->shared) {
            return array_intersect_key($this->own, array_flip($subjects));
        }
        $counts = apcu_fetch(array_map(fn (string $subject) => "shmlimit:$subject", $subjects));
        $bare = array_map(fn (string $key) => substr($key, strlen('shmlimit:')), array_keys($counts));
        return array_combine($bare, $counts);
    }

    /** True for one of those who do it at once. */
    private function forget(string $subject): bool
    {
        if ($this->shared) {
            return apcu_delete("shmlimit:$subject");
        }
        unset($this->own[$subject]);
        return true;
    }
}
