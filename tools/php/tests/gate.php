<?php
// The laws of Shmlimit\Gate.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

require __DIR__ . '/tap.php';
require __DIR__ . '/ends.php';
require getenv('BUILD') . '/php/Shmlimit/preload.php';

use Shmlimit\{Gate, Limit};

$segment = getenv('SEGMENT');
$log = getenv('TMP') . '/errors';
ini_set('error_log', $log);

function run(string ...$arguments): void
{
    exec(implode(' ', array_map(escapeshellarg(...), $arguments)), $output, $rc);
    $rc === 0 || throw new RuntimeException(implode("\n", $output));
}

function create(): void
{
    global $segment;

    run('shmlimit', 'create', $segment, '--slots', '64');
    run('shmlimit', 'rule', 'set', $segment, 'r', '--capacity', '2', '--rate', '1/h');
    run('shmlimit', 'rule', 'set', $segment, 's', '--capacity', '1', '--rate', '1/h');
}

/** What becomes of as many requests. */
function asked(Gate $gate, int $times, Limit ...$limits): string
{
    return implode(' ', array_map(fn () => $gate->ask(...$limits)->status, range(1, $times)));
}

/** The lines that were logged since the last time, without their dates. */
function logged(): array
{
    global $log;
    static $seen = 0;

    $lines = file_exists($log) ? file($log, FILE_IGNORE_NEW_LINES) : [];
    $new = array_slice($lines, $seen);
    $seen = count($lines);
    return preg_replace('/^\[.*?\] /', '', $new);
}

/** Until the gate looks again: nothing but its own clock can say so. */
function until(callable $true): bool
{
    for ($tries = 0; $tries < 6000; $tries++) {
        if ($true()) {
            return true;
        }
        usleep(10000);
    }
    return false;
}

create();
$gate = new Gate($segment);
$limit = new Limit('r', 'k');
is(asked($gate, 3, $limit), 'passed passed rejected', 'a gate lets the capacity pass, and refuses the rest');
is(asked($gate, 1, new Limit('r', 'other')), 'passed', 'a gate lets the capacity of each key pass');
is(asked($gate, 3, new Limit('r', null)), 'unlimited unlimited unlimited', 'a request without a key is not limited');
is(asked($gate, 1, new Limit('r', 'dear', 3)), 'rejected', 'a request has its cost');

$two = [new Limit('r', 'f'), new Limit('s', 'f')];
is($gate->ask(...$two)->fields, [
    'RateLimit-Policy' => '"r";q=2;w=7200, "s";q=1;w=3600',
    'RateLimit' => '"r";r=1;t=3600, "s";r=0;t=3600',
], 'an answer has the header fields of each limit');
$answer = $gate->ask(...$two);
is($answer->refusal . ' ' . $answer->fields['RateLimit-Policy'], '429 "s";q=1;w=3600', 'a refusal has the header fields of the limit that refused');
ok((bool) preg_match('/^3[56]\d\d$/', $answer->fields['Retry-After']), 'a refusal says when to come again');
is((new Gate($segment, status: 503))->ask(...$two)->refusal, 503, 'the status of a refusal can be chosen');

foreach (['', str_repeat('x', 1025)] as $key) {
    is(asked($gate, 2, new Limit('s', $key)), 'passed rejected', strlen($key) . ' bytes of key are limited');
}
$_SERVER['REMOTE_ADDR'] = '2001:db8::1';
$net = Gate::client();
$_SERVER['REMOTE_ADDR'] = '2001:db8::2';
is(Gate::client(), $net, 'a client is its network');
$_SERVER['REMOTE_ADDR'] = 'unix:';
is(Gate::client(), 'unix:', 'clients without an address count as one');

