<?php
// The laws of Shmlimit\Limiter. The C library's own are tested in C: here stands what lies between.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

require __DIR__ . '/tap.php';
require getenv('BUILD') . '/php/Shmlimit/preload.php';

use Shmlimit\{Error, Limit, Limiter, Result};

const DAY_NS = 86400 * 10 ** 9;

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

/** @return list<mixed> this member of each */
function each(string $member, Result ...$results): array
{
    return array_map(fn (Result $result) => $result->$member, $results);
}

// Of the rules, r has 5 tokens, one a day, and debt; s has one token.
$segment = getenv('SEGMENT');
$limiter = new Limiter($segment);

is(Limiter::TOKEN_BUCKET, Limiter::FUNNEL, 'a funnel is also called a token bucket');
$results = array_map(fn () => $limiter->take('r', 'k'), range(1, 6));
is(each('allowed', ...$results), [true, true, true, true, true, false], 'a funnel gives its capacity, then nothing');
is(each('remaining', ...$results), [4, 3, 2, 1, 0, 0], 'an answer says how many tokens are left');
ok($results[5]->retryAfterNs > 0 && $results[5]->retryAfterNs <= DAY_NS, 'a denial says when there is a token again');
is($limiter->take('r', 'k', 6)->retryAfterNs, Limiter::NEVER, 'more than the capacity will never fit');

$limiter->take('r', "a\0b");
is($limiter->peek('r', 'a')->remaining, 5, 'a key is bytes');
is($limiter->peek('r', "a\0b")->remaining, 4, 'a key may contain a NUL');

$limiter->reset('r', 'k');
is($limiter->take('r', 'k', 5)->remaining, 0, 'a reset restores all tokens of a key');
is([$limiter->pause('r', 'p', DAY_NS), $limiter->peek('r', 'p')->allowed, $limiter->peek('r', 'other')->allowed], [true, false, true],
    'nothing of a key that is paused passes');
ok($limiter->paused('r', 'p') > DAY_NS / 2 && $limiter->paused('r', 'p') < 2 * DAY_NS, 'it is paused for so long');
is([$limiter->pause('r', 'p', 0), $limiter->paused('r', 'p'), $limiter->peek('r', 'p')->allowed], [true, 0, true], 'a pause of 0 ends it');
is(array_map(fn () => $limiter->takeSome('r', 'some', 3), range(1, 3)), [3, 2, 0], 'of many tokens as many are taken as fit');
ok($limiter->reserve('r', 'k')->waitNs > 0, 'tokens that are not there can be reserved');
ok($limiter->charge('r', 'k')->resetAfterNs > 6 * DAY_NS, 'tokens that are not there can be charged');
is($limiter->reserve('r', 'k', 1, DAY_NS)->allowed, false, 'a reservation whose wait would be too long is denied');
is($limiter->refund('r', 'k', 3)->remaining, 1, 'reserved tokens can be refunded');
is($limiter->acquire('r', 'k')->waitNs, 0, 'an acquire of tokens that are there does not wait');

// Limits as texts: each is read, set, and printed as one that reads the same.
$passes = fn () => count(array_filter(array_map(fn () => $limiter->take('text', 'k')->allowed, range(1, 9))));
$told = [];
foreach (['0/s', 'block', 'unlimited', 'off', '3/day', '10r/s burst 20', '1/1.5s', '9/h strict'] as $text) {
    $told[] = [$limiter->setLimit('text', $text), $limiter->setLimit('text', $text), $passes(), $limiter->limit('text')];
    $limiter->setLimit('again', $limiter->limit('text'));
    is($limiter->limit('again'), $limiter->limit('text'), "what limit() prints reads the same: $text");
}
is(array_slice(array_column($told, 2), 0, 5), [0, 0, 9, 9, 3], '0 denies always, unlimited never, and a program that starts changes them');
is(array_column($told, 0), [true, false, true, false, true, true, true, true], 'a limit that is the same is not set again');
is(array_filter(array_column($told, 1)), [], 'setLimit() says whether it was set');
is(array_column($told, 3), ['block', 'block', 'unlimited', 'unlimited', '3/d', '10/s burst 20', '1/1.5s', '4/h burst 5'], 'limit() prints a limit');
foreach (['5/minut', "5/s\0", '', '1/s burst 0'] as $text) {
    is(thrown(fn () => $limiter->setLimit('text', $text))[0], 22, 'what is no limit is refused: ' . json_encode($text));
}
ok(str_contains(thrown(fn () => $limiter->setLimit('text', '5/minut'))[1], '5/minute'), 'an error has the nearest limit');
is([thrown(fn () => $limiter->limit('absent'))[0], thrown(fn () => $limiter->setLimit('text', '1/s', -1))[0]], [3, 22],
    'a rule that is missing, and a wait that is negative, are errors');

