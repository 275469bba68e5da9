<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit;

/**
 * Limits in front of a script, by libshmlimit-gate, which has their logic.
 *
 * PHP passes the limits of a request with the request: a limit that the gate does not know yet makes a new gate. FFI
 * keeps nothing from one request to the next, so each request opens the segment; the extension keeps it open.
 */
final class Gate
{
    private const EINVAL = 22;
    /** That proxies write. */
    private const FIELDS = ['HTTP_X_FORWARDED_FOR' => 'X-Forwarded-For', 'HTTP_FORWARDED' => 'Forwarded', 'HTTP_X_REAL_IP' => 'X-Real-IP',
        'HTTP_CF_CONNECTING_IP' => 'CF-Connecting-IP'];
    private const ADVICE = "nginx's set_real_ip_from, Apache's RemoteIPInternalProxy or a framework's trusted proxies name proxies";

    private readonly string $base;
    private readonly bool $refusesNothing;
    private readonly ?\Closure $report;
    private readonly \ArrayObject $lines;
    private ?\FFI\CData $gate = null;
    private ?\FFI\CData $answer = null;
    private ?\FFI\CData $buffer = null;
    /** @var array<string, array{int, ?string, bool, bool, bool}> by the rule's name: its place in the spec, its rate; do requests bring limits, estimates, shares? */
    private array $known = [];
    /** @var array<int, string> the places of enforce(), which it leaves when the script ends */
    private array $kept = [];

    public function __construct(
        private readonly string $segment,
        /** Decide and count, but refuse nothing and tell clients nothing. */
        bool $dryRun = false,
        /** Of the response to a refused request. */
        int $status = 429,
        /** When the segment or a rule is missing: let everything pass, instead of answering 503. */
        bool $failOpen = false,
        /** The Redis server of LEASE rules; "-": that of the environment's SHMLIMIT_BACKEND. */
        #[\SensitiveParameter] ?string $backend = null,
        /** More words of the gate's spec, see shmlimit_gate(3): "create=yes mode=0660 x_fields". */
        #[\SensitiveParameter] string $spec = '',
        /** Gets a line of text when a problem begins or ends; default: PHP's error log. */
        ?callable $report = null,
    ) {
        Library::checkNames($segment);
        $this->refusesNothing = $failOpen || $dryRun;
        $this->report = $report === null ? null : $report(...);
        $this->lines = new \ArrayObject();
        // A thread of the library must not call PHP's functions, such as that which reports.
        if ($backend !== null && preg_match('/(^|\s)agent=/', $spec) === 0) {
            $spec = "agent=no $spec";
        }
        $this->base = self::word('segment', $segment) . ($this->refusesNothing ? 'fail=open' : 'fail=closed')
            . " status=$status " . ($dryRun ? 'dry_run ' : '') . self::word('backend', $backend) . $spec . "\n";
        try {
            $ffi = Library::ffi();
        } catch (Error) {
            return;
        }
        if (str_contains($this->base, "\0") || $ffi->shmlimit_gate_check($this->base, null) !== 0) {
            throw self::wrong($this->base, -self::EINVAL);
        }
    }

    public function __destruct()
    {
        if ($this->gate !== null) {
            Library::ffi()->shmlimit_gate_close($this->gate);
        }
    }

    /** The network of the client's address, as a key. Clients without an address, as on a Unix socket, count as one. */
    public static function client(): string
    {
        return self::net($_SERVER['REMOTE_ADDR'] ?? '');
    }

    private static function net(string $address): string
    {
        try {
            return Limiter::keyIp($address);
        } catch (Error) {
            return $address;
        }
    }

