<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/**
 * A handle on an existing segment. Processes that are forked later can go on using it. Rules are given by name, and
 * keys are 1 to 1024 bytes. Every method can throw Error, and has then changed nothing.
 */
final class Limiter
{
    /** As retryAfterNs: the request will never fit. As the longest wait: as long as the rule allows. */
    public const NEVER = PHP_INT_MAX;

    /** Algorithms of setRule(). */
    public const FUNNEL = 0;
    public const TOKEN_BUCKET = self::FUNNEL;
    public const WINDOW = 2;
    public const LEASE = 3;
    public const COUNTER = 4;
    public const GCRA = 6;

    /** Flags of count(): add what fits, instead of nothing; the time to live begins again. */
    public const SATURATE = 0x10000;
    public const RESTART = 0x20000;

    private const ALL_RULES = -0x80000000;
    private const EEXIST = 17;
    private const EINVAL = 22;
    private const ERANGE = 34;
    private const ETIME = 62;
    private const SECOND_NS = 10 ** 9;
    private const LIMITS_KEPT = 4096;

    /** @var array<string, \FFI\CData> limits that came with calls, by their text */
    private static array $limits = [];

    private \FFI $ffi;
    private \FFI\CData $handle;

    /**
     * Opens the segment if it belongs to root, to this process's user or to the user id $owner: the owner can truncate
     * it, which kills every process that has it open.
     */
    public function __construct(public readonly string $segment, bool $readOnly = false, int $owner = 0)
    {
        $this->ffi = Library::ffi();
        $handle = $this->ffi->new('struct shmlimit *');
        $flags = $this->ffi->SHMLIMIT_OPEN_TRUSTED | ($readOnly ? $this->ffi->SHMLIMIT_OPEN_READ_ONLY : 0);
        $options = $this->ffi->new('struct shmlimit_options');
        $options->struct_size = \FFI::sizeof($options);
        $options->owner = $owner;
        $name = Library::name($segment);
        Library::check($this->ffi->shmlimit_open($name, $flags, \FFI::addr($options), \FFI::addr($handle)), $segment);
        $this->handle = $handle;
    }

    public function __destruct()
    {
        if (isset($this->handle)) {
            $this->ffi->shmlimit_close($this->handle);
        }
    }

    /**
     * Create the segment unless there is one of that name. 0, and a $group of -1, is the default of shmlimit_create(3).
     * Returns whether it was created.
     */
    public static function create(
        string $segment,
        int $slots = 0,
        int $mode = 0,
        int $group = -1,
    ): bool {
        $ffi = Library::ffi();
        $options = $ffi->new('struct shmlimit_options');
        $options->struct_size = \FFI::sizeof($options);
        $options->slots = Library::unsigned($slots);
        $options->mode = Library::unsigned($mode);
        $options->flags = $group < 0 ? 0 : $ffi->SHMLIMIT_OPTION_GROUP;
        $options->gid = max(0, $group);
        $answer = $ffi->shmlimit_create(Library::name($segment), \FFI::addr($options), null);
        return $answer === -self::EEXIST ? false : Library::check($answer, $segment) === 0;
    }

    /**
     * Give a program its rule: set it if it is missing, or if this call was given another one last; of another algorithm,
     * its keys then begin again. What an operator has changed since stays, as do other parameters, such as the mode.
     * $refill tokens come back every $periodNs; 0 for WINDOW and COUNTER. A float is what its shortest decimal says: 0.1
     * tokens every second are 1 every 10 seconds. Of GCRA the three may be 0: each call brings its limit. Returns whether it
     * was set.
     */
    public function setRule(
        string $rule,
        int $capacity,
        int|float $refill,
        int $periodNs,
        int $algorithm = self::FUNNEL,
        int $maxWaitNs = 0,
    ): bool {
        $terms = $this->sized('struct shmlimit_rule');
        $terms->capacity = Library::unsigned($capacity);
        [$terms->refill, $terms->period_ns] = $this->rate($refill, $periodNs);
        $terms->algorithm = Library::unsigned($algorithm);
        $terms->max_wait_ns = Library::unsigned($maxWaitNs);
        return $this->ensure($rule, $terms);
    }

