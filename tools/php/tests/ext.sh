#!/bin/sh
# ext: the extension as phpize builds it; it declares what the classes over FFI declare, and the same laws hold.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
with_extension
need phpize make
[ "$(php-config --version)" = "$(php -r 'echo PHP_VERSION;')" ] || skip_all "php-config is of another PHP than php"

mkdir -p "$TMP/installed"
ln -s "$SOURCE/include" "$TMP/installed/include"
ln -s "$BUILD" "$TMP/installed/lib"
cp -r "$SOURCE/tools/php/ext" "$TMP/ext"
(cd "$TMP/ext" && phpize && ./configure --with-shmlimit="$TMP/installed" CFLAGS='-O1 -Wall -Werror' && make) >"$TMP/log" 2>&1 </dev/null
rc=$?
ok $rc "phpize builds the extension without a warning"
[ $rc -eq 0 ] || diag "$(tail -n 20 "$TMP/log")"
[ "$(ls "$TMP/ext/tests" | grep -c 'phpt$')" -ge 2 ]
ok $? "the extension has tests of its own"
(cd "$TMP/ext" && make test TESTS='-q tests' NO_INTERACTION=1) >"$TMP/log" 2>&1 </dev/null
rc=$?
ok $rc "the extension's own tests pass"
[ $rc -eq 0 ] || diag "$(cat "$TMP/log" "$TMP"/ext/tests/*.diff)"
for file in composer.json ext/composer.json; do
	php -r 'exit(is_array(json_decode(file_get_contents($argv[1]), true)) ? 0 : 1);' "$SOURCE/tools/php/$file"
	ok $? "tools/php/$file is JSON"
done

cat >"$TMP/declared.php" <<'END'
<?php
class_exists(Shmlimit\Gate::class) || require getenv('BUILD') . '/php/Shmlimit/preload.php';
foreach (['Error', 'Result', 'Count', 'Limit', 'Answer', 'Limiter', 'Gate'] as $name) {
    $class = new ReflectionClass("Shmlimit\\$name");
    echo $class->getName(), ' ', $class->isFinal() ? 'final' : '', "\n";
    foreach ($class->getReflectionConstants() as $constant) {
        echo $constant->isPublic() ? "$constant->name = {$constant->getValue()}\n" : '';
    }
    foreach ($class->getProperties(ReflectionProperty::IS_PUBLIC) as $property) {
        echo "{$property->getType()} $property->name {$property->isReadOnly()}\n";
    }
    foreach ($class->getMethods(ReflectionMethod::IS_PUBLIC) as $method) {
        if ($method->class !== $class->getName() || in_array($method->name, ['__destruct', '__debugInfo'], true)) {
            continue;
        }
        $parameters = array_map(fn (ReflectionParameter $p) => "{$p->getType()} " . ($p->isVariadic() ? '...' : '') . $p->name
            . ($p->isDefaultValueAvailable() ? ' = ' . json_encode($p->getDefaultValue()) : ''), $method->getParameters());
        echo $method->isStatic() ? 'static ' : '', $method->name, '(', implode(', ', $parameters), "): {$method->getReturnType()}\n";
    }
}
END
declared() { php "$@" "$TMP/declared.php" | sort; }
# shellcheck disable=SC2086 # two words
declared $extension >"$TMP/extension"
declared >"$TMP/ffi"
[ "$(wc -l <"$TMP/ffi")" -gt 60 ]
ok $? "both kinds of classes declare something"
is "$(diff "$TMP/ffi" "$TMP/extension")" "" "the extension declares what the classes over FFI declare"

# laws NAME: those of the classes over FFI, with the extension; each has a segment of its own.
laws() {
	run env SEGMENT="$SEGMENT.$1" TMP="$TMP" EXTENSION="$TMP/ext/modules/shmlimit.so" php -d extension="$TMP/ext/modules/shmlimit.so" "$SOURCE/tools/php/tests/$1.php"
	is "$rc" 0 "all laws of php_$1 hold with the extension"
	[ "$rc" -eq 0 ] || diag "$out" "$err"
}
shmlimit create "$SEGMENT.limiter" --slots 64
shmlimit rule set "$SEGMENT.limiter" r --capacity 5 --rate 1/d --max-wait 9d
shmlimit rule set "$SEGMENT.limiter" s --capacity 1 --rate 1/d
laws limiter
laws gate
laws pacer

