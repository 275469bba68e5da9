<?php
// The laws of Shmlimit\GlobalLimiter, and of a Gate that has an engine.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

require __DIR__ . '/tap.php';
require getenv('BUILD') . '/php/Shmlimit/preload.php';

use Shmlimit\{Engine, Error, Gate, GlobalLimiter, Limit, Limiter, OnFailure, Result};

$segment = getenv('SEGMENT') . '.here';
$url = getenv('ENGINE');
$nobody = 'unix://' . getenv('TMP') . '/nobody';
$log = getenv('TMP') . '/errors';
ini_set('error_log', $log);

/** No test depends on speed; leases last as long, so that what is given back is still there. */
function patient(string $url, mixed ...$options): Engine
{
    $times = ['deadlineNs' => 5 * 10 ** 9, 'leaseNs' => 10 ** 10, 'openNs' => 3600 * 10 ** 9];
    return new Engine($url, ...[...$times, ...$options]);
}

/** The errno of what is thrown, and what it says. */
function thrown(callable $call): array
{
    try {
        $call();
        return [0, ''];
    } catch (Error $error) {
        return [$error->getCode(), $error->getMessage()];
    }
}

/** @return list<Limit> one of each rule, of this key */
function limits(string $key, string ...$rules): array
{
    return array_map(fn (string $rule) => new Limit($rule, $key), $rules);
}

function allowed(callable $take, int $times): int
{
    return array_sum(array_map(fn () => (int) $take()->allowed, range(1, $times)));
}

$limiter = new Limiter($segment);
is(str_contains(file_get_contents('/proc/self/maps'), 'libshmlimit-global'), false, 'who has no engine');
$global = new GlobalLimiter($limiter, patient($url));
is(str_contains(file_get_contents('/proc/self/maps'), 'libshmlimit-global'), true, 'does not load the library for it');

$other = new GlobalLimiter(new Limiter(getenv('SEGMENT') . '.there'), patient($url));
$both = 0;
for ($i = 0; $i < 20; $i++) {
    $both += (int) $global->take('first', 'both')->allowed + (int) $other->take('first', 'both')->allowed;
}
is($both, 5, 'hosts with one engine have one limit');
is($global->take('local', 'own')->remaining, 2, 'a rule that is no lease is this host\'s');
is($limiter->peek('local', 'own')->remaining, 2, 'and its funnel the same');

$answers = $global->takeMany([...limits('many', 'second', 'second', 'second', 'absent'), new Limit('first', '')]);
is(array_map(fn (Result $r) => $r->allowed, array_slice($answers, 0, 3)), [true, true, false], 'many are decided');
is([$answers[3]->getCode(), $answers[4]->getCode()], [3, 90], 'each by itself, and an error is its own');
is(thrown(fn () => $global->takeMany(limits('many', ...array_fill(0, 65, 'first'))))[0], 22, 'there may be 64');

is([$global->ping()['mode'], $global->ping()['role']], ['standalone', 'master'], 'an engine says what it is');
$global->take('first', 'reset', 5);
is($global->peek('first', 'reset')['remaining'], 0, 'and what it has');
$global->reset('first', 'reset');
is($global->take('first', 'reset', 5)->allowed, true, 'it is filled up again');
$global->reset('first');
is($global->take('first', 'reset', 5)->allowed, true, 'and so are all of a rule');

$error = thrown(fn () => new GlobalLimiter($limiter, 'http://host'));
ok($error[0] === 22 && str_contains($error[1], "engine's URL: scheme: must be redis://"), 'what is wrong is said');
is(thrown(fn () => new GlobalLimiter($limiter, patient($url, deadlineNs: 1)))[0], 22, 'an option has its range');
is(thrown(fn () => new GlobalLimiter($limiter, patient($url, deadlineNs: -1)))[0], 22, 'and is never wrapped');
is(thrown(fn () => $global->take('absent', 'k'))[0], 3, 'a rule must be there');
is(thrown(fn () => $global->take('first', ''))[0], 90, 'a key must have a byte');
is(thrown(fn () => $global->take('first', 'k', -1))[0], 22, 'there are no fewer tokens than none');
is(thrown(fn () => $global->peek('local', 'k'))[0], 95, 'an engine has nothing of a rule that is no lease');
is(str_contains(print_r(new Engine('redis://:secret@host'), true), 'secret'), false, 'no dump has the password');

$told = [];
$gone = new GlobalLimiter($limiter, patient($nobody), function (string $line) use (&$told) {
    $told[] = $line;
});
$error = thrown(fn () => $gone->ping());
ok($error[0] === 2 && str_contains($error[1], 'engine: no connection (No such file'), 'an engine that is gone is one');
is(count(preg_grep('/^engine .*: no connection \(No such file or directory\): must be /', $told)), 1, 'and told');
$throws = new GlobalLimiter($limiter, patient("$nobody.else"), fn (string $line) => throw new LogicException($line));
is($throws->take('first', 'thrown')->allowed, false, 'who throws when he is told ends nothing');
foreach ([[OnFailure::Deny, 0], [OnFailure::Allow, 10], [OnFailure::Local, 2]] as [$onFailure, $count]) {
    $without = new GlobalLimiter($limiter, patient($nobody, onFailure: $onFailure, localMilli: 400));
    $passed = allowed(fn () => $without->take('first', 'without'), 10);
    is($passed, $count, "without an engine $onFailure->name is obeyed");
}