    /**
     * The same of a limit as text, "5/minute", "10/s burst 20", "1000/hour strict", "1000/hour window", "0" or "block", which
     * deny always, and "unlimited" or "off"; shmlimit(7) has all forms. Error with the code of EINVAL: it is none.
     */
    public function setLimit(string $rule, string $limit, int $maxWaitNs = 0): bool
    {
        $terms = $this->sized('struct shmlimit_rule');
        $wrong = $this->ffi->new('struct shmlimit_problem');
        $error = str_contains($limit, "\0")
            ? -self::EINVAL
            : $this->ffi->shmlimit_rule_parse($limit, \FFI::addr($terms), \FFI::addr($wrong));
        if ($error < 0) {
            throw new Error("limit \"$limit\"", \FFI::string($wrong->text) ?: 'contains a NUL', -$error);
        }
        $terms->max_wait_ns = Library::unsigned($maxWaitNs);
        return $this->ensure($rule, $terms);
    }

    /** The limit of a rule as text, which setLimit() reads as the same, if its algorithm is one of such texts. */
    public function limit(string $rule): string
    {
        $terms = $this->sized('struct shmlimit_rule');
        $size = $this->ffi->SHMLIMIT_RULE_TEXT_MAX;
        $text = $this->ffi->new("char[$size]");
        $id = $this->find($rule);
        $error = $this->ffi->shmlimit_rule_get($this->handle, $id, \FFI::addr($terms));
        Library::check($error < 0 ? $error : $this->ffi->shmlimit_rule_text(\FFI::addr($terms), $text), $this->about($rule));
        return \FFI::string($text);
    }

    /**
     * Take $cost tokens if the key's funnel has them. $limit, here and below, is the call's own, such as "100/minute", under a
     * rule of GCRA; a key that is asked with another limit owes at most that one's time to full. Its longest wait is the rule's,
     * or $maxWaitNs.
     */
    public function take(string $rule, string $key, int $cost = 1, ?string $limit = null): Result
    {
        return $limit === null
            ? $this->decide('take', $rule, $key, $cost)
            : $this->decideBy('take', $rule, $key, $cost, self::parsed($limit));
    }

    /**
     * Take as many of $most tokens as fit, for batches: returns how many were taken, 0 if none fits. Not under rules of HOLD
     * and LEASE.
     */
    public function takeSome(string $rule, string $key, int $most, ?string $limit = null): int
    {
        $by = $limit === null ? null : self::parsed($limit);
        return Library::int($this->asked('take_some', $rule, $key, $most, $by)[1]->granted);
    }

    /** What a take would answer, without taking. */
    public function peek(string $rule, string $key, int $cost = 1, ?string $limit = null): Result
    {
        return $limit === null
            ? $this->decide('peek', $rule, $key, $cost)
            : $this->decideBy('peek', $rule, $key, $cost, self::parsed($limit));
    }

    /** Take tokens now or in advance: wait for waitNs before going on. Denied if waitNs would be longer than $maxWaitNs. */
    public function reserve(
        string $rule,
        string $key,
        int $cost = 1,
        int $maxWaitNs = self::NEVER,
        ?string $limit = null,
    ): Result {
        return $limit === null
            ? $this->decide('reserve', $rule, $key, $cost, Library::unsigned($maxWaitNs))
            : $this->decideBy('reserve', $rule, $key, $cost, $this->waiting($limit, $rule, $maxWaitNs));
    }

    /** Reserve, then sleep until the tokens are there. */
    public function acquire(
        string $rule,
        string $key,
        int $cost = 1,
        int $maxWaitNs = self::NEVER,
        ?string $limit = null,
    ): Result {
        return $limit === null
            ? $this->decide('acquire', $rule, $key, $cost, Library::unsigned($maxWaitNs))
            : $this->decideBy('acquire', $rule, $key, $cost, $this->waiting($limit, $rule, $maxWaitNs));
    }

