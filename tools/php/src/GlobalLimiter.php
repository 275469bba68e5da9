<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/**
 * Limits that all hosts with the same backend share: the LEASE rules of a segment, see shmlimit_global(3).
 *
 * A token is debited on the backend before it is spent here. Processes that are forked later can go on using the object,
 * and open connections of their own. The first call that needs the backend connects to it. A call takes the deadline at most.
 */
final class GlobalLimiter
{
    /** Errors of calls to the backend that are about their arguments: EINVAL, EMSGSIZE, EOPNOTSUPP, EROFS, ESRCH. */
    private const OF_ARGUMENTS = [22, 90, 95, 30, 3];

    public readonly OnFailure $onFailure;
    private \FFI $ffi;
    /** A handle of its own on the Limiter's segment, which may be the extension's. */
    private \FFI\CData $here;
    private \FFI\CData $handle;

    /** @param ?callable(string): void $report is called with one line of text when a problem begins; not with agentThread */
    public function __construct(
        public readonly Limiter $limiter,
        #[\SensitiveParameter] Backend|string $backend,
        ?callable $report = null,
    ) {
        $backend = is_string($backend) ? new Backend($backend) : $backend;
        $this->onFailure = $backend->onFailure ?? OnFailure::Deny;
        $this->ffi = Library::globalFfi();
        $last = null;
        // An exception that left it would end the process, for C has none. PHP keeps it until the request ends: it must
        // not hold this object.
        $told = static function (?\FFI\CData $arg, string $line) use ($report, &$last): void {
            $last = $line;
            try {
                $report === null || $report($line);
            } catch (\Throwable $thrown) {
                error_log("$thrown");
            }
        };
        $prefix = Library::bytes(Library::name($backend->prefix) . "\0");
        $options = $this->ffi->new('struct shmlimit_global_options');
        $options->struct_size = \FFI::sizeof($options);
        $options->on_failure = $this->onFailure->value;
        $options->deadline_ns = Library::unsigned($backend->deadlineNs);
        $options->lease_ns = Library::unsigned($backend->leaseNs);
        $options->open_ns = Library::unsigned($backend->openNs);
        $options->open_after = Library::unsigned($backend->openAfter);
        $options->local_milli = Library::unsigned($backend->localMilli);
        $options->flags = $backend->wait ? 0 : $this->ffi->SHMLIMIT_GLOBAL_OPTION_NO_WAIT;
        $options->prefix = $this->ffi->cast('char *', \FFI::addr($prefix));
        $options->report = $told;
        $handle = $this->ffi->new('struct shmlimit_global *');
        $here = $this->ffi->new('struct shmlimit *');
        $trusted = $this->ffi->new('struct shmlimit_options');
        $trusted->struct_size = \FFI::sizeof($trusted);
        $trusted->owner = $limiter->owner();
        $flags = $this->ffi->SHMLIMIT_OPEN_TRUSTED;
        $answer = $this->ffi->shmlimit_open($limiter->segment, $flags, \FFI::addr($trusted), \FFI::addr($here));
        Library::check($answer, $limiter->segment);
        $this->here = $here;
        $open = fn () => $this->ffi->shmlimit_global_open(
            $here,
            Library::name($backend->url),
            \FFI::addr($options),
            \FFI::addr($handle),
        );
        $answer = $open();
        if ($answer < 0 && $last !== null) {
            throw new Error($limiter->segment, $last, -$answer);
        }
        Library::check($answer, $limiter->segment);
        if ($backend->agentThread) {
            // What is wrong with the options was said above, in this thread.
            $this->ffi->shmlimit_global_close($handle);
            $options->report = null;
            $options->flags |= $this->ffi->SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD;
            Library::check($open(), $limiter->segment);
        }
        $this->handle = $handle;
    }

    public function __destruct()
    {
        if (isset($this->handle)) {
            $this->ffi->shmlimit_global_close($this->handle);
        }
        if (isset($this->here)) {
            $this->ffi->shmlimit_close($this->here);
        }
    }

    /**
     * Take $cost tokens of the funnel that all hosts share; under a rule of another algorithm, of this host's. A backend
     * that says nothing is no error: the answer is then onFailure's.
     */
    public function take(string $rule, string $key, int $cost = 1): Result
    {
        $r = $this->ffi->new('struct shmlimit_result');
        $id = $this->find($rule);
        $cost = Library::unsigned($cost);
        $answer = $this->ffi->shmlimit_global_take($this->handle, $id, $key, strlen($key), $cost, \FFI::addr($r));
        Library::check($answer, $this->about($rule));
        return Library::result($answer === 0, $r);
    }

