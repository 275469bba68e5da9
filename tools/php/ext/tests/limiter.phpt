--TEST--
Limiter: a segment and a rule are created, and a limit holds
--EXTENSIONS--
shmlimit
--FILE--
<?php
use Shmlimit\{Error, Limit, Limiter};

$segment = 'phpt.' . getmypid();
register_shutdown_function(fn () => array_map('unlink', glob("/dev/shm/shmlimit.*.$segment")));
var_dump(Limiter::create($segment, slots: 64), Limiter::create($segment));
try {
    $limiter = new Limiter($segment);
    var_dump($limiter->setRule('login', 2, 1, 3600 * 10 ** 9), $limiter->setRule('login', 2, 1, 3600 * 10 ** 9));
    var_dump($limiter->take('login', 'user:42')->remaining);
    var_dump($limiter->take('login', 'user:42', 2)->allowed);
    var_dump(count($limiter->takeAll([new Limit('login', 'user:42'), new Limit('login', 'user:42')])));
    $limiter->setRule('hits', 1000, 0, 60 * 10 ** 9, Limiter::COUNTER);
    var_dump($limiter->count('hits', 'page', 3)->count, $limiter->count('hits', 'page', 1, bound: 3)->allowed);
    var_dump($limiter->throttle('user:42', 1, 1, 3600));
    clone $limiter;
} catch (\Throwable $thrown) {
    echo $thrown::class, ': ', $thrown->getMessage(), "\n";
}
try {
    $limiter->take('absent', 'user:42');
} catch (Error $error) {
    echo str_replace($segment, 'SEGMENT', $error->getMessage()), ' ', $error->getCode(), "\n";
}
?>
--EXPECT--
bool(true)
bool(false)
bool(true)
bool(false)
int(1)
bool(false)
int(2)
int(3)
bool(false)
array(5) {
  [0]=>
  int(0)
  [1]=>
  int(1)
  [2]=>
  int(0)
  [3]=>
  int(-1)
  [4]=>
  int(3600)
}
Error: Trying to clone an uncloneable object of class Shmlimit\Limiter
SEGMENT: rule absent: no such rule 3
