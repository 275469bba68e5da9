#!/bin/sh
# layers: the rooms of the libraries are in the order that lib/README.md says. No call and no header goes up, no files call
# each other in a circle, no external name is defined twice, no two files have one name, and no two files of one library have a
# type, a tag or a static function of one name.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need perl
need nm

is "$(perl "$SOURCE/tests/build/layers.pl" "$SOURCE" "$BUILD")" "" \
	"no call goes up, none goes round in a circle, and each name is defined once"

# The check itself can fail.
kit=$TMP/kit
mkdir -p "$kit/lib/low" "$kit/lib/high" "$kit/lib/attic" "$kit/lib/gate" "$kit/lib/algorithm/toy" "$kit/lib/api"
printf -- '- `low/`:\n- `high/`:\n- `algorithm/`:\n- `api/`:\n- `gate/`:\n- `gone/`:\n' >"$kit/lib/README.md"
printf 'int shmlimit_toy(void);\nint toy(void) { return shmlimit_toy(); }\n' >"$kit/lib/algorithm/toy/toy.c"
printf '#define EXPORT\nint high(void);\nEXPORT int shmlimit_toy(void);\nEXPORT int shmlimit_toy(void) { return high(); }\n' >"$kit/lib/algorithm/toy/toys.c"
printf 'int high(void);\nint up(void) { return high(); }\n' >"$kit/lib/low/up.c"
printf '#include "high.h"\nint sum;\n' >"$kit/lib/low/include.c"
printf 'int two(void);\nint one(void) { return two(); }\n' >"$kit/lib/low/one.c"
printf 'int three(void);\nint two(void) { return three(); }\n' >"$kit/lib/low/two.c"
printf 'int one(void), up(void);\nint three(void) { return one() + up(); }\n' >"$kit/lib/low/three.c"
printf 'int high(void);\n' >"$kit/lib/high/high.h"
printf '#include "high.h"\nint one(void);\nint high(void) { return one(); }\nint sum;\n' >"$kit/lib/high/high.c"
printf 'int shmlimit_up(void) { return 0; }\n' >"$kit/lib/high/up.c"
printf 'int attic;\n' >"$kit/lib/attic/attic.c"
printf 'int high(void), shmlimit_up(void);\nint gate(void) { return high() + shmlimit_up(); }\n' >"$kit/lib/gate/gate.c"
printf 'int old;\n' >"$kit/lib/gate/high.c"
printf 'struct pair { int a; };\ntypedef int twice;\nstatic int help(int a)\n{\n\treturn a;\n}\nint helped(void) { return help(1); }\n' >"$kit/lib/low/names.c"
printf 'union pair { int a; };\ntypedef int twice;\n__attribute__((cold)) static inline int help(int a,\n\tint b) { return a + b; }\n' >"$kit/lib/high/names.h"
printf 'struct pair { int a; };\n' >"$kit/lib/gate/pair.h"
mkdir -p "$kit/tools/shmlimit/cmd"
printf 'int ask(void);\nint tell(void) { return ask(); }\n' >"$kit/tools/shmlimit/tell.c"
printf 'int tell(void);\nint ask(void) { return tell(); }\n' >"$kit/tools/shmlimit/cmd/ask.c"
compiler=$(command -v cc || command -v gcc) || skip_all "no compiler"
for file in low/up low/include low/names low/one low/two low/three high/high high/up algorithm/toy/toy algorithm/toy/toys gate/gate; do
	mkdir -p "$kit/build/lib/${file%/*}"
	"$compiler" -I"$kit/lib/high" -c -o "$kit/build/lib/$file.o" "$kit/lib/$file.c"
done
for file in tell cmd/ask; do
	mkdir -p "$kit/build/tools/shmlimit/cmd"
	"$compiler" -c -o "$kit/build/tools/shmlimit/$file.o" "$kit/tools/shmlimit/$file.c"
done
is "$(perl "$SOURCE/tests/build/layers.pl" "$kit" "$kit/build")" \
	"room gone: there is no such folder
lib/attic/attic.c: its room is not in the list of lib/README.md
high.c: in gate and high
up.c: in high and low
lib/gate/high.c: $kit/build/lib/gate/high.o is not built
sum: defined in lib/high/high.c and lib/low/include.c
gate/gate.c calls high, which high/high.c does not make public
algorithm/toy/toy.c calls up to algorithm/toy/toys.c: shmlimit_toy
low/up.c calls up to high/high.c: high
circle: low/one.c -> low/two.c -> low/three.c -> low/one.c
circle: tools/shmlimit/cmd/ask.c -> tools/shmlimit/tell.c -> tools/shmlimit/cmd/ask.c
function help: in high/names.h and low/names.c
type pair: in high/names.h and low/names.c
type twice: in high/names.h and low/names.c
low/include.c includes high/high.h, above it" "the check finds each of these mistakes"
done_testing
