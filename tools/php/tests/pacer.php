<?php
// The laws of Shmlimit\Pacer: what a server's answer means, that all processes heed it, and that calls wait for places.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

require __DIR__ . '/tap.php';
require getenv('BUILD') . '/php/Shmlimit/preload.php';

use Shmlimit\{Error, Limiter, Pacer};

const WORKERS = 4;
const CALLS = 6;
const WINDOW_S = 1;
const SECOND_NS = 10 ** 9;
const EINVAL = 22;

/** @return array{int, string} the code of what is thrown, and what it says */
function thrown(callable $call): array
{
    try {
        $call();
        return [0, ''];
    } catch (Error $error) {
        return [$error->getCode(), $error->getMessage()];
    }
}

/** Forks a process, and returns its id and an end of a socket of which it has the other. */
function child(callable $work): array
{
    [$here, $there] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $pid = pcntl_fork();
    if ($pid === 0) {
        fclose($here);
        try {
            $work($there);
        } finally {
            posix_kill(posix_getpid(), SIGKILL); // it runs nothing of its parent
        }
    }
    fclose($there);
    return [$pid, $here];
}

/** A response of PSR-7, as far as it is asked. */
function message(int $status, array $headers): object
{
    return new class ($status, $headers) {
        public function __construct(private int $status, private array $headers)
        {
        }

        public function getStatusCode(): int
        {
            return $this->status;
        }

        public function getHeaders(): array
        {
            return array_map(fn ($value) => [$value], $this->headers);
        }
    };
}

$answer = fn (int $status, string ...$lines) => Pacer::retryAfter(["HTTP/1.1 $status Some Words", ...$lines]);
$date = fn (int $s, string $format = 'D, d M Y H:i:s \G\M\T') => gmdate($format, $s);
$at = 10 ** 9;
is([$answer(429, 'Retry-After: 30'), $answer(503, 'retry-after:  7 '), $answer(200, 'Retry-After: 30')], [30.0, 7.0, 0.0], 'Retry-After counts with 429 and 503');
is($answer(429, 'Retry-After: 1.5'), 1.5, 'seconds may have a fraction');
foreach (['D, d M Y H:i:s \G\M\T', 'l, d-M-y H:i:s \G\M\T', 'D M j H:i:s Y', 'D M  j H:i:s Y'] as $form) {
    is($answer(429, "Retry-After: {$date($at + 30, $form)}", "Date: {$date($at)}"), 30.0, "Retry-After may be a date, which is compared with the server's: $form");
}
is($answer(429, "Retry-After: {$date($at)}", "Date: {$date($at + 30)}"), 0.0, 'a date that is past is over');
$soon = $answer(429, "Retry-After: {$date(time() + 3000)}", 'Date: today');
ok($soon > 1000 && $soon <= 3000, "without a date of the server's the clock here counts");
is($answer(200, 'RateLimit: "a";r=3;t=12, "b";r=0;t=5'), 5.0, 'the RateLimit field counts where nothing is left');
is($answer(200, 'RateLimit: "a";r=3;t=12'), 0.0, 'the RateLimit field does not count where something is left');
is([$answer(200, 'RateLimit: limit=100, remaining=0, reset=50'), $answer(200, 'RateLimit: limit=100, remaining=10, reset=50')], [50.0, 0.0], 'the RateLimit field of draft 7 counts where nothing is left');
is([$answer(200, 'RateLimit-Remaining: 0', 'RateLimit-Reset: 9'), $answer(200, 'X-RateLimit-Remaining: 2', 'X-RateLimit-Reset: 9')], [9.0, 0.0], 'the fields before it count where nothing is left');
$until = $answer(200, 'X-RateLimit-Remaining: 0', 'X-RateLimit-Reset: ' . time() + 3000);
ok($until > 1000 && $until <= 3000, 'a reset may be a time');
is([$answer(429), $answer(200)], [1.0, 0.0], 'a refusal that says nothing is a second');
is(array_map(fn ($text) => Pacer::retryAfter(['HTTP/2 429', "Retry-After: $text"], 5.0), ['soon', '-1', '1e3', '1/2', '']), [5.0, 5.0, 5.0, 5.0, 5.0], 'what cannot be read is the default');
is($answer(302, 'Retry-After: 9', 'HTTP/1.1 429 Too Many Requests', 'Retry-After: 3'), 3.0, 'of several responses the last one counts');
is([Pacer::retryAfter(message(429, ['Retry-After' => '30'])), Pacer::retryAfter(message(200, ['RateLimit' => '"a";r=0;t=5']))], [30.0, 5.0], 'a response of PSR-7 can be read');

$segment = getenv('SEGMENT') . '.pacer';
Limiter::create($segment, slots: 64);
$limiter = new Limiter($segment);
$limiter->setLimit('r', '1000/s burst 50', 600 * SECOND_NS);
$limiter->setLimit('jobs', '1 at once');
$limiter->setLimit('window', '5/d window');
$pacer = new Pacer($limiter, 'r');
$jobs = new Pacer($limiter, 'jobs');
is($pacer->heed('k', ['HTTP/1.1 200 OK']), 0.0, 'an answer that asks for nothing pauses nothing');
$paused = $pacer->heed('k', ['HTTP/1.1 429 Later', 'Retry-After: 30']);
ok($paused >= 30 && $paused <= 33 && $limiter->paused('r', 'k') > 10 * SECOND_NS, 'an answer pauses the key, for a little longer');
is($pacer->heed('k', ['HTTP/1.1 429 Later', 'Retry-After: 99999'], mostS: 60.0, jitter: 0.0), 60.0, 'no answer pauses for longer than it may');
is(thrown(fn () => (new Pacer($limiter, 'r', 1000))->run('k', fn () => ok(false, 'it was called')))[0], Pacer::TOO_LONG, 'a call that may not wait for the end of a pause is not made');
is($pacer->run('free', fn () => 'done', 5), 'done', 'a call returns what the function returns');
is(thrown(fn () => $pacer->run('free', fn () => 1, 1_000_000))[0], Pacer::TOO_LONG, 'a call whose turn is later than the rule allows is not made');
(new Pacer($limiter, 'window'))->run('k', fn () => 1, 5);
is(thrown(fn () => (new Pacer($limiter, 'window'))->run('k', fn () => 1))[0], Pacer::TOO_LONG, 'a rule without reservations has no waits');
is([thrown(fn () => $jobs->run('k', fn () => 1, 2))[0], thrown(fn () => new Pacer($limiter, 'r', -1))[0]], [EINVAL, EINVAL], 'a place has no cost, and no wait is negative');