    /** Give tokens back that were taken or reserved and then not used. */
    public function refund(string $rule, string $key, int $tokens = 1, ?string $limit = null): Result
    {
        return $limit === null
            ? $this->decide('refund', $rule, $key, $tokens)
            : $this->decideBy('refund', $rule, $key, $tokens, self::parsed($limit));
    }

    /** Take tokens for something that has already happened, into debt as far as the rule allows. */
    public function charge(string $rule, string $key, int $tokens = 1, ?string $limit = null): Result
    {
        return $limit === null
            ? $this->decide('charge', $rule, $key, $tokens)
            : $this->decideBy('charge', $rule, $key, $tokens, $this->waiting($limit, $rule, self::NEVER));
    }

    /**
     * Add $n to the key's count under a COUNTER rule, unless the sum would be above $bound or below 0, as Redis's INCREX.
     * The first addition starts the count's time to live (0: the rule's period). An $n of 0 only reads.
     */
    public function count(
        string $rule,
        string $key,
        int $n = 1,
        int $ttlNs = 0,
        int $bound = PHP_INT_MAX,
        int $flags = 0,
    ): Count {
        $out = $this->sized('struct shmlimit_count');
        $asked = $this->sized('struct shmlimit_count_request');
        $asked->flags = Library::unsigned($flags);
        $asked->n = $n;
        $asked->bound = $bound;
        $asked->ttl_ns = Library::unsigned($ttlNs);
        $more = [\FFI::addr($asked), \FFI::addr($out)];
        $answer = $this->ffi->shmlimit_count($this->handle, $this->find($rule), $key, strlen($key), ...$more);
        Library::check($answer, $this->about($rule));
        return new Count($answer === 0, $out->count, $out->applied, Library::int($out->ttl_ns));
    }

    /**
     * Take from up to 16 limits, all or none. If a limit denies, its result is the last in the list.
     *
     * @param list<Limit> $limits each with a key
     * @return list<Result>
     */
    public function takeAll(array $limits): array
    {
        $n = count($limits);
        $requests = $this->ffi->new('struct shmlimit_request[' . max(1, $n) . ']');
        $results = $this->ffi->new('struct shmlimit_result[' . max(1, $n) . ']');
        $failed = $this->ffi->new('size_t');
        $keys = [];
        foreach ($limits as $i => $limit) {
            $key = $keys[] = Library::bytes($limit->key ?? '');
            $requests[$i]->rule = $this->find($limit->rule);
            $requests[$i]->key = \FFI::addr($key);
            $requests[$i]->key_len = strlen($limit->key ?? '');
            $requests[$i]->cost = Library::unsigned($limit->cost);
            if ($limit->limit !== null) {
                $requests[$i]->limit = $keys[] = self::parsed($limit->limit);
            }
        }
        $answer = $this->ffi->shmlimit_take_all($this->handle, $requests, $n, \FFI::addr($failed), $results);
        Library::check($answer, $this->segment);
        $filled = $answer === 0 ? $n : $failed->cdata + 1;
        $decided = [];
        for ($i = 0; $i < $filled; $i++) {
            $decided[] = Library::result($answer === 0 || $i + 1 < $filled, $results[$i]);
        }
        return $decided;
    }