$dry = new Gate($segment, dryRun: true);
is(asked($dry, 2, new Limit('s', 'dry')), 'passed rejected-dry-run', 'a dry run decides');
$answer = $dry->ask(new Limit('s', 'dry'));
is([$answer->refusal, $answer->fields], [0, []], 'a dry run refuses nothing and sends no fields');
run('shmlimit', 'rule', 'set', $segment, 's', '--mode', 'dry-run');
is(asked($gate, 2, new Limit('s', 'drier')), 'passed rejected-dry-run', 'a rule in a dry run decides');
is($gate->ask(new Limit('s', 'drier'))->fields, [], 'a rule in a dry run has no header fields');

is(logged(), [], 'nothing was logged');
is(asked($gate, 3, new Limit('t', 'k')), 'failed failed failed', 'a rule that is missing fails');
is(logged(), ["segment $segment: rule t: no such rule: requests that need it are refused"], 'a missing rule is reported once');
run('shmlimit', 'rule', 'set', $segment, 't', '--capacity', '1', '--rate', '1/h');
is(asked($gate, 2, new Limit('t', 'k')), 'passed rejected', 'a rule that was missing decides once it exists');
$over = [];
until(function () use ($gate, $limit, &$over) {
    $gate->ask($limit);
    return [] !== $over = [...$over, ...logged()];
});
is($over, ["segment $segment: rule t: in order again; requests that were refused: 3"], 'the end of that is told, too');

/** Is it refused? */
function refused(callable $call): bool
{
    try {
        $call();
        return false;
    } catch (Shmlimit\Error) {
        return true;
    }
}

$c = Shmlimit\Library::ffi();
$names = ['', '.a', 'a.', 'a/b', '~', '~a', '~~a', "a\n", str_repeat('a', 63), str_repeat('a', 64), str_repeat('a', 255),
    str_repeat('a', 256), ...array_map(fn (int $byte) => 'a' . chr($byte), range(1, 255))];
$differ = array_filter($names, fn (string $name) => refused(fn () => new Gate($name)) !== ($c->shmlimit_check_names($name, null) < 0)
    || refused(fn () => new Limit($name, 'k')) !== ($c->shmlimit_check_names(null, $name) < 0));
is($differ, [], 'a gate refuses the names that no segment can have, and a limit those that no rule can have');
ok(refused(fn () => new Gate("a\0b")) && refused(fn () => new Limit("a\0b", 'k')), 'among them those with a NUL');

run('shmlimit', 'destroy', $segment);
$fails = new Limit('s', 'k');
ok(until(fn () => asked($gate, 1, $fails) === 'failed'), 'a gate sees within a second or two that its segment is gone');
is($gate->ask($fails)->refusal, 503, 'a gate refuses all requests while its segment is missing');
is((new Gate($segment, failOpen: true))->ask($fails)->refusal, 0, 'a gate that fails open lets all pass');
ok(until(fn () => (new Gate($segment, dryRun: true))->ask($fails)->status === 'failed'), 'a dry run sees it, too');
is((new Gate($segment, dryRun: true))->ask($fails)->refusal, 0, 'a dry run refuses nothing while its segment is missing');
logged();
create();
ok(until(fn () => asked($gate, 1, new Limit('s', 'again')) === 'passed'), 'a gate opens a segment that is created again');
is(asked($gate, 1, new Limit('s', 'again')), 'rejected', 'the limits of a segment that is created again hold');
is(count(preg_grep('/in order again; requests that were refused: \d+$/', logged())), 1, 'the end of a problem is reported once');

$segment .= '.later';
create();
$file = fopen(getenv("SHM") . $segment, "r+");
fseek($file, 8);
fwrite($file, "\xff");
fclose($file);
is(asked(new Gate($segment), 1, $fails), 'failed', 'a gate fails on a segment of another version');
ok((bool) preg_grep('/version/', logged()), 'that is what it reports');
if (posix_geteuid() === 0) {
    $segment .= '.theirs';
    create();
    chown(getenv('SHM') . $segment, 'nobody');
    is(asked(new Gate($segment), 1, $fails), 'failed', 'a gate does not trust a segment of another user');
    is(asked(new Gate($segment, spec: 'owner=nobody'), 1, $fails), 'passed', 'a gate trusts the owner that its spec names');
}