$limiter->reset('r');
$both = [new Limit('r', 'both', 2), new Limit('s', 'both')];
is(each('allowed', ...$limiter->takeAll($both)), [true, true], 'several limits are taken');
is(each('allowed', ...$limiter->takeAll($both)), [true, false], 'the results of several limits end with the one that denies');
is($limiter->peek('r', 'both')->remaining, 3, 'a limit before the one that denies keeps its tokens');

is($limiter->throttle('k', 2, 1, 60), [0, 2, 1, -1, 60], 'throttle replies as redis-cell does');

is(
    $limiter->fields('r', $limiter->peek('r', 'new')),
    ['RateLimit-Policy' => '"r";q=5;w=432000', 'RateLimit' => '"r";r=5;t=0'],
    'an answer is written as header fields',
);
is(array_keys($limiter->fields('s', $limiter->take('s', 'both'))), ['RateLimit-Policy', 'RateLimit', 'Retry-After'],
    'the header fields of a denial say when to come again');
is(array_keys($limiter->fields('s', $limiter->take('s', 'both', 2))), ['RateLimit-Policy', 'RateLimit'], 'a denial for ever has no Retry-After');

$error = thrown(fn () => $limiter->take('none', 'k'));
is($error, [3, "$segment: rule none: no such rule"], 'an error names its subject');
is(thrown(fn () => $limiter->take('r', ''))[0], 90, 'an empty key is an error');
is(thrown(fn () => $limiter->take('r', 'k', -1))[0], 22, 'a cost below 0 is an error, and not a large number as in C');
is(thrown(fn () => $limiter->takeAll([new Limit('r', 'k', -1)]))[0], 22, 'a cost below 0 among several limits is an error');
is(thrown(fn () => $limiter->takeAll([]))[0], 22, 'an empty list of limits is an error');
is(thrown(fn () => $limiter->take("r\0x", 'k'))[0], 84, 'a name with NUL is refused, and not cut');
is(thrown(fn () => new Limiter("$segment.none"))[0], 2, 'a missing segment is an error');

$reader = new Limiter($segment, readOnly: true);
is($reader->peek('r', 'both')->remaining, 3, 'a read-only handle can peek');
is(thrown(fn () => $reader->take('r', 'k'))[0], 30, 'a read-only handle cannot take');
is($reader->owner(), posix_geteuid(), 'a segment reports its owner');

is(Limiter::keyIp('::ffff:10.0.0.7'), Limiter::keyIp('10.0.0.7'), "IPv4 in IPv6's clothes is IPv4");
is(Limiter::keyIp('2001:db8::1'), Limiter::keyIp('2001:db8::2'), 'the addresses of one net are one key');
is(Limiter::keyIp('10.0.0.7:50001'), Limiter::keyIp('10.0.0.7'), 'the connections of one client are one key');
is(Limiter::keyIp('10.0.0.8, 10.0.0.7', 32, 64, -1), Limiter::keyIp('10.0.0.7'), 'a key is made from an element of a list');
is(thrown(fn () => Limiter::keyIp('10.0.0.8, 10.0.0.7'))[0], 22, 'a list is no address');
is(thrown(fn () => Limiter::keyIp('localhost'))[0], 22, 'a name is no address');

