<?php
// Random histories, in which each call gets the same answer of our adapters as of Laravel's and Symfony's own limiters in memory.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

require __DIR__ . '/tap.php';
require getenv('BUILD') . '/php/Shmlimit/autoload.php';
foreach (['Illuminate/Container', 'Illuminate/Cache', 'Illuminate/Routing', 'Illuminate/Http', 'Illuminate/Support', 'Symfony/Component/RateLimiter'] as $component) {
    require "$component/autoload.php";
}

use Illuminate\Cache\{ArrayStore, RateLimiter, Repository};
use Illuminate\Cache\RateLimiting\Limit;
use Illuminate\Http\Exceptions\ThrottleRequestsException;
use Illuminate\Http\{Request, Response};
use Illuminate\Routing\Middleware\ThrottleRequests;
use Shmlimit\Adapter\Segment;
use Shmlimit\Adapter\Laravel\{RateLimiter as Ours, Throttle};
use Shmlimit\Adapter\Symfony\Factory;
use Symfony\Component\RateLimiter\Exception\MaxWaitDurationExceededException;
use Symfony\Component\RateLimiter\{LimiterStateInterface, RateLimiterFactory};
use Symfony\Component\RateLimiter\Storage\StorageInterface;

const HISTORIES = 40;
const STEPS = 60;

$seed = (int) (getenv('SEED') ?: random_int(1, 2 ** 31 - 1));
mt_srand($seed);
echo "# SEED=$seed\n";
$moved = 0.0;

/** Time passes for all clocks of this process. */
function move(float $seconds): void
{
    global $moved;

    $moved += $seconds;
    $file = getenv('FAKETIME_TIMESTAMP_FILE');
    file_put_contents("$file.new", sprintf("+%.3Fs\n", $moved));
    rename("$file.new", $file);
}

/** Each call that is drawn gets the same answer of both. A history happens in the first half of a second, in which nothing ends. */
function same(string $title, callable $begin, callable $call, int $unit = 1): void
{
    for ($history = 0; $history < HISTORIES; $history++) {
        move(1000 + 1.02 - fmod(microtime(true), 1));
        $both = $begin($history);
        $told = [];
        for ($i = 0; $i < STEPS && fmod(microtime(true), 1) < 0.5; $i++) {
            if (mt_rand(0, 4) < 2) {
                move(mt_rand(0, 3) * $unit + 0.011); // a count may live 10 ms too long
            }
            $drawn = [mt_rand(0, 9), ['a', 'b'][mt_rand(0, 1)], mt_rand(1, 3)];
            $second = time();
            $answers = array_map(fn ($one) => json_encode($call($one, ...$drawn)), $both);
            if (time() !== $second) {
                break; // on a busy machine
            }
            $told[] = implode(' ', $drawn) . ": $answers[0] $answers[1]";
            if ($answers[0] !== $answers[1]) {
                echo "# history $history:\n# ", implode("\n# ", array_slice($told, -12)), "\n";
                is($answers[0], $answers[1], $title);
                return;
            }
        }
    }
    is(true, true, $title);
}

$name = getenv('SEGMENT');
$segment = new Segment($name, 4096);
/** Laravel 8's own lets values live until a second is over. Here they end as it begins. Laravel 10's end in time. */
class SecondsStore extends ArrayStore
{
    protected function toTimestamp($seconds)
    {
        $at = parent::toTimestamp($seconds);
        return is_int($at) ? $at - 1 : $at;
    }
}
$memory = fn () => new RateLimiter(new Repository(new SecondsStore()));

same("Laravel: over any history RateLimiter answers like Laravel's own", fn (int $history) =>
    [Ours::of($memory(), $segment, "h$history "), $memory()], function (RateLimiter $limiter, int $which, string $key, int $n) {
        return match ($which) {
            0 => $limiter->clear($key),
            1 => [$limiter->attempts($key), $limiter->availableIn($key)],
            2 => [$limiter->remaining($key, 5), $limiter->retriesLeft($key, $n)],
            3, 4 => $limiter->tooManyAttempts($key, $n),
            5, 6 => $limiter->attempt($key, $n, fn () => 'done', 2),
            default => $limiter->hit($key, $which - 4),
        };
    });