    /**
     * redis-cell's CL.THROTTLE and its reply of five: denied, limit, remaining, seconds to a retry, to a full funnel.
     *
     * @return array{int, int, int, int, int}
     */
    public function throttle(string $key, int $capacity, int|float $count, int $periodS, int $quantity = 1): array
    {
        $reply = $this->ffi->new('int64_t[5]');
        if (is_float($count)) {
            [$whole, $periodNs] = $this->rate($count, Library::unsigned($periodS) * self::SECOND_NS);
            if ($periodNs % self::SECOND_NS !== 0) {
                throw new Error("rate $count", 'must be of whole seconds', self::EINVAL);
            }
            [$count, $periodS] = [$whole, intdiv($periodNs, self::SECOND_NS)];
        }
        $terms = array_map(Library::unsigned(...), [$capacity, $count, $periodS, $quantity]);
        $answer = $this->ffi->shmlimit_throttle($this->handle, $key, strlen($key), ...[...$terms, $reply]);
        Library::check($answer, $this->segment);
        return [$reply[0], $reply[1], $reply[2], $reply[3], $reply[4]];
    }

    /**
     * Whole tokens in whole nanoseconds.
     *
     * @return array{int, int}
     */
    private function rate(int|float $refill, int $periodNs): array
    {
        if (is_int($refill)) {
            return [Library::unsigned($refill), Library::unsigned($periodNs)];
        }
        $count = $this->ffi->new('uint64_t[1]');
        $period = $this->ffi->new('uint64_t[1]');
        $answer = $this->ffi->shmlimit_rate_from_double($refill, Library::unsigned($periodNs), $count, $period);
        if ($answer === -self::ERANGE || ($answer === 0 && $count[0] < 0)) {
            $nearest = $refill < 1 ? $periodNs / 2 ** 60 : 2.0 ** 63 - 1024;
            throw new Error("rate $refill", "the nearest that can be is $nearest", self::ERANGE);
        }
        if ($answer < 0) {
            throw new Error("rate $refill", 'must be a finite number above 0, of a period above 0', -$answer);
        }
        return [$count[0], $period[0]];
    }

    /**
     * Let nothing of the key pass for so long, in all processes: what it stands for has answered 429, say. A longer pause
     * stays; 0 ends one. False: the segment has no slot for it, or is off.
     */
    public function pause(string $rule, string $key, int $forNs): bool
    {
        $for = Library::unsigned($forNs);
        $answer = $this->ffi->shmlimit_pause($this->handle, $this->find($rule), $key, strlen($key), $for);
        return Library::check($answer, $this->about($rule)) === 0;
    }

    /** For how many nanoseconds the key is paused still; 0: it is not. */
    public function paused(string $rule, string $key): int
    {
        $left = $this->ffi->new('uint64_t[1]');
        $answer = $this->ffi->shmlimit_paused($this->handle, $this->find($rule), $key, strlen($key), $left);
        Library::check($answer, $this->about($rule));
        return Library::int($left[0]);
    }

    /**
     * Enter one of the key's places under a rule of HOLD, if one is free. Returns the place, for leave(), or null. It is held
     * until then, or while this process lives; a rule that says "at most 5 minutes each" ends it after them. Pacer::run()
     * waits for one.
     */
    public function enter(string $rule, string $key): ?string
    {
        $place = $this->sized('struct shmlimit_place');
        $place->flags = $this->ffi->SHMLIMIT_PLACE_BIND;
        $id = $this->find($rule);
        $answer = $this->ffi->shmlimit_enter($this->handle, $id, $key, strlen($key), \FFI::addr($place), null);
        $entered = Library::check($answer, $this->about($rule)) === 0;
        return $entered ? \FFI::string(\FFI::cast('char *', \FFI::addr($place)), \FFI::sizeof($place)) : null;
    }

    /** Leave a place. False: it ended before. */
    public function leave(string $rule, string $key, string $place): bool
    {
        $held = $this->sized('struct shmlimit_place');
        if (strlen($place) !== \FFI::sizeof($held)) {
            throw Library::error(-self::EINVAL, $this->about($rule));
        }
        \FFI::memcpy($held, $place, strlen($place));
        $held->flags = 0;
        $id = $this->find($rule);
        $answer = $this->ffi->shmlimit_leave($this->handle, $id, $key, strlen($key), \FFI::addr($held));
        return $answer !== -self::ETIME && Library::check($answer, $this->about($rule)) === 0;
    }