cat >"$TMP/leaks.php" <<'END'
<?php
use Shmlimit\{Gate, Limit, Limiter};

$segment = getenv('SEGMENT');
Limiter::create($segment);
$call = function () use ($segment) {
    (new Limiter($segment))->setRule('r', 1000000, 1, 3600 * 10 ** 9);
    (new Limiter($segment))->take('r', 'k');
    (new Limiter($segment))->takeAll([new Limit('r', 'k')]);
    $report = fn () => null;
    $gate = new Gate($segment, spec: 'x_fields create=yes', report: $report);
    $gate->ask(new Limit('r', 'k', 2), new Limit('r', 'l'));
    $gate->leave($gate->enter(new Limit('hold', 'k', rate: '1 at once'))->places);
    try {
        (new Gate($segment))->ask(new Limit('absent', 'k', rate: 'no rate'));
    } catch (Shmlimit\Error) {
    }
};
$call();
$before = memory_get_usage();
$descriptors = count(scandir('/proc/self/fd'));
for ($i = 0; $i < 2000; $i++) {
    $call();
}
gc_collect_cycles();
echo memory_get_usage() - $before < 10000 ? 'no leak' : memory_get_usage() - $before, ' ',
    count(scandir('/proc/self/fd')) - $descriptors;
END
# shellcheck disable=SC2086
is "$(php $extension "$TMP/leaks.php" 2>&1)" "no leak 0" "objects of a request leave neither memory nor descriptors behind"
rm -f "$SHM$SEGMENT"
cat >"$TMP/many.php" <<'END'
<?php
use Shmlimit\Limiter;

$limiters = [];
for ($i = 0; $i < 100; $i++) {
    $name = getenv('SEGMENT') . ".$i";
    Limiter::create($name, slots: 16);
    $limiters[$i % 80] = new Limiter($name);
    $limiters[$i % 80]->setRule('r', 5, 1, 3600 * 10 ** 9);
}
echo array_sum(array_map(fn (Limiter $limiter) => $limiter->take('r', 'k')->remaining, $limiters)), "\n";
$first = getenv('SEGMENT') . '.0';
unlink(getenv('SHM') . $first);
Limiter::create($first, slots: 16);
for ($tries = 0; $tries < 6000; $tries++) {
    try {
        (new Limiter($first))->take('r', 'k');
    } catch (Shmlimit\Error $error) {
        exit($error->getMessage() === "$first: rule r: no such rule" ? "opened again\n" : $error->getMessage());
    }
    usleep(10000);
}
END
# shellcheck disable=SC2086
is "$(php $extension "$TMP/many.php" 2>&1)" "320
opened again" "a process can open more segments than are kept, and opens one again that was replaced"

shmlimit create "$SEGMENT" --slots 64
shmlimit rule set "$SEGMENT" shared --algorithm lease --capacity 5 --rate 1/d
cat >"$TMP/thread.php" <<'END'
<?php
use Shmlimit\{Gate, Limit};

$lines = [];
$gate = new Gate(getenv('SEGMENT'), backend: 'unix:///nonexistent/redis', spec: 'agent=thread', report: function (string $line) use (&$lines) {
    $lines[] = $line;
});
$threads = fn () => count(array_filter(glob('/proc/self/task/*/comm'), fn ($file) => @file_get_contents($file) === "shmlimit-agent\n"));
for ($end = hrtime(true) + 60 * 10 ** 9, $had = 0; hrtime(true) < $end && ($had === 0 || $lines === []);) {
    $gate->ask(new Limit('shared', 'k' . hrtime(true)));
    $had += $threads();
    usleep(1000);
}
echo $had > 0 ? 'thread ' : '', preg_match('/^backend .*: no connection/', $lines[0] ?? ''), "\n";
END
# shellcheck disable=SC2086
is "$(php $extension "$TMP/thread.php" 2>&1)" "thread 1" "what the thread of agent=thread reports comes with a call"
# shellcheck disable=SC2086
run env SHMLIMIT="$BUILD/php/Shmlimit" php $extension "$SOURCE/tools/php/bench/take.php" PHP "$SEGMENT.bench" 0.001
is "$rc $(printf '%s\n' "$out" | grep -cv '^PHP: .*	-\{0,1\}[0-9]*\.[0-9]$') $err" "0 0 " "the bench prints rows of a figure and a number"
done_testing