$limiter->reset();
$children = [];
for ($i = 0; $i < 4; $i++) {
    $pid = pcntl_fork();
    if ($pid === 0) {
        exit(array_sum(array_map(fn () => (int) $limiter->take('r', 'forked')->allowed, range(1, 5))));
    }
    $children[] = $pid;
}
$taken = 0;
foreach ($children as $pid) {
    pcntl_waitpid($pid, $status);
    $taken += pcntl_wifexited($status) ? pcntl_wexitstatus($status) : 1000;
}
is($taken, 5, "a handle opened before the fork is the children's too: together they get the capacity");

// Limits that come with the call.
Limiter::create("$segment.plans", slots: 32768);
$plans = new Limiter("$segment.plans");
$plans->setRule('plans', 0, 0, 0, Limiter::GCRA);
$plans->setRule('waits', 0, 0, 0, Limiter::GCRA, DAY_NS);
$plans->setRule('funnel', 3, 1, DAY_NS);
$taken = array_map(fn () => $plans->take('plans', 'a', 1, '3/day'), range(1, 4));
is([each('allowed', ...$taken), each('remaining', ...$taken), $taken[0]->limit], [[true, true, true, false], [2, 1, 0, 0], 3], 'a take has a limit of its own');
is(array_map(fn ($limit) => $plans->take('plans', 'words', limit: $limit)->allowed, ['block', 'unlimited']), [false, true], 'a limit may be block or unlimited');
is([$plans->peek('plans', 'a', 1, '9/day')->remaining, $plans->refund('plans', 'a', 1, '3/day')->remaining], [0, 1], 'what was spent is spent by another limit, too');
is([$plans->acquire('plans', 'a', 1, limit: '3/day')->allowed, $plans->reserve('plans', 'a', limit: '3/day')->allowed], [true, false], 'a reservation by a limit waits as long as the rule allows: not at all');
ok($plans->reserve('plans', 'a', 1, DAY_NS, '3/day')->waitNs > DAY_NS / 4, 'a reservation by a limit waits as long as the call allows');
is(array_map(fn () => $plans->takeSome('plans', 'some', 5, '7/day'), range(1, 2)), [5, 2], 'by a limit of the call, too');
$plans->charge('waits', 'w', 6, '5/day');
ok($plans->reserve('waits', 'w', limit: '5/day')->waitNs > DAY_NS / 5, 'a charge by a limit goes into debt as far as the rule allows');
$both = $plans->takeAll([new Limit('plans', 'all', limit: '2/day'), new Limit('funnel', 'all', 2)]);
is(each('remaining', ...$both), [1, 1], 'several limits may have limits of their own');
foreach (['5/fortnight', '20 at once for 5m', "5/s\0", '1/y burst 3'] as $text) {
    ok(preg_match('/^limit "[512]/', thrown(fn () => $plans->take('plans', 'k', 1, $text))[1]) === 1, 'a limit that cannot be read is an Error: ' . json_encode($text));
    is(thrown(fn () => $plans->takeAll([new Limit('plans', 'k', limit: $text)]))[0] > 0, true, 'takeAll throws it, too');
}
is([thrown(fn () => $plans->take('funnel', 'k', 1, '5/s'))[0], thrown(fn () => $plans->take('plans', 'k'))[0]], [95, 33], 'a limit needs a rule for it, and such a rule a limit');
$found = array_fill(0, 10000, 0);
$pipes = [];
for ($i = 0; $i < 4; $i++) {
    $pipes[$i] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    if (pcntl_fork() === 0) {
        $allowed = '';
        for ($n = 0; $n < 10000; $n++) {
            $limit = ($n % 9 + 1) . '/day burst ' . ($n % 11 + 1);
            $allowed .= array_sum(array_map(fn () => (int) $plans->take('plans', "c$n", 1, $limit)->allowed, range(1, 4)));
        }
        fwrite($pipes[$i][1], $allowed);
        exit(0);
    }
    fclose($pipes[$i][1]);
}
foreach ($pipes as [$read]) {
    foreach (str_split((string) stream_get_contents($read)) as $n => $allowed) {
        $found[$n] += (int) $allowed;
    }
    pcntl_wait($status);
}
is($found, array_map(fn ($n) => min($n % 11 + 1, 16), range(0, 9999)), '10,000 customers with limits of their own are exact over four processes');
unlink(getenv('SHM') . "$segment.plans");

