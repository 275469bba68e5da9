--TEST--
Gate: requests are limited, with header fields, and a report can throw
--EXTENSIONS--
shmlimit
--FILE--
<?php
use Shmlimit\{Gate, Limit};

ob_start();
$segment = 'phpt.' . getmypid();
register_shutdown_function(fn () => array_map('unlink', glob("/dev/shm/shmlimit.*.$segment")));
$ask = fn () => (new Gate($segment, spec: 'create=yes'))->ask(new Limit('login', '203.0.113.9', rate: '2/hour'));
var_dump($ask()->status, $ask()->fields, $ask()->refusal);
$gate = new Gate($segment, report: fn (string $line) => throw new LogicException('reported'));
try {
    $gate->ask(new Limit('absent', 'k'));
} catch (LogicException $thrown) {
    echo $thrown->getMessage(), "\n";
}
var_dump($gate->ask(new Limit('absent', 'k'))->status);
try {
    $gate->ask('login');
} catch (TypeError $thrown) {
    echo $thrown->getMessage(), "\n";
}
echo (new Gate($segment, spec: 'create=yes', status: 418))->enforce(new Limit('login', 'k', rate: '1/hour')), "\n";
(new Gate($segment, spec: 'create=yes', status: 418))->enforce(new Limit('login', 'k', rate: '1/hour'));
echo "not reached\n";
?>
--EXPECT--
string(6) "passed"
array(2) {
  ["RateLimit-Policy"]=>
  string(18) ""login";q=2;w=3600"
  ["RateLimit"]=>
  string(18) ""login";r=0;t=3600"
}
int(429)
reported
string(6) "failed"
Shmlimit\Gate::ask(): Argument #1 must be of type Shmlimit\Limit, string given
passed
too many requests