    /**
     * Add $n, 0 or more, to the key's count under a COUNTER rule, which all hosts share; as Limiter::count(), and as exact. An $n of 0
     * reads what this host knows. Only an agent of this host asks for counts: without one onFailure decides.
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
        $answer = $this->ffi->shmlimit_global_count($this->handle, $this->find($rule), $key, strlen($key), ...$more);
        Library::check($answer, $this->about($rule));
        return new Count($answer === 0, $out->count, $out->applied, Library::int($out->ttl_ns));
    }

    /**
     * Decide up to 64 independent requests; those that need the backend ask it together.
     *
     * @param list<Limit> $limits each with a key
     * @return list<Result|Error> an Error where one's rule or key is wrong
     */
    public function takeMany(array $limits): array
    {
        $n = count($limits);
        $requests = $this->ffi->new('struct shmlimit_request[' . max(1, $n) . ']');
        $results = $this->ffi->new('struct shmlimit_result[' . max(1, $n) . ']');
        $answers = $this->ffi->new('int[' . max(1, $n) . ']');
        $keys = [];
        foreach ($limits as $i => $limit) {
            $key = $keys[] = Library::bytes($limit->key ?? '');
            $requests[$i]->rule = $this->ffi->shmlimit_rule_find($this->here, Library::name($limit->rule));
            $requests[$i]->key = \FFI::addr($key);
            $requests[$i]->key_len = strlen($limit->key ?? '');
            $requests[$i]->cost = Library::unsigned($limit->cost);
        }
        $answer = $this->ffi->shmlimit_global_take_many($this->handle, $requests, $n, $answers, $results);
        Library::check($answer, $this->limiter->segment);
        $decided = [];
        foreach ($limits as $i => $limit) {
            $decided[] = $answers[$i] >= 0
                ? Library::result($answers[$i] === 0, $results[$i])
                : Library::error($answers[$i], $this->about($limit->rule));
        }
        return $decided;
    }

    /**
     * Ask the backend what it is, even while the circuit breaker is open. Throws if it does not answer or refuses.
     *
     * @return array{roundTripNs: int, version: string, mode: string, role: string}
     */
    public function ping(): array
    {
        $info = $this->sized('struct shmlimit_global_info');
        $answer = $this->ffi->shmlimit_global_ping($this->handle, \FFI::addr($info));
        $this->check($answer, $this->limiter->segment);
        return [
            'roundTripNs' => Library::int($info->round_trip_ns),
            'version' => \FFI::string($info->version),
            'mode' => \FFI::string($info->mode),
            'role' => \FFI::string($info->role),
        ];
    }

    /**
     * Read the funnel of one key on the backend. Takes nothing.
     *
     * @return array{remaining: int, resetAfterNs: int, leaseNs: int}
     */
    public function peek(string $rule, string $key): array
    {
        $funnel = $this->sized('struct shmlimit_global_funnel');
        $id = $this->find($rule);
        $answer = $this->ffi->shmlimit_global_peek($this->handle, $id, $key, strlen($key), \FFI::addr($funnel));
        $this->check($answer, $this->about($rule));
        return [
            'remaining' => Library::int($funnel->remaining),
            'resetAfterNs' => Library::int($funnel->reset_after_ns),
            'leaseNs' => Library::int($funnel->lease_ns),
        ];
    }

    /** Restore all tokens of one key on the backend, or of every key of the rule, and end this host's leases of them. */
    public function reset(string $rule, ?string $key = null): void
    {
        $id = $this->find($rule);
        $answer = $this->ffi->shmlimit_global_reset($this->handle, $id, $key, strlen($key ?? ''));
        $this->check($answer, $this->about($rule));
    }

    private function find(string $rule): int
    {
        $id = $this->ffi->shmlimit_rule_find($this->here, Library::name($rule));
        return Library::check($id, $this->about($rule));
    }

    private function about(string $rule): string
    {
        return "{$this->limiter->segment}: rule $rule";
    }

    private function check(int $answer, string $subject): void
    {
        if ($answer < 0 && !in_array(-$answer, self::OF_ARGUMENTS, true)) {
            throw new Error($subject, 'backend: ' . $this->ffi->shmlimit_global_strerror($answer), -$answer);
        }
        Library::check($answer, $subject);
    }

    private function sized(string $type): \FFI\CData
    {
        $c = $this->ffi->new($type);
        $c->struct_size = \FFI::sizeof($c);
        return $c;
    }
}
