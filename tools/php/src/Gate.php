<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/**
 * Limits in front of a script.
 *
 * PHP forgets everything between two requests, so under FPM each opens the segment, which takes some 35 us and finds
 * one that was made anew by itself. Where a gate outlives a request, it looks once a second whether that happened.
 */
final class Gate
{
    private const LOOK_EVERY_NS = 1_000_000_000;

    private Limiter|Error|null $limiter = null;
    private int $lookAtNs = 0;
    private readonly bool $failOpen;
    private readonly ?Engine $engine;
    private GlobalLimiter|Error|null $source = null;
    private readonly Failures $failures;

    public function __construct(
        private readonly string $segment,
        /** Decide and count, but refuse nothing and tell clients nothing. */
        private readonly bool $dryRun = false,
        /** Of the response to who is refused. */
        private readonly int $status = 429,
        /** What to do when the limiter is out of order: let everything pass, or answer 503. */
        bool $failOpen = false,
        /** Where leases come from, with options or its URL alone. */
        #[\SensitiveParameter] Engine|string|null $engine = null,
        /** A user id whose segment is trusted besides root's and this process's user's. */
        private readonly int $owner = 0,
    ) {
        Library::checkNames($segment);
        $this->failOpen = $failOpen || $dryRun;
        $engine = is_string($engine) ? new Engine($engine) : $engine;
        $this->engine = $engine?->orElse($this->failOpen ? OnFailure::Allow : OnFailure::Deny);
        $this->failures = new Failures($this->failOpen);
    }

    /** The net of the client's address as a key. What is not an address, as on a Unix socket, is one client. */
    public static function client(): string
    {
        $address = $_SERVER['REMOTE_ADDR'] ?? '';
        try {
            return Limiter::keyIp($address);
        } catch (Error) {
            return $address;
        }
    }

    /** Ask the limits, all or none; send the fields; end a request that is refused. Returns the answer's status. */
    public function enforce(Limit ...$limits): string
    {
        $answer = $this->ask(...$limits);
        foreach ($answer->fields as $name => $value) {
            header("$name: $value");
        }
        if ($answer->refusal === 0) {
            return $answer->status;
        }
        http_response_code($answer->refusal);
        header('Content-Type: text/plain');
        exit($answer->status === 'failed' ? "the limiter is out of order\n" : "too many requests\n");
    }

    public function ask(Limit ...$limits): Answer
    {
        $wanted = array_values(array_filter($limits, fn (Limit $limit) => $limit->key !== null));
        if ($wanted === []) {
            return new Answer('unlimited');
        }
        try {
            $answer = $this->decide($this->attached(), array_map(self::fit(...), $wanted));
        } catch (\Throwable $thrown) {
            // Of whatever class: a function that this PHP lacks must not end a request that may pass.
            $this->failures->add($this->about($thrown));
            return new Answer('failed', $this->failOpen ? 0 : 503);
        }
        $subjects = array_map(fn (Limit $limit) => "$this->segment: rule $limit->rule", $wanted);
        $this->failures->over($this->segment, ...$subjects);
        return $answer;
    }

    /** @param list<Limit> $wanted */
    private function decide(Limiter $limiter, array $wanted): Answer
    {
        $results = Bundle::takeAll($limiter, $this->source, $wanted);
        $last = array_key_last($results);
        $denied = !$results[$last]->allowed;
        if ($denied && $this->dryRun) {
            return new Answer('rejected-dry-run');
        }
        // What was taken before the one that denied was given back: nobody needs to hear of that.
        $fields = [];
        for ($i = $denied ? $last : 0; $i <= $last && !$this->dryRun; $i++) {
            foreach ($limiter->fields($wanted[$i]->rule, $results[$i]) as $name => $value) {
                $fields[$name] = isset($fields[$name]) ? "$fields[$name], $value" : $value;
            }
        }
        if ($denied) {
            return new Answer('rejected', $this->status, $fields);
        }
        $rehearsed = array_filter($results, fn (Result $result) => $result->retryAfterNs > 0) !== [];
        return new Answer($rehearsed ? 'rejected-dry-run' : 'passed', 0, $fields);
    }

    private function attached(): Limiter
    {
        $now = hrtime(true);
        if ($now >= $this->lookAtNs) {
            $this->lookAtNs = $now + self::LOOK_EVERY_NS;
            if (!$this->limiter instanceof Limiter || $this->limiter->gone()) {
                $this->limiter = $this->open();
                $this->source = $this->limiter instanceof Limiter ? $this->openEngine($this->limiter) : null;
            }
        }
        return $this->limiter instanceof Limiter ? $this->limiter : throw $this->limiter;
    }

    private function open(): Limiter|Error
    {
        try {
            return new Limiter($this->segment, false, $this->owner);
        } catch (Error $error) {
            return $error;
        }
    }

    /** As an error of the segment, or of a rule in it. */
    private function about(\Throwable $thrown): Error
    {
        $known = $thrown instanceof Error && str_starts_with($thrown->subject, $this->segment);
        return $known ? $thrown : new Error($this->segment, $thrown->getMessage(), $thrown->getCode());
    }

    /** That there is none is a matter of those rules that need it. */
    private function openEngine(Limiter $limiter): GlobalLimiter|Error|null
    {
        if ($this->engine === null) {
            return null;
        }
        try {
            [$failures, $segment] = [$this->failures, $this->segment];
            $say = static fn (string $line) => $failures->say("segment $segment: $line");
            return new GlobalLimiter($limiter, $this->engine, $say);
        } catch (Error $error) {
            return $error;
        }
    }

    /** A key that is empty or too long is replaced by its digest: nobody escapes by sending one. */
    private static function fit(Limit $limit): Limit
    {
        $length = strlen($limit->key ?? '');
        if ($length >= 1 && $length <= Library::ffi()->SHMLIMIT_KEY_MAX) {
            return $limit;
        }
        return new Limit($limit->rule, hash('sha512', $limit->key ?? '', true), $limit->cost);
    }
}