logged();
$segment .= '.made';
$lines = [];
$made = new Gate($segment, spec: 'create=yes x_fields', report: function (string $line) use (&$lines) {
    $lines[] = $line;
});
$answer = $made->ask(new Limit('login', '203.0.113.9', rate: '5/hour'));
is([$answer->status, $answer->remaining], ['passed', 4], 'with create=yes a gate creates the segment and the rule');
is($answer->fields['X-RateLimit-Limit'], '5', 'the spec of a gate chooses its header fields');
$answer = $made->ask(new Limit('login', '203.0.113.9', 5));
is([$answer->status, $answer->remaining], ['rejected', 4], 'a rule keeps the rate that was given once');
ok($answer->retryAfterNs > 0, 'a rejected request is told how long to wait');
$made->ask(new Limit('login', '203.0.113.9', rate: '7/hour'));
is($made->ask(new Limit('login', 'user:42'))->remaining, 6, 'another rate changes the rule');
is($lines, [], 'creating is nothing to report');
foreach (['0/s' => 0, 'block' => 0, 'unlimited' => 9, 'off' => 9, '3/day' => 3] as $rate => $passes) {
    $answers = array_map(fn () => $made->ask(new Limit('zero', 'k', rate: $rate))->refusal, range(1, 9));
    is(count(array_keys($answers, 0)), $passes, "the rate $rate lets $passes of 9 requests pass");
}
is($made->ask(new Limit('absent', 'k'))->status, 'failed', 'a rule without a rate is not created');
is(count(preg_grep('/rule absent: no such rule/', $lines)), 1, 'a gate reports a problem to the function that it was given');
is(logged(), [], 'a problem that went to the function is not in the log');

foreach (['five a day', "1/s\" rule=x", "5/hour\0"] as $rate) {
    ok(refused(fn () => $made->ask(new Limit('wrong', 'k', rate: $rate))), "the rate " . json_encode($rate) . ' is refused');
}
ok(refused(fn () => new Gate($segment, spec: 'create=maybe')), 'a word of a spec that is wrong is refused');
ok(refused(fn () => new Gate($segment, status: 42)), 'a status that is none of a refusal is refused');
ok(refused(fn () => $made->ask(new Limit('login', 'k', 0))), 'a request takes 1 token or more');
ok(refused(fn () => $made->ask(...array_fill(0, 17, new Limit('login', 'k')))), 'a request has up to 16 limits');
is($made->ask(new Limit('login', 'user:42'))->remaining, 5, 'a gate goes on after an error');
for ($i = 0; $i < 70; $i++) {
    $made->ask(new Limit("r$i", 'k', rate: '1/hour'));
}
is($made->ask(new Limit('r1', 'k'))->status, 'rejected', 'a gate learns one limit after the other');
ok(!preg_grep('/not in force/', $lines), 'the segment gets room for more rules than it was made for');

$segment .= '.places';
$lines = [];
$gate = new Gate("$segment.plans", spec: 'create=yes', report: function (string $line) use (&$lines) { $lines[] = $line; });
$ask = fn (string $key, ?string $limit) => $gate->ask(new Limit('plans', $key, 1, '2/day', $limit))->status;
$passed = fn (string $key, ?string $limit) => count(array_filter(array_map(fn () => $ask($key, $limit), range(1, 5)), fn ($status) => $status === 'passed'));
is([$passed('a', '3/day'), $passed('b', 'block'), $passed('c', 'unlimited'), $passed('d', null), $passed('e', 'many'), $passed('f', '')], [3, 0, 5, 2, 2, 2],
    'a request may bring its limit, and has the rate of the rule where it cannot be read');