    /** Restore all tokens of one key, of every key of a rule, or of all. */
    public function reset(?string $rule = null, ?string $key = null): void
    {
        $id = $rule === null ? self::ALL_RULES : $this->find($rule);
        $answer = $this->ffi->shmlimit_reset($this->handle, $id, $key, strlen($key ?? ''));
        Library::check($answer, $this->about($rule));
    }

    /**
     * The HTTP header fields of a decision, with the rule's name as the policy. Empty if the rule is in a dry run or
     * off.
     *
     * @return array<string, string> RateLimit-Policy, RateLimit and, denied, Retry-After
     */
    public function fields(string $rule, Result $result): array
    {
        $terms = $this->sized('struct shmlimit_rule');
        $out = $this->sized('struct shmlimit_fields');
        $r = $this->ffi->new('struct shmlimit_result');
        Library::check(
            $this->ffi->shmlimit_rule_get($this->handle, $this->find($rule), \FFI::addr($terms)),
            $this->about($rule),
        );
        if ($terms->mode !== $this->ffi->SHMLIMIT_ENFORCE) {
            return [];
        }
        $r->limit = $result->limit;
        $r->remaining = $result->remaining;
        $r->retry_after_ns = $result->retryAfterNs === self::NEVER ? -1 : $result->retryAfterNs;
        $r->reset_after_ns = $result->resetAfterNs;
        $answer = $result->allowed ? 0 : 1;
        Library::check(
            $this->ffi->shmlimit_fields($rule, \FFI::addr($terms), $answer, \FFI::addr($r), \FFI::addr($out)),
            $this->about($rule),
        );
        return array_filter([
            'RateLimit-Policy' => \FFI::string($out->policy),
            'RateLimit' => \FFI::string($out->limit),
            'Retry-After' => \FFI::string($out->retry_after),
        ], strlen(...));
    }

    /** Was the segment destroyed or replaced under its name? */
    public function gone(): bool
    {
        return Library::check($this->ffi->shmlimit_gone($this->handle), $this->segment) === 1;
    }

    /** The user id of the segment's owner. */
    public function owner(): int
    {
        $info = $this->sized('struct shmlimit_info');
        Library::check($this->ffi->shmlimit_info($this->handle, \FFI::addr($info)), $this->segment);
        return $info->uid;
    }

    /**
     * The network of an address, as a key: a customer's IPv6 /64 counts as one client. IPv4-mapped addresses are IPv4.
     * A port, brackets and a zone do not count. $nth takes an element of a list such as X-Forwarded-For: 1 is the first,
     * which a client can forge; -1 is the last, which the nearest proxy wrote.
     */
    public static function keyIp(string $address, int $prefixV4 = 32, int $prefixV6 = 64, int $nth = 0): string
    {
        $ffi = Library::ffi();
        $size = $ffi->SHMLIMIT_KEY_IP_MAX;
        $key = $ffi->new("char[$size]");
        $length = $ffi->shmlimit_key_ip_text(Library::name($address), $nth, $prefixV4, $prefixV6, $key, $size);
        return \FFI::string($key, Library::check($length, $address));
    }

    private function ensure(string $rule, \FFI\CData $terms): bool
    {
        $before = $this->mark($rule);
        $answer = $this->ffi->shmlimit_rule_ensure($this->handle, Library::name($rule), \FFI::addr($terms));
        Library::check($answer, $this->about($rule));
        return $this->mark($rule) !== $before;
    }

    /** The number by which the library knows what setRule() was given last; 0: nothing. */
    private function mark(string $rule): int
    {
        $found = $this->sized('struct shmlimit_rule');
        $id = $this->findOrNone($rule);
        return $id >= 0 && $this->ffi->shmlimit_rule_get($this->handle, $id, \FFI::addr($found)) === 0 ? $found->mark : 0;
    }