    /**
     * Ask the limits, all or none; send the header fields; end a refused request. Returns the answer's status. A limit on how
     * many at once counts the request until its script has ended.
     */
    public function enforce(Limit ...$limits): string
    {
        $answer = $this->enter(...$limits);
        if ($answer->places !== null) {
            $this->kept[] = $answer->places;
            // After the script's own functions, which may still say what was used.
            register_shutdown_function(fn () => register_shutdown_function(fn () => $this->leave(array_pop($this->kept))));
        }
        $this->forwarded($_SERVER, ...$limits);
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

    /**
     * Report once in a process that behind a proxy all clients are one: a request has a field that proxies write, and a key is the
     * address of a private or loopback peer. Where the field has that address, the web server has put it in the place of a proxy's.
     * enforce() does this with $_SERVER, after it has asked the limits. A gate that was not asked does not open the segment for it.
     *
     * @param array<string, mixed> $server $_SERVER, or what getServerParams() of PSR-7 returns
     */
    public function forwarded(array $server, Limit ...$limits): void
    {
        $peer = $server['REMOTE_ADDR'] ?? null;
        $name = array_key_first(array_intersect_key(self::FIELDS, $server));
        if (!is_string($peer) || $name === null || !is_string($server[$name]) || str_contains($server[$name], $peer)) {
            return;
        }
        $keys = array_map(fn (Limit $limit) => $limit->key, $limits);
        if (!in_array($peer, $keys, true) && !in_array(self::net($peer), $keys, true)) {
            return;
        }
        try {
            $ffi = Library::ffi();
        } catch (Error) {
            return;
        }
        if ($this->gate === null) {
            $this->place($ffi, reset($limits));
        }
        $key = $ffi->new('struct shmlimit_gate_key');
        $bytes = Library::bytes($peer);
        [$key->bytes, $key->length] = [\FFI::addr($bytes), strlen($peer)];
        $ffi->shmlimit_gate_forwarded($this->gate, \FFI::addr($key), 1, $peer, strlen($peer), self::FIELDS[$name], self::ADVICE);
        $this->pass($this->lines->exchangeArray([]));
    }

    /** Ask up to 16 limits, all or none. Throws Error if a limit or its rate is wrong. */
    public function ask(Limit ...$limits): Answer
    {
        return $this->decide($limits, false);
    }

    /** Like ask(), for a request that holds its places only until leave(). */
    public function enter(Limit ...$limits): Answer
    {
        return $this->decide($limits, true);
    }

    /** Leave the places of an Answer when its request has ended. Null is allowed. */
    public function leave(?string $places): void
    {
        if ($places === null) {
            return;
        }
        $bytes = [];
        [$held, $keys, $n] = $this->unpacked($places, $bytes);
        Library::check(Library::ffi()->shmlimit_gate_leave($this->gate, $keys, $n, \FFI::addr($held)), 'gate');
    }

    /**
     * Charge what a request has used in all, in its limits with an estimate, or give back the difference. Returns the places as
     * they are then, for leave(), or for another settle() of a request that goes on for long.
     *
     * @param array<string, ?int> $used tokens, by the rule's name; what is missing or null has used its estimate
     */
    public function settle(?string $places, array $used): ?string
    {
        if ($places === null) {
            return null;
        }
        $ffi = Library::ffi();
        $bytes = [];
        [$held, $keys, $n] = $this->unpacked($places, $bytes);
        $rules = array_keys($this->known);
        $tokens = $ffi->new("uint64_t[$ffi->SHMLIMIT_REQUESTS_MAX]");
        for ($i = 0; $i < $n; $i++) {
            $told = $used[$rules[$keys[$i]->limit] ?? ''] ?? null;
            if ($told !== null && (!is_int($told) || $told < 0)) {
                throw Library::error(-self::EINVAL, 'gate');
            }
            $tokens[$i] = $told ?? -1; // SHMLIMIT_GATE_NOT_KNOWN
        }
        Library::check($ffi->shmlimit_gate_settle($this->gate, $keys, $n, $tokens, \FFI::addr($held)), 'gate');
        return \FFI::string($ffi->cast('char *', \FFI::addr($held)), \FFI::sizeof($held)) . substr($places, \FFI::sizeof($held));
    }

    /**
     * The same of the requests that enforce() let pass, at any time until the script ends.
     *
     * @param array<string, ?int> $used
     */
    public function used(array $used): void
    {
        foreach ($this->kept as &$places) {
            $places = $this->settle($places, $used);
        }
    }

    /**
     * @param list<\FFI\CData> $bytes to be kept as long as the keys
     * @return array{\FFI\CData, \FFI\CData, int}
     */
    private function unpacked(string $places, array &$bytes): array
    {
        $ffi = Library::ffi();
        $held = $ffi->new('struct shmlimit_gate_held');
        $keys = $ffi->new("struct shmlimit_gate_key[$ffi->SHMLIMIT_REQUESTS_MAX]");
        $at = \FFI::sizeof($held);
        for ($n = 0; $at + 12 <= strlen($places) && $n < $ffi->SHMLIMIT_REQUESTS_MAX; $n++) {
            [, $keys[$n]->limit, $length, $rate] = unpack('L3', $places, $at);
            $bytes[] = $c = Library::bytes(substr($places, $at + 12, $length));
            [$keys[$n]->bytes, $keys[$n]->length] = [\FFI::addr($c), $length];
            if ($rate > 0) {
                $bytes[] = $c = Library::bytes(substr($places, $at + 12 + $length, $rate));
                [$keys[$n]->rate, $keys[$n]->rate_length] = [$ffi->cast('char *', \FFI::addr($c)), $rate];
            }
            $at += 12 + $length + $rate;
        }
        if ($this->gate === null || $n === 0 || $at !== strlen($places)) {
            throw Library::error(-self::EINVAL, 'gate');
        }
        \FFI::memcpy($held, $places, \FFI::sizeof($held));
        return [$held, $keys, $n];
    }

    /** @param array<Limit> $limits */
    private function decide(array $limits, bool $enters): Answer
    {
        $wanted = array_values(array_filter($limits, fn (Limit $limit) => $limit->key !== null));
        if ($wanted === []) {
            return new Answer('unlimited');
        }
        try {
            $ffi = Library::ffi();
        } catch (Error $error) {
            $what = $this->refusesNothing ? 'pass without a limit' : 'are refused';
            $this->pass(["segment $this->segment: {$error->getMessage()}: requests that need it $what"]);
            return new Answer('failed', $this->refusesNothing ? 0 : 503);
        }
        $keys = $ffi->new('struct shmlimit_gate_key[' . count($wanted) . ']');
        $bytesHeld = [];
        $packed = '';
        foreach ($wanted as $i => $limit) {
            $cost = $limit->estimate ?? $limit->cost;
            if ($cost < 1 || $i === $ffi->SHMLIMIT_REQUESTS_MAX) {
                throw Library::error(-self::EINVAL, $limit->rule);
            }
            // No client escapes its limit by an empty key.
            $bytes = $limit->key === '' ? "\0" : $limit->key;
            $bytesHeld[] = $c = Library::bytes($bytes);
            $keys[$i]->limit = $this->place($ffi, $limit);
            $keys[$i]->length = strlen($bytes);
            $keys[$i]->bytes = \FFI::addr($c);
            $keys[$i]->cost = $cost;
            $keys[$i]->share = self::share($limit);
            if ($limit->limit !== null) {
                $bytesHeld[] = $c = Library::bytes($limit->limit);
                $keys[$i]->rate = $ffi->cast('char *', \FFI::addr($c));
                $keys[$i]->rate_length = strlen($limit->limit);
            }
            $packed .= pack('L3', $keys[$i]->limit, strlen($bytes), strlen($limit->limit ?? '')) . $bytes . $limit->limit;
        }
        $answer = \FFI::addr($this->prepared($ffi));
        $held = $ffi->new('struct shmlimit_gate_held');
        $held->struct_size = \FFI::sizeof($held);
        $error = $enters
            ? $ffi->shmlimit_gate_enter($this->gate, $keys, count($wanted), $answer, \FFI::addr($held))
            : $ffi->shmlimit_gate_ask($this->gate, $keys, count($wanted), $answer);
        if ($error < 0) {
            throw Library::error($error, $this->segment);
        }
        $places = $held->count + $held->bill_count > 0 ? \FFI::string($ffi->cast('char *', \FFI::addr($held)), \FFI::sizeof($held)) . $packed : null;
        try {
            $this->pass($this->lines->exchangeArray([]));
        } catch (\Throwable $thrown) {
            $this->leave($places);
            throw $thrown;
        }
        return $this->read($places);
    }

    private function prepared(\FFI $ffi): \FFI\CData
    {
        if ($this->answer === null) {
            $this->buffer = $ffi->new("char[$ffi->SHMLIMIT_GATE_BUFFER]");
            $this->answer = $ffi->new('struct shmlimit_gate_answer');
            $this->answer->struct_size = \FFI::sizeof($this->answer);
            $this->answer->buffer_size = \FFI::sizeof($this->buffer);
            $this->answer->buffer = $ffi->cast('char *', \FFI::addr($this->buffer));
        }
        return $this->answer;
    }

    private function read(?string $places): Answer
    {
        $statuses = ['unlimited', 'passed', 'rejected', 'rejected-dry-run', 'failed', 'delayed', 'delayed-dry-run'];
        $fields = [];
        for ($i = 0; $i < $this->answer->field_count; $i++) {
            $field = $this->answer->fields[$i];
            $name = is_string($field->name) ? $field->name : \FFI::string($field->name, $field->name_length);
            $value = is_string($field->value) ? $field->value : \FFI::string($field->value, $field->value_length);
            $fields[$name] = isset($fields[$name]) ? "$fields[$name], $value" : $value;
        }
        return new Answer(
            $statuses[$this->answer->outcome],
            $this->answer->status,
            $fields,
            Library::int($this->answer->remaining),
            Library::int($this->answer->retry_after_ns),
            $places,
        );
    }

    /** The place of a limit's rule in the spec. */
    private function place(\FFI $ffi, Limit $limit): int
    {
        [$place, $rate, $isGcra, $isSettled, $isShared] = $this->known[$limit->rule] ?? [null, null, false, false, false];
        $brings = $limit->limit !== null;
        $estimates = $limit->estimate !== null;
        $shares = $limit->share !== null;
        if ($place === null || ($limit->rate !== null && $limit->rate !== $rate) || ($brings && !$isGcra) || ($estimates && !$isSettled) || ($shares && !$isShared)) {
            $place ??= count($this->known);
            $known = [$place, $limit->rate ?? $rate, $isGcra || $brings, $isSettled || $estimates, $isShared || $shares];
            $this->renew($ffi, [$limit->rule => $known] + $this->known);
        }
        return $place;
    }

    /** In thousandths. */
    private static function share(Limit $limit): int
    {
        $thousandths = round(($limit->share ?? 0) * 1000);
        if ($limit->share !== null && !($thousandths >= 1 && $thousandths <= 1e9)) {
            throw Library::error(-self::EINVAL, $limit->rule);
        }
        return (int) $thousandths;
    }

    /** @param array<string, array{int, ?string, bool, bool, bool}> $known */
    private function renew(\FFI $ffi, array $known): void
    {
        uasort($known, fn (array $a, array $b) => $a[0] <=> $b[0]);
        $spec = $this->base;
        foreach ($known as $rule => [, $rate, $isGcra, $isSettled, $isShared]) {
            $spec .= self::word('rule', (string) $rule) . self::word('rate', $rate);
            $spec .= $isGcra ? self::word('algorithm', 'gcra') : '';
            // What a request takes comes with it.
            $spec .= $isSettled ? 'estimate=1 ' : '';
            $spec .= $isShared ? 'share=1 ' : '';
        }
        $gate = $ffi->new('struct shmlimit_gate *');
        $error = str_contains($spec, "\0") ? -self::EINVAL : $ffi->shmlimit_gate_open($spec, \FFI::addr($gate));
        if ($error < 0) {
            throw self::wrong($spec, $error);
        }
        // PHP keeps the function until the request ends, so it must not hold this object.
        $lines = $this->lines;
        $note = static function (?\FFI\CData $arg, int $bad, string $text) use ($lines): void {
            $lines->append($text);
        };
        // The thread of agent=thread would call the function too, and PHP's functions are for its own thread.
        if (preg_match('/(^|\s)agent=thread/', $this->base) === 0) {
            $ffi->shmlimit_gate_report($gate, $note, null);
        }
        if ($this->gate !== null) {
            $ffi->shmlimit_gate_report($this->gate, null, null);
            $ffi->shmlimit_gate_close($this->gate);
        }
        [$this->gate, $this->known] = [$gate, $known];
    }

    /** Each request has its own gate here, so APCu, if it is loaded, remembers what was logged in the last minute. */
    private function pass(array $lines): void
    {
        foreach ($lines as $line) {
            if ($this->report !== null) {
                ($this->report)($line);
            } elseif (!function_exists('apcu_add') || !apcu_enabled() || apcu_add("shmlimit-said:$line", true, 60)) {
                function_exists('error_log') && error_log($line);
            }
        }
    }

    private static function word(string $name, ?string $value): string
    {
        return $value === null ? '' : $name . '="' . strtr($value, ['"' => '\\"', '\\' => '\\\\']) . '" ';
    }

    private static function wrong(string $spec, int $error): Error
    {
        $ffi = Library::ffi();
        $wrong = $ffi->new('struct shmlimit_gate_wrong');
        $wrong->struct_size = \FFI::sizeof($wrong);
        if (str_contains($spec, "\0") || $ffi->shmlimit_gate_check($spec, \FFI::addr($wrong)) === 0) {
            return Library::error($error, 'gate');
        }
        $word = substr($spec, $wrong->offset, $wrong->length);
        return new Error("gate: $word", \FFI::string($wrong->text), -$error);
    }

    /** The spec may contain the backend's password, which no dump may show. */
    public function __debugInfo(): array
    {
        return ['segment' => $this->segment];
    }
}
