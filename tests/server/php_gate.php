<?php
// The laws of Shmlimit\Gate.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

require __DIR__ . '/tap.php';
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
    for ($tries = 0; $tries < 500; $tries++) {
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
is(asked($gate, 1, new Limit('r', 'other')), 'passed', 'of each key');
is(asked($gate, 3, new Limit('r', null)), 'unlimited unlimited unlimited', 'who has no key is not limited');
is(asked($gate, 1, new Limit('r', 'dear', 3)), 'rejected', 'a request has its cost');

$two = [new Limit('r', 'f'), new Limit('s', 'f')];
is($gate->ask(...$two)->fields, [
    'RateLimit-Policy' => '"r";q=2;w=7200, "s";q=1;w=3600',
    'RateLimit' => '"r";r=1;t=3600, "s";r=0;t=3600',
], 'its fields are those of each limit');
$answer = $gate->ask(...$two);
is($answer->refusal . ' ' . $answer->fields['RateLimit-Policy'], '429 "s";q=1;w=3600', 'or of the one that refused');
ok((bool) preg_match('/^3[56]\d\d$/', $answer->fields['Retry-After']), 'which says when to come again');
is((new Gate($segment, status: 503))->ask(...$two)->refusal, 503, 'the status of a refusal can be chosen');

foreach (['', str_repeat('x', 1025)] as $key) {
    is(asked($gate, 2, new Limit('s', $key)), 'passed rejected', strlen($key) . ' bytes of key are limited');
}
$_SERVER['REMOTE_ADDR'] = '2001:db8::1';
$net = Gate::client();
$_SERVER['REMOTE_ADDR'] = '2001:db8::2';
is(Gate::client(), $net, 'a client is his net');
$_SERVER['REMOTE_ADDR'] = 'unix:';
is(Gate::client(), 'unix:', 'who has no address is one client');

$dry = new Gate($segment, dryRun: true);
is(asked($dry, 2, new Limit('s', 'dry')), 'passed rejected-dry-run', 'a dry run decides');
$answer = $dry->ask(new Limit('s', 'dry'));
is([$answer->refusal, $answer->fields], [0, []], 'and refuses nobody');
run('shmlimit', 'rule', 'set', $segment, 's', '--mode', 'dry-run');
is(asked($gate, 2, new Limit('s', 'drier')), 'passed rejected-dry-run', 'so does a rule in a dry run');
is($gate->ask(new Limit('s', 'drier'))->fields, [], 'of which nothing is told');

is(logged(), [], 'nothing was logged');
is(asked($gate, 3, new Limit('t', 'k')), 'failed failed failed', 'a rule that is missing fails');
is(logged(), ["segment $segment: rule t: no such rule: requests that need it are refused"], 'which is told once');
run('shmlimit', 'rule', 'set', $segment, 't', '--capacity', '1', '--rate', '1/h');
is(asked($gate, 2, new Limit('t', 'k')), 'passed rejected', 'until it is there');
is(logged(), ["segment $segment: rule t: in order again; requests that were refused: 3"], 'which is told, too');

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
is(asked(new Gate($segment), 1, new Limit('s', 'k')), 'failed', 'a segment that is missing fails');
is((new Gate($segment))->ask(new Limit('s', 'k'))->refusal, 503, 'which refuses all');
is((new Gate($segment, failOpen: true))->ask(new Limit('s', 'k'))->refusal, 0, 'or lets all pass');
is((new Gate($segment, dryRun: true))->ask(new Limit('s', 'k'))->refusal, 0, 'as a dry run always does');
ok(until(fn () => asked($gate, 1, new Limit('s', 'k')) === 'failed'), 'a gate that had it open sees it');
logged();
create();
ok(until(fn () => asked($gate, 1, new Limit('s', 'anew')) === 'passed'), 'and opens one that is made anew');
is(asked($gate, 1, new Limit('s', 'anew')), 'rejected', 'with its limits');
is(count(preg_grep('/in order again; requests that were refused: \d+$/', logged())), 1, 'and tells so');

file_put_contents("/dev/shm/$segment", substr_replace(file_get_contents("/dev/shm/$segment"), "\xff", 8, 1));
is(asked(new Gate($segment), 1, new Limit('s', 'k')), 'failed', 'a segment of another version fails');
ok((bool) preg_grep('/version/', logged()), 'for that reason');
if (posix_geteuid() === 0) {
    run('shmlimit', 'destroy', $segment);
    create();
    chown("/dev/shm/$segment", 12345);
    is(asked(new Gate($segment), 1, new Limit('s', 'k')), 'failed', 'a segment that a stranger made is not obeyed');
    is(asked(new Gate($segment, owner: 12345), 1, new Limit('s', 'k')), 'passed', 'unless the gate names that owner');
}
done_testing();
