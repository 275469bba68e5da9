<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit\Adapter;

use Shmlimit\{Error, Limiter};

/**
 * The segment of an adapter: created if it is missing, opened again if it was replaced, with the rules that the adapter
 * needs. The first process to ask creates it, so let all of them have one user, or one $group and a $mode of 0660.
 */
final class Segment
{
    private const ENOENT = 2;
    private const KEY_MAX = 1024;

    private ?Limiter $limiter = null;
    private int $lookedS = -1;
    /** @var array<string, list<int>> what setRule() was given within this second */
    private array $rules = [];

    public function __construct(
        public readonly string $name,
        /** Of a segment that is created; 0: the default. */
        private readonly int $slots = 0,
        private readonly int $mode = 0,
        /** A group of this host, by name. */
        private readonly ?string $group = null,
        /** The largest limit of a sliding window: each slot then has 16 bytes more for each token of it. */
        private readonly int $windowMax = 0,
        /** The user id that a segment may belong to besides root's and this process's. */
        private readonly int $owner = 0,
    ) {
    }

    /** A limiter that has this rule. Throws Error. */
    public function limiter(
        string $rule,
        int $capacity,
        int $count,
        int $periodNs,
        int $algorithm = Limiter::FUNNEL,
        int $maxWaitNs = 0,
    ): Limiter {
        $terms = [$capacity, $count, $periodNs, $algorithm, $maxWaitNs];
        $limiter = $this->opened();
        if (($this->rules[$rule] ?? null) !== $terms) {
            try {
                $limiter->setRule($rule, ...$terms);
            } catch (Error $error) {
                // Replaced since it was looked at.
                if ($error->getCode() !== self::ENOENT) {
                    throw $error;
                }
                $this->lookedS = -1;
                $limiter = $this->opened();
                $limiter->setRule($rule, ...$terms);
            }
            $this->rules[$rule] = $terms;
        }
        return $limiter;
    }

    /** A key for any string: one that is empty or too long for a key is replaced. */
    public static function key(string $text): string
    {
        return $text === '' ? "\0" : (strlen($text) > self::KEY_MAX ? hash('sha512', $text, true) : $text);
    }

    /** Looks at the segment's name, and at the rules, once a second. */
    private function opened(): Limiter
    {
        $now = hrtime()[0];
        if ($this->limiter === null || $now !== $this->lookedS) {
            $this->rules = [];
            if ($this->limiter === null || $this->limiter->gone()) {
                $this->limiter = $this->open();
            }
            $this->lookedS = $now;
        }
        return $this->limiter;
    }

    private function open(): Limiter
    {
        try {
            return new Limiter($this->name, false, $this->owner);
        } catch (Error $error) {
            if ($error->getCode() !== self::ENOENT) {
                throw $error;
            }
        }
        Limiter::create($this->name, $this->slots, $this->mode, $this->gid(), $this->windowMax);
        return new Limiter($this->name, false, $this->owner);
    }

    private function gid(): int
    {
        if ($this->group === null) {
            return -1;
        }
        $group = posix_getgrnam($this->group);
        return $group !== false ? $group['gid'] : throw new Error($this->name, "group $this->group: no such group", 22);
    }
}