// Places.
$place = $limiter->enter('jobs', 'k');
is([is_string($place), $limiter->enter('jobs', 'k')], [true, null], 'a place is entered while one is free');
is(thrown(fn () => (new Pacer($limiter, 'jobs', 1000))->run('k', fn () => ok(false, 'it was called')))[0], Pacer::TOO_LONG, 'a wait for a place has a bound');
is([thrown(fn () => $limiter->leave('jobs', 'k', 'short'))[0], thrown(fn () => $limiter->enter('r', 'k'))[0]], [EINVAL, 95], 'what is no place is refused, and so is a rule that has none');
[$pid, $pipe] = child(function ($pipe) use ($jobs) {
    fwrite($pipe, "waits\n");
    $jobs->run('k', fn () => fwrite($pipe, "entered\n") && fgets($pipe));
});
fgets($pipe);
is([$limiter->leave('jobs', 'k', $place), $limiter->leave('jobs', 'k', $place), fgets($pipe)], [true, false, "entered\n"], 'a process that waits has the place that another one leaves');
is($limiter->enter('jobs', 'k'), null, 'it holds the place while its function runs');
posix_kill($pid, SIGKILL);
pcntl_waitpid($pid, $status);
is($jobs->run('k', fn () => 'done'), 'done', 'the place of a process that was killed is had by one that waits');
try {
    $jobs->run('k', fn () => throw new DomainException('work'));
} catch (DomainException) {
}
is($jobs->run('k', fn () => is_null($limiter->enter('jobs', 'k'))), true, 'an exception leaves the place, and passes');
$limiter->pause('jobs', 'k', SECOND_NS);
$jobs->run('k', fn () => null);
is($limiter->paused('jobs', 'k'), 0, 'a call that waits for a place does so until a pause is over');
shell_exec("shmlimit disable $segment");
is($pacer->heed('off', ['HTTP/1.1 429 Later']), null, 'where no pause is possible, the caller is told');
shell_exec("shmlimit enable $segment");

// After its first three requests the server refuses all for a while, and says so.
$listener = stream_socket_server('tcp://127.0.0.1:0');
[$server, $log] = child(function ($log) use ($listener) {
    for ($n = 1, $from = PHP_INT_MAX; $n <= WORKERS * CALLS; $n++) {
        $connection = stream_socket_accept($listener, -1);
        $request = fgets($connection);
        while (trim((string) fgets($connection)) !== '') {
        }
        $now = hrtime(true);
        $from = $n === 3 ? $now : $from;
        $refused = $now >= $from && $now < $from + WINDOW_S * SECOND_NS;
        fwrite($log, json_encode([$now > $from && $refused, explode(' ', $request)[1]]) . "\n");
        fwrite($connection, 'HTTP/1.0 ' . ($refused ? "429 Too Many Requests\r\nRetry-After: " . WINDOW_S : '200 OK') . "\r\nContent-Length: 0\r\n\r\n");
        fclose($connection);
    }
});
$address = stream_socket_get_name($listener, false);
$workers = array_map(fn ($worker) => child(function ($done) use ($pacer, $address, $worker) {
    for ($i = 0; $i < CALLS; $i++) {
        $pacer->run('remote', function () use ($pacer, $address, $worker) {
            file_get_contents("http://$address/$worker", context: stream_context_create(['http' => ['ignore_errors' => true]]));
            $pacer->heed('remote', $http_response_header);
        });
    }
    fwrite($done, "all\n");
}), range(1, WORKERS));
$seen = array_map(json_decode(...), array_filter(explode("\n", (string) stream_get_contents($log))));
is(array_map(fn ($worker) => fgets($worker[1]), $workers), array_fill(0, WORKERS, "all\n"), 'all workers make all calls');
foreach ([...$workers, [$server]] as [$pid]) {
    pcntl_waitpid($pid, $status);
}
$late = array_column(array_filter($seen, fn ($request) => $request[0]), 1);
is([count($seen), count($late)], [WORKERS * CALLS, count(array_unique($late))], 'of each worker at most the request in flight comes while the server refuses');
unlink(getenv('SHM') . $segment);

// The README's program, where it is given.
if (isset($argv[1])) {
    [$server] = child(function () use ($listener) {
        $connection = stream_socket_accept($listener, -1);
        while (trim((string) fgets($connection)) !== '') {
        }
        fwrite($connection, "HTTP/1.0 429 Too Many Requests\r\nRetry-After: 3000\r\n\r\n");
        fclose($connection);
    });
    is(shell_exec(PHP_BINARY . " $argv[1] http://$address/ 2>&1"), null, "the README's program has no page from a server that refuses");
    pcntl_waitpid($server, $status);
    ok((new Limiter("$segment.readme"))->paused('crawl', '127.0.0.1') > 1000 * SECOND_NS, "the README's program pauses the server's key");
    unlink(getenv('SHM') . "$segment.readme");
}
done_testing();