    /** A rule's id, looked up each time: a rule that was removed and set again has another. */
    private function find(string $rule): int
    {
        return Library::check($this->findOrNone($rule), $this->about($rule));
    }

    /** The same, and less than 0 if there is none. */
    private function findOrNone(string $rule): int
    {
        return $this->ffi->shmlimit_rule_find($this->handle, Library::name($rule));
    }

    /** The subject of an error message. */
    private function about(?string $rule): string
    {
        return $rule === null ? $this->segment : "$this->segment: rule $rule";
    }

    /** A pointer to a limit that comes with a call, whose text is read once. */
    private static function parsed(string $text): \FFI\CData
    {
        $known = self::$limits[$text] ?? null;
        if ($known === null) {
            $ffi = Library::ffi();
            $known = $ffi->new('struct shmlimit_limit');
            $known->struct_size = \FFI::sizeof($known);
            $wrong = $ffi->new('struct shmlimit_problem');
            $error = str_contains($text, "\0")
                ? -self::EINVAL
                : $ffi->shmlimit_limit_parse($text, \FFI::addr($known), \FFI::addr($wrong));
            if ($error < 0) {
                throw new Error("limit \"$text\"", \FFI::string($wrong->text) ?: 'contains a NUL', -$error);
            }
            if (count(self::$limits) >= self::LIMITS_KEPT) {
                self::$limits = [];
            }
            self::$limits[$text] = $known;
        }
        $known->max_wait_ns = 0;
        return \FFI::addr($known);
    }

    /** The same, with the longest wait of the call, or else of the rule. */
    private function waiting(string $text, string $rule, int $maxWaitNs): \FFI\CData
    {
        $limit = self::parsed($text);
        if ($maxWaitNs === self::NEVER) {
            $terms = $this->sized('struct shmlimit_rule');
            Library::check(
                $this->ffi->shmlimit_rule_get($this->handle, $this->find($rule), \FFI::addr($terms)),
                $this->about($rule),
            );
            $maxWaitNs = $terms->max_wait_ns;
        }
        $limit[0]->max_wait_ns = Library::unsigned($maxWaitNs);
        return $limit;
    }

    private function decide(string $verb, string $rule, string $key, int $tokens, int|\FFI\CData ...$more): Result
    {
        $r = $this->ffi->new('struct shmlimit_result');
        $arguments = [$this->handle, $this->find($rule), $key, strlen($key), Library::unsigned($tokens), ...$more];
        $answer = $this->ffi->{"shmlimit_$verb"}(...[...$arguments, \FFI::addr($r)]);
        Library::check($answer, $this->about($rule));
        return Library::result($answer === 0, $r);
    }

    /** The same by a limit that comes with the call. */
    private function decideBy(string $verb, string $rule, string $key, int $tokens, \FFI\CData $limit): Result
    {
        return Library::result(...$this->asked($verb, $rule, $key, $tokens, $limit));
    }

    /** @return array{bool, \FFI\CData} whether it is allowed, and C's result */
    private function asked(string $verb, string $rule, string $key, int $tokens, ?\FFI\CData $limit): array
    {
        $r = $this->ffi->new('struct shmlimit_result');
        $asked = $this->ffi->new('struct shmlimit_request');
        $bytes = Library::bytes($key);
        $asked->rule = $this->find($rule);
        $asked->key = \FFI::addr($bytes);
        $asked->key_len = strlen($key);
        $asked->cost = Library::unsigned($tokens);
        $asked->limit = $limit;
        $which = $this->ffi->{'SHMLIMIT_' . strtoupper($verb)};
        $answer = $this->ffi->shmlimit_decide($this->handle, $which, \FFI::addr($asked), \FFI::addr($r));
        Library::check($answer, $this->about($rule));
        return [$answer === 0, $r];
    }

    private function sized(string $type): \FFI\CData
    {
        $c = $this->ffi->new($type);
        $c->struct_size = \FFI::sizeof($c);
        return $c;
    }
}