is($gate->ask(new Limit('plans', 'g', limit: '7/hour'))->fields['RateLimit-Policy'], '"plans";q=7;w=3600', 'the header field has that limit');
is($gate->ask(new Limit('none', 'g', limit: '7/hour'))->status, 'passed', 'a rule that requests bring limits for needs no rate');
is(count(preg_grep('/rule plans: the rate "many" of a request: .*: the rule.s own limit decides/', $lines)), 1, 'that it cannot be read is reported once');
$returned = null;
$gate = new Gate("$segment.plans", report: function () use (&$returned) {
    $object = new stdClass();
    $returned = WeakReference::create($object);
    return $object;
});
$gate->ask(new Limit('absent', 'g'));
is([$returned instanceof WeakReference, $returned?->get()], [true, null], 'what the function that is given lines returns is freed');
unlink(getenv('SHM') . "$segment.plans");

$gate = new Gate($segment, spec: 'create=yes');
$hold = fn (?string $key = 'all') => new Limit('hold', $key, rate: '2 at once for 1h');
$user = fn (string $key) => new Limit('user', $key, rate: '5/day');
$free = fn (string $key = 'all') => (new Shmlimit\Limiter($segment))->peek('hold', $key)->remaining;
$answers = [$gate->enter($hold(), $user('a')), $gate->enter($hold(), $user('a')), $gate->enter($hold(), $user('b'))];
is(array_map(fn ($answer) => [$answer->status, is_string($answer->places)], $answers),
    [['passed', true], ['passed', true], ['rejected', false]], 'enter gives as many places as there are');
is($answers[2]->fields, ['RateLimit-Policy' => '"hold";q=2;qu="concurrent-requests"', 'RateLimit' => '"hold";r=0'],
    'a request without a place is told how many at once');
is((new Shmlimit\Limiter($segment))->peek('user', 'b')->remaining, 5, 'a request without a place takes nothing of another limit');
$gate->leave($answers[0]->places);
$gate->leave($answers[0]->places);
$gate->leave(null);
is($free(), 1, 'a place is left once');
is([$gate->ask($hold(), $user('c'))->places, $free()], [null, 0], 'by ask a request keeps its place for the period');
$gate->leave($answers[1]->places);
is([$gate->enter($hold(null), $user('c'))->places, $free()], [null, 1], 'a request without a limit on how many at once holds no place');
is([$gate->enter($hold(), new Limit('user', 'a', 5))->status, $free()], ['rejected', 1], 'a request that another limit denies leaves its places');
$wrong = ['', 'k', str_repeat("\0", 400), substr($answers[0]->places, 0, -1), "{$answers[0]->places}k", $answers[0]->places . str_repeat("\xff", 8)];
foreach ($wrong as $i => $places) {
    ok(refused(fn () => $gate->leave($places)), "leave refuses what enter did not give, case $i");
}
$key = str_repeat('k', 3000);
for ($i = 0; $i < 3; $i++) {
    $answer = $gate->enter($hold($key));
    $gate->leave($answer->places);
}
is($answer->status, 'passed', 'a place of a long key is left');

// Places that tenants share.
$enter = fn (string $tenant, ?float $share = 1) => $gate->enter(new Limit('all', 'all', rate: '4 at once for 1h'), new Limit('tenants', $tenant, share: $share));
$entered = [$enter('a'), $enter('a'), $enter('a'), $enter('b'), $enter('c', 100), $enter('d', 100)];
is(array_column($entered, 'status'), ['passed', 'passed', 'rejected', 'passed', 'passed', 'rejected'], 'a key holds at most its share of the places that are free');
foreach ($entered as $one) {
    $gate->leave($one->places);
}
is((new Shmlimit\Limiter($segment))->peek('all', 'all')->remaining, 4, 'places of a share are left');
foreach ([0, -1, 0.0001, 1e7, NAN] as $share) {
    ok(refused(fn () => $enter('a', $share)), "a share of $share is refused");
}
is($gate->enter(new Limit('alone', 'a', share: 1))->status, 'failed', 'a share of no limit fails');