// All or none. A lease grows while it is used up early. One that is spent to the last token may make place for another
// key's.
$left = fn () => $global->peek('wide', 'all')['remaining'] + $limiter->peek('wide', 'all')->remaining;
for ($i = 0; $i < 50 && $limiter->peek('wide', 'all')->remaining < 4; $i++) {
    $global->take('wide', 'all');
}
$before = $left();
$mixed = limits('all', 'wide', 'local', 'second');
$answers = array_map(fn () => $global->takeAll($mixed), range(1, 3));
is(array_map(fn (Result $r) => $r->limit, $answers[0]), [50, 3, 2], 'limits of both kinds are taken');
is(array_map(fn (Result $r) => [$r->limit, $r->allowed], $answers[2]), [2 => [2, false]], 'up to the one that denies');
is($limiter->peek('local', 'all')->remaining, 1, 'which gives back what is this host\'s');
is($left(), $before - 2, 'and what was leased');
$limiter->take('local', 'all');
$told = [];
is(array_keys($gone->takeAll(limits('all', 'first', 'local'))), [1], 'where one of this host denies');
is($told, [], 'no engine is asked');
is($gone->takeAll(limits('gone', 'local', 'first'))[1]->allowed, false, 'where an engine is gone');
$wrong = [...limits('gone', 'local'), new Limit('first', '')];
is(thrown(fn () => $global->takeAll($wrong))[0], 90, 'or a request wrong');
is(thrown(fn () => $global->takeAll(array_fill(0, 17, new Limit('first', 'gone'))))[0], 22, 'or too many');
is($limiter->peek('local', 'gone')->remaining, 3, 'what was taken is given back');
$answers = array_map(fn () => $global->takeAll(limits('dry', 'dry', 'second')), range(1, 3));
is(array_map(fn (Result $r) => $r->allowed, $answers[1]), [true, true], 'a lease in a dry run denies nobody');
is([array_keys($answers[2]), $global->peek('dry', 'dry')['remaining']], [[1], 0], 'and gives nothing back');

$kept = [];
foreach (OnFailure::cases() as $onFailure) {
    // A lease that was used up early is followed by one of twice as much.
    $key = "kept $onFailure->name";
    $global->take('first', $key);
    $global->take('first', $key);
    $held = $limiter->peek('first', $key)->remaining;
    $without = new GlobalLimiter($limiter, patient($nobody, onFailure: $onFailure));
    $answer = $without->takeAll([new Limit('first', $key, $held), new Limit('none', $key, 2)]);
    $kept[] = $held > 0 && array_keys($answer) === [1] ? $limiter->peek('first', $key)->remaining : -1;
}
is($kept, [$held, 0, 0], 'only what was certainly leased is given back');

// Children.
$children = [];
for ($i = 0; $i < 4; $i++) {
    $pid = pcntl_fork();
    if ($pid === 0) {
        exit(allowed(fn () => $global->take('first', 'forked'), 5));
    }
    $children[] = $pid;
}
$taken = 0;
foreach ($children as $pid) {
    pcntl_waitpid($pid, $status);
    $taken += pcntl_wifexited($status) ? pcntl_wexitstatus($status) : 1000;
}
is($taken, 5, 'children of one that has asked go on: together they get the capacity');
is($global->ping()['role'], 'master', 'and so does he');

// Gates.
$gate = new Gate($segment, engine: patient($url));
$answer = $gate->ask(...limits('gate', 'local', 'second'));
is($answer->status, 'passed', 'a gate has limits of both kinds');
is($answer->fields['RateLimit-Policy'], '"local";q=3;w=259200, "second";q=2;w=172800', 'with their fields');
$gate->ask(...limits('gate', 'local', 'second'));
$answer = $gate->ask(...limits('gate', 'local', 'second'));
is([$answer->status, $answer->refusal], ['rejected', 429], 'until one of them denies');
is(array_keys($answer->fields), ['RateLimit-Policy', 'RateLimit', 'Retry-After'], 'whose fields are told');
is($answer->fields['RateLimit-Policy'], '"second";q=2;w=172800', 'alone');

$ask = fn (mixed ...$options) => (new Gate($segment, ...$options))->ask(new Limit('second', 'asked'))->status;
file_put_contents($log, '');
is($ask(), 'failed', 'a lease without an engine fails');
$words = 'rule second: it is a lease, and there is no engine to lease from: requests that need it';
ok(str_contains(file_get_contents($log), $words), 'which is told');
is($ask(engine: 'http://host'), 'failed', 'so does one whose engine has a wrong URL');
ok(str_contains(file_get_contents($log), "segment $segment: engine's URL: scheme: must be"), 'which is told, too');
is($ask(engine: "$nobody.gate"), 'rejected', 'an engine that is gone denies');
ok(str_contains(file_get_contents($log), "segment $segment: engine " . substr($nobody, 7)), 'which is told, too');
is($ask(engine: $nobody, failOpen: true), 'passed', 'or lets pass, where the gate fails open');
is($ask(engine: $nobody, dryRun: true), 'passed', 'as a dry run does');
$denies = patient($nobody, onFailure: OnFailure::Deny);
is($ask(engine: $denies, failOpen: true), 'rejected', 'or answers as it is told to');
done_testing();
