<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit\Adapter;

use Shmlimit\{Backend, Error, Gate, GlobalLimiter, Limit, Limiter, OnFailure};

/**
 * The segment of an adapter: created if it is missing, opened again if it was replaced, with the rules that the adapter
 * needs. The first process to ask creates it, so let all of them have one user, or one $group and a $mode of 0660.
 */
final class Segment
{
    private const ENOENT = 2;
    private const ESRCH = 3;
    private const KEY_MAX = 1024;

    public const BACKEND = ['backend', 'backend_prefix', 'deadline_ms', 'on_failure', 'local_share'];

    private ?Limiter $limiter = null;
    private ?GlobalLimiter $everywhere = null;
    private ?Gate $gate = null;
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
        /** The user id that a segment may belong to besides root's and this process's. */
        private readonly int $owner = 0,
        /** With which all hosts share counts and token buckets. */
        public readonly ?Backend $backend = null,
        /** Report a proxy that is not configured: see forwarded(). */
        private readonly bool $proxyWarning = true,
    ) {
    }

    /**
     * Report once in a process that behind a proxy all clients are one, where the key is the address of the peer: see
     * Gate::forwarded(). PHP's error log says so.
     *
     * @param array<string, mixed> $server $_SERVER, or that of a request
     */
    public function forwarded(array $server, string $rule, string $key): void
    {
        if ($this->proxyWarning && ($server['REMOTE_ADDR'] ?? null) === $key) {
            ($this->gate ??= new Gate($this->name))->forwarded($server, new Limit($rule, $key));
        }
    }

    /**
     * The backend that these options say, as in a configuration: `backend`, its URL; `backend_prefix`; `deadline_ms`; `on_failure`,
     * which is deny, allow, local or error; and `local_share`, this host's part of a limit while the backend does not answer, in thousandths, which
     * means local. null: none of them is given. While no agent runs on this host, threads of these processes are it.
     */
    public static function backend(array $options): ?Backend
    {
        $options = array_filter($options, fn (mixed $value) => $value !== null);
        if ($options === []) {
            return null;
        }
        $unknown = array_diff(array_keys($options), self::BACKEND);
        if ($unknown !== [] || !isset($options['backend'])) {
            $what = $unknown !== [] ? reset($unknown) . ' is not an option' : 'there is no backend';
            throw new \InvalidArgumentException("$what; there are " . implode(', ', self::BACKEND));
        }
        $share = (int) ($options['local_share'] ?? 0);
        $word = $options['on_failure'] ?? ($share !== 0 ? 'local' : 'deny');
        $onFailure = ['deny' => OnFailure::Deny, 'allow' => OnFailure::Allow, 'local' => OnFailure::Local, 'error' => OnFailure::Error][$word] ?? null;
        if ($onFailure === null) {
            throw new \InvalidArgumentException("on_failure $word: must be deny, allow, local or error");
        }
        if ($onFailure === OnFailure::Local ? $share < 1 || $share > 1000 : $share !== 0) {
            throw new \InvalidArgumentException("local_share $share: must be 1 to 1000 thousandths, with on_failure local, which needs it");
        }
        return new Backend(
            (string) $options['backend'],
            onFailure: $onFailure,
            deadlineNs: (int) (($options['deadline_ms'] ?? 0) * 1e6),
            localMilli: $share,
            prefix: (string) ($options['backend_prefix'] ?? 'shmlimit:'),
            agentThread: true,
        );
    }

    /** What asks the backend, for a limiter that has this rule: see limiter(). */
    public function everywhere(string $rule, int ...$terms): GlobalLimiter
    {
        $limiter = $this->limiter($rule, ...$terms);
        if ($this->everywhere === null || $this->everywhere->limiter !== $limiter) {
            $this->everywhere = new GlobalLimiter($limiter, $this->backend);
        }
        return $this->everywhere;
    }

    /**
     * A limiter that has this rule. Throws Error; where only a change of the rule is refused, the old one stays in force, and
     * PHP's error log says so.
     */
    public function limiter(
        string $rule,
        int $capacity,
        int $refill,
        int $periodNs,
        int $algorithm = Limiter::FUNNEL,
        int $maxWaitNs = 0,
    ): Limiter {
        $terms = [$capacity, $refill, $periodNs, $algorithm, $maxWaitNs];
        $limiter = $this->opened();
        if (($this->rules[$rule] ?? null) !== $terms) {
            try {
                $limiter->setRule($rule, ...$terms);
            } catch (Error $error) {
                if ($error->getCode() === self::ENOENT) {
                    // Replaced since it was looked at.
                    $this->lookedS = -1;
                    $limiter = $this->opened();
                    $limiter->setRule($rule, ...$terms);
                } elseif (self::has($limiter, $rule)) {
                    error_log("$this->name: rule $rule: its new limit is refused, and the old one stays: {$error->getMessage()}");
                } else {
                    throw $error;
                }
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

    private static function has(Limiter $limiter, string $rule): bool
    {
        try {
            $limiter->peek($rule, "\0");
        } catch (Error $error) {
            return $error->getCode() !== self::ESRCH;
        }
        return true;
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
        Limiter::create($this->name, $this->slots, $this->mode, $this->gid());
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