$statuses = [];
same("Laravel: over any history the middleware answers like Laravel's own", function (int $history) use ($memory, $segment) {
    $both = [Ours::of($memory(), $segment, "m$history "), $memory()];
    foreach ($both as $limiter) {
        $limiter->for('plan', fn (Request $request) => Limit::perMinute((int) $request->query('plan'))->by('user'));
    }
    return [new Throttle($both[0]), new ThrottleRequests($both[1])];
}, function (ThrottleRequests $middleware, int $which, string $key, int $n) use (&$statuses) {
    $request = Request::create("/?plan=$n", 'GET', [], [], [], ['REMOTE_ADDR' => $key === 'a' ? '192.0.2.1' : '192.0.2.2']);
    $request->setRouteResolver(fn () => new class {
        public function getDomain(): ?string
        {
            return null;
        }
    });
    $parameters = match (true) {
        $which < 5 => [3, 0.05, 'three'],
        $which < 7 => [$n, 0.1, 'changes'],
        default => ['plan'],
    };
    try {
        $response = $middleware->handle($request, fn () => new Response('page'), ...$parameters);
    } catch (ThrottleRequestsException $thrown) {
        $response = new Response('', $thrown->getStatusCode(), $thrown->getHeaders());
    }
    $statuses[$response->getStatusCode()] = ($statuses[$response->getStatusCode()] ?? 0) + 1;
    return array_map(fn (string $field) => $response->headers->get($field), ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'Retry-After',
        'X-RateLimit-Reset']) + [4 => $response->getStatusCode()];
});
ok(min($statuses[200], $statuses[429]) > 20, 'Laravel: the middleware admitted and refused');

/** Symfony's own forgets a bucket with a debt before that is paid. */
class KeepingStorage implements StorageInterface
{
    private array $states = [];

    public function save(LimiterStateInterface $state): void
    {
        $this->states[$state->getId()] = serialize($state);
    }

    public function fetch(string $id): ?LimiterStateInterface
    {
        return isset($this->states[$id]) ? unserialize($this->states[$id]) : null;
    }

    public function delete(string $id): void
    {
        unset($this->states[$id]);
    }
}

// A bucket whose tokens come one by one, as ours do, and whole intervals of it, since Symfony waits for whole ones, and a full bucket
// keeps what has passed of one.
foreach (['fixed_window' => ['limit' => 5, 'interval' => '4 seconds'],
    'token_bucket' => ['limit' => 5, 'rate' => ['interval' => '2 seconds', 'amount' => 1]]] as $policy => $config) {
    $answer = fn ($limit) => [$limit->isAccepted(), max($limit->getRemainingTokens(), 0), $limit->getLimit()];
    same("Symfony: over any history a $policy answers like Symfony's own", function (int $history) use ($policy, $config, $segment) {
        $config += ['id' => "$policy", 'policy' => $policy];
        $both = [new Factory($config, $segment), new RateLimiterFactory($config, new KeepingStorage())];
        return array_map(fn ($factory) => [$factory->create("$history a"), $factory->create("$history b")], $both);
    }, function (array $limiters, int $which, string $key, int $n) use ($answer, $policy) {
        $limiter = $limiters[$key === 'a' ? 0 : 1];
        if ($which === 0) {
            return $limiter->reset();
        }
        if ($which > 2 || $policy === 'fixed_window') {
            return $answer($limiter->consume($n));
        }
        try {
            $begun = microtime(true);
            $reservation = $limiter->reserve($n, 6);
            return [...$answer($reservation->getRateLimit()), ceil(($reservation->getTimeToAct() - $begun - 0.1) / 2)];
        } catch (MaxWaitDurationExceededException $refused) {
            return ['refused', ...$answer($refused->getRateLimit())];
        }
    }, $policy === 'fixed_window' ? 1 : 2);
}
done_testing();
