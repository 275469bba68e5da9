<?php
// The laws of Shmlimit\GlobalLimiter, and of a Gate that has a backend.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

require __DIR__ . '/tap.php';
require getenv('BUILD') . '/php/Shmlimit/preload.php';

use Shmlimit\{Backend, Error, Gate, GlobalLimiter, Limit, Limiter, OnFailure, Result};

$segment = getenv('SEGMENT') . '.here';
$url = getenv('BACKEND');
$nobody = 'unix://' . getenv('TMP') . '/nobody';
$log = getenv('TMP') . '/errors';
ini_set('error_log', $log);

/** No test depends on speed; leases last as long, so that what is given back is still there. */
function patient(string $url, mixed ...$options): Backend
{
    $times = ['deadlineNs' => 5 * 10 ** 9, 'leaseNs' => 10 ** 10, 'openNs' => 3600 * 10 ** 9];
    return new Backend($url, ...[...$times, ...$options]);
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
is(str_contains(file_get_contents('/proc/self/maps'), 'libshmlimit-global'), false, 'a process that uses no backend does not load libshmlimit-global');
$global = new GlobalLimiter($limiter, patient($url));
is(str_contains(file_get_contents('/proc/self/maps'), 'libshmlimit-global'), true, 'does not load the library for it');

$other = new GlobalLimiter(new Limiter(getenv('SEGMENT') . '.there'), patient($url));
$both = 0;
for ($i = 0; $i < 20; $i++) {
    $both += (int) $global->take('first', 'both')->allowed + (int) $other->take('first', 'both')->allowed;
}
is($both, 5, 'hosts with one backend have one limit');
is($global->take('local', 'own')->remaining, 2, 'a rule that is no lease is this host\'s');
is($limiter->peek('local', 'own')->remaining, 2, 'a rule that is no lease uses the funnel of this host');

$answers = $global->takeMany([...limits('many', 'second', 'second', 'second', 'absent'), new Limit('first', '')]);
is(array_map(fn (Result $r) => $r->allowed, array_slice($answers, 0, 3)), [true, true, false], 'takeMany decides each request');
is([$answers[3]->getCode(), $answers[4]->getCode()], [3, 90], 'an error of takeMany is that of its request');
is(thrown(fn () => $global->takeMany(limits('many', ...array_fill(0, 65, 'first'))))[0], 22, 'takeMany accepts at most 64 requests');

is([$global->ping()['mode'], $global->ping()['role']], ['standalone', 'master'], 'a backend says what it is');
$global->take('first', 'reset', 5);
is($global->peek('first', 'reset')['remaining'], 0, 'a peek shows what the backend has of a key');
$global->reset('first', 'reset');
is($global->take('first', 'reset', 5)->allowed, true, 'a reset restores all tokens of a key on the backend');
$global->reset('first');
is($global->take('first', 'reset', 5)->allowed, true, 'a reset of a rule restores all tokens of its keys');

$error = thrown(fn () => new GlobalLimiter($limiter, 'http://host'));
ok($error[0] === 22 && str_contains($error[1], "backend's URL: scheme: must be redis://"), 'an error names what is wrong with a URL');
is(thrown(fn () => new GlobalLimiter($limiter, patient($url, deadlineNs: 1)))[0], 22, 'an option out of range is refused');
is(thrown(fn () => new GlobalLimiter($limiter, patient($url, deadlineNs: -1)))[0], 22, 'an option below 0 is refused, and not wrapped');
is(thrown(fn () => $global->take('absent', 'k'))[0], 3, 'a missing rule is an error');
is(thrown(fn () => $global->take('first', ''))[0], 90, 'a key must have a byte');
is(thrown(fn () => $global->take('first', 'k', -1))[0], 22, 'a cost below 0 is refused');
is(thrown(fn () => $global->peek('local', 'k'))[0], 95, 'a peek on the backend at a rule that is no lease is refused');
is(str_contains(print_r(new Backend('redis://:secret@host'), true), 'secret'), false, 'no dump of a backend has the password');

$told = [];
$gone = new GlobalLimiter($limiter, patient($nobody), function (string $line) use (&$told) {
    $told[] = $line;
});
$error = thrown(fn () => $gone->ping());
ok($error[0] === 2 && str_contains($error[1], 'backend: No such file'), 'a backend that is gone is an error');
is(count(preg_grep('/^backend .*: no connection \(No such file or directory\): must be /', $told)), 1, 'a backend that is gone is reported');
$throws = new GlobalLimiter($limiter, patient("$nobody.else"), fn (string $line) => throw new LogicException($line));
is($throws->take('first', 'thrown')->allowed, false, 'an exception in the report function does not end the process');
foreach ([[OnFailure::Deny, 0], [OnFailure::Allow, 10], [OnFailure::Local, 2]] as [$onFailure, $count]) {
    $without = new GlobalLimiter($limiter, patient($nobody, onFailure: $onFailure, localMilli: 400));
    $passed = allowed(fn () => $without->take('first', 'without'), 10);
    is($passed, $count, "without a backend $onFailure->name is obeyed");
}

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
is($global->ping()['role'], 'master', 'a parent of children that asked can go on asking');

// A thread that is the agent. What is asked for is in no lease yet.
$status = fn () => json_decode((string) shell_exec('shmlimit global status ' . escapeshellarg($segment) . ' --json'), true);
$serves = fn () => ($now = $status())['serving'] && $now['pid'] === getmypid() && $now['connections'] === 1;
$serve = function (callable $ask) use ($serves): bool {
    for ($end = hrtime(true) + 60 * 10 ** 9, $n = 0; hrtime(true) < $end; $n++) {
        $ask('new' . hrtime(true));
        if ($serves()) {
            return true;
        }
        usleep(1000);
    }
    return false;
};
is($status()['serving'], false, 'without agentThread no thread is the host\'s agent');
$hasty = [];
$limits = new GlobalLimiter($limiter, patient($url, wait: false), function (string $line) use (&$hasty): void { $hasty[] = $line; });
is($limits->take('first', 'hasty')->allowed, false, 'with wait: false and without an agent onFailure decides at once');
ok(str_contains(implode($hasty), 'no agent serves'), 'it is reported that there is no agent');
$error = thrown(fn () => new GlobalLimiter($limiter, new Backend('http://host', agentThread: true)));
ok($error[0] === 22 && str_contains($error[1], "backend's URL: scheme: must be redis://"), 'with agentThread an error names what is wrong with a URL');
$threaded = new GlobalLimiter($limiter, patient($url, agentThread: true), fn (string $line) => print("# $line\n"));
ok($serve(fn (string $key) => $threaded->take('first', $key)), 'with agentThread a thread of this process is the host\'s agent');
$answered = $status()['answered'];
is(allowed(fn () => $global->take('first', 'threaded'), 10), 5, 'an object without a thread has the same limit');
ok($status()['answered'] > $answered, 'an object without a thread is served by the agent');
unset($threaded);
is($status()['serving'], false, 'the thread ends with its object');
$threaded = new GlobalLimiter($limiter, patient($nobody, agentThread: true), fn (string $line) => throw new LogicException($line));
is($threaded->take('first', 'nobody')->allowed, false, 'a thread that finds no backend does not call PHP');
unset($threaded);
$gate = new Gate($segment, backend: $url, spec: 'deadline=5000ms agent=thread');
ok($serve(fn (string $key) => $gate->ask(new Limit('first', $key))), 'a thread of a gate is the host\'s agent');
unset($gate);
is($status()['serving'], false, 'the thread of a gate ends with it');

// Gates.
$gate = new Gate($segment, backend: $url, spec: 'deadline=5000ms');
$answer = $gate->ask(...limits('gate', 'local', 'second'));
is($answer->status, 'passed', 'a gate has limits of this host and of many');
is($answer->fields['RateLimit-Policy'], '"local";q=3;w=259200, "second";q=2;w=172800', 'a limit of this host and one of many both have header fields');
$gate->ask(...limits('gate', 'local', 'second'));
$answer = $gate->ask(...limits('gate', 'local', 'second'));
is([$answer->status, $answer->refusal], ['rejected', 429], 'the request after the smaller limit is rejected');
is($limiter->peek('local', 'gate')->remaining, 1, 'a rejected request takes nothing from the other limit');

$ask = fn (mixed ...$options) => (new Gate($segment, ...$options))->ask(new Limit('second', 'asked'))->status;
file_put_contents($log, '');
is($ask(), 'failed', 'a lease in a gate without a backend fails');
ok(str_contains(file_get_contents($log), "needs the backend's URL (backend=): requests that need it"), 'a lease without a backend is logged');
is(thrown(fn () => $ask(backend: 'http://host'))[0], 22, 'a backend of another scheme is refused');
is($ask(backend: "$nobody.gate"), 'failed', 'a gate answers that it failed while its backend is gone');
ok(str_contains(file_get_contents($log), "backend " . substr($nobody, 7)), 'a backend that is gone is logged');
is($ask(backend: $nobody, failOpen: true), 'passed', 'a gate that fails open lets requests pass while its backend is gone');
is($ask(backend: $nobody, dryRun: true), 'passed', 'a dry run lets requests pass while its backend is gone');
is($ask(backend: $nobody, spec: 'local_share=500'), 'passed', 'a gate with a share decides by itself');
ok(!str_contains(print_r(new Gate($segment, backend: 'redis://:secret@host'), true), 'secret'), 'no dump of a gate has the password');
done_testing();