// A rule has a name here, and no number: what looks like one is a name that there is none of.
$limiter->setRule('names', 5, 1, DAY_NS);
$limiter->take('names', 'k', 3);
$calls = ['take', 'takeSome', 'peek', 'reserve', 'refund', 'charge', 'count', 'pause', 'paused', 'reset'];
$passed = [];
foreach ($calls as $call) {
    foreach (['', '-1', '-2', '0', '64', '2147483647', "names\0", 'none'] as $name) {
        $more = in_array($call, ['takeSome', 'pause'], true) ? [1] : [];
        if (thrown(fn () => $call === 'reset' ? $limiter->reset($name) : $limiter->$call($name, 'k', ...$more))[0] === 0) {
            $passed[] = [$call, $name];
        }
    }
}
is([$passed, $limiter->peek('names', 'k')->remaining], [[], 2], 'a name that is no rule\'s is an error of each call, and resets nothing');

// Rates that are floats, as the table has them: the rule is what the command shows.
$cases = array_map(fn ($line) => explode(' ', $line), preg_grep('/^[^#]/', file(__DIR__ . '/../../../tests/float_rates.txt', FILE_IGNORE_NEW_LINES)));
$set = function (float $rate, int $per) use ($limiter, $segment): array|string {
    try {
        $limiter->setRule('f', 15, $rate, $per * 10 ** 9);
    } catch (Error $error) {
        return preg_match('/^rate .*(the nearest that can be is \d|must be a finite number above 0)/', $error->getMessage()) ? 'refused' : $error->getMessage();
    }
    $shown = json_decode((string) shell_exec("shmlimit rule show $segment f --json"), true);
    shell_exec("shmlimit rule remove $segment f");
    return [(string) $shown['refill'], (string) ($shown['period_ns'] / 10 ** 9)];
};
$wrong = array_filter($cases, fn ($c) => $set((float) $c[0], (int) $c[1]) !== ($c[2] === 'refused' ? 'refused' : [$c[2], $c[3]]));
is([count($cases) > 10, $wrong], [true, []], 'a rate that is a float is what its shortest decimal says');
is([$set(NAN, 1), $set(INF, 1), $set(0.0, 1)], ['refused', 'refused', 'refused'], 'a rate that is no number above 0 is refused');
is([$limiter->throttle('fa', 15, 0.5, 1), $limiter->throttle('fb', 15, 0.3, 1)], [$limiter->throttle('fc', 15, 1, 2), $limiter->throttle('fd', 15, 3, 10)],
    'throttle takes a float, too');

if (posix_geteuid() === 0) {
    $group = function (int ...$group) use ($segment): int {
        Limiter::create("$segment.group", 64, 0640, ...$group);
        $gid = filegroup(getenv('SHM') . "$segment.group");
        unlink(getenv('SHM') . "$segment.group");
        clearstatcache();
        return $gid;
    };
    posix_setegid(5);
    is([$group(), $group(-1), $group(0), $group(1)], [5, 5, 0, 1], 'a segment has the group that create() is given, also that of root, or else the creator\'s');
    posix_setegid(0);
}

is($limiter->gone(), false, 'a segment that stands is not gone');
unlink(getenv('SHM') . $segment);
is($limiter->gone(), true, 'one that was destroyed is');
done_testing();