// What a request turns out to cost.
$tokens = fn (string $key, ?int $estimate = 50, ?string $limit = null) => new Limit('tokens', $key, rate: '1/day burst 1000', limit: $limit, estimate: $estimate);
$left = fn (string $key, ?string $limit = null) => (new Shmlimit\Limiter($segment))->peek('tokens', $key, 1, $limit)->remaining;
$answer = $gate->enter($tokens('a'), $user('d'));
is([$answer->status, $left('a')], ['passed', 950], 'a request takes its estimate before');
$places = $gate->settle($answer->places, ['tokens' => 70, 'user' => 4]);
is([$left('a'), (new Shmlimit\Limiter($segment))->peek('user', 'd')->remaining], [930, 4], 'what it used more is charged, in limits with an estimate');
$places = $gate->settle($places, ['tokens' => 70]);
is($left('a'), 930, 'to settle the same once more changes nothing');
$places = $gate->settle($places, ['tokens' => 20]);
is($left('a'), 980, 'what it used less is given back');
$places = $gate->settle($places, ['tokens' => null, 'other' => 7]);
is($left('a'), 980, 'what is not known changes nothing');
$gate->leave($places);
is([$left('a'), $gate->settle(null, [])], [980, null], 'to leave does not settle');
is([$gate->ask($tokens('b'))->places, $left('b')], [null, 950], 'by ask a request pays its estimate');
$answer = $gate->enter($tokens('c', 10), $hold('c'));
$gate->leave($gate->settle($answer->places, ['tokens' => 2000]));
is([$gate->enter($tokens('c', 1))->status, $free('c')], ['rejected', 2], 'a key that used too much is refused until that is paid');
foreach ([-1, -2, '5', 1.5, []] as $i => $wrong) {
    ok(refused(fn () => $gate->settle($gate->enter($tokens('d', 1))->places, ['tokens' => $wrong])), "a use that is no number of tokens is refused, case $i");
}
ok(refused(fn () => $gate->ask($tokens('d', 0))), 'an estimate is 1 or more');
ok(refused(fn () => $gate->settle('k', ['tokens' => 1])), 'settle refuses what enter did not give');
$plans = fn (?string $limit) => new Limit('metered', 'k', rate: '1/hour burst 100', limit: $limit, estimate: 10);
$gate->settle($gate->enter($plans('10/hour burst 500'))->places, ['metered' => 200]);
is($gate->ask($plans('10/hour burst 500'))->remaining, 290, 'the limit that a request brought is charged');

$bounded = new Gate($segment, spec: 'create=yes charge_max=60s');
$metered = new Limit('bounded', 'k', rate: '1/s', estimate: 1);
$bounded->leave($bounded->settle($bounded->enter($metered)->places, ['bounded' => 10 ** 12]));
ok($bounded->ask($metered)->retryAfterNs <= 61 * 10 ** 9, 'a wrong amount refuses a key for as long as charge_max says');

$load = "class_exists(Shmlimit\\Gate::class) || require getenv('BUILD') . '/php/Shmlimit/preload.php';";
foreach (ENDS as $end) {
    $printed = ended($end, "$load
        (fn () => (new Shmlimit\\Gate('$segment'))->enforce(new Shmlimit\\Limit('hold', 'script')))();
        echo (new Shmlimit\\Limiter('$segment'))->peek('hold', 'script')->remaining;");
    is([$printed, $free('script')], ['1', 2], "a script holds its place until it ends, here by: $end");
}
$rest = 1000;
foreach (ENDS as $end) {
    ended($end, "$load
        \$gate = new Shmlimit\\Gate('$segment');
        \$gate->used(['tokens' => 5]);
        \$gate->enforce(new Shmlimit\\Limit('tokens', 'e', estimate: 100), new Shmlimit\\Limit('hold', 'script'));
        register_shutdown_function(fn () => \$gate->used(['tokens' => 31]));
        \$gate->used(['tokens' => 7]);");
    is([$left('e'), $free('script')], [$rest -= 31, 2], "a script is charged once, what it said last, when it ends by: $end");
}
done_testing();
