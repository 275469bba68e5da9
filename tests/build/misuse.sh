#!/bin/sh
# misuse: arguments in a wrong order, or of another call, are errors of the compiler, in C and C++. What compiles and is
# wrong all the same is -EINVAL: see unit/flags and unit/errors.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need gcc g++

# compiles COMPILER STATEMENT: with warnings as errors.
compiles() {
	cat >"$TMP/misuse.c" <<-END
		#include <shmlimit.h>
		#include <shmlimit_lease.h>
		int f(struct shmlimit *l, int rule, struct shmlimit_result *r, struct shmlimit_count *count,
		      struct shmlimit_count_request *c, struct shmlimit_place *place, struct shmlimit_lease *lease,
		      struct shmlimit_lease_request *q, struct shmlimit_options *options, struct shmlimit_rule *limit,
		      struct shmlimit **out, uint64_t now_ns);
		int f(struct shmlimit *l, int rule, struct shmlimit_result *r, struct shmlimit_count *count,
		      struct shmlimit_count_request *c, struct shmlimit_place *place, struct shmlimit_lease *lease,
		      struct shmlimit_lease_request *q, struct shmlimit_options *options, struct shmlimit_rule *limit,
		      struct shmlimit **out, uint64_t now_ns)
		{
			(void)l, (void)rule, (void)r, (void)count, (void)c, (void)place, (void)lease, (void)q, (void)options;
			(void)limit, (void)out, (void)now_ns;
			return $2;
		}
	END
	# shellcheck disable=SC2086
	$1 -Wall -Wextra -pedantic -Werror -fsyntax-only -I "$SOURCE/include" "$TMP/misuse.c" 2>"$TMP/err"
}

while IFS='|' read -r kind right wrong; do
	for compiler in 'gcc -std=c11' 'g++ -x c++ -std=c++17'; do
		compiles "$compiler" "$right"
		ok $? "${compiler%% *}: right: $right"
		[ ! -s "$TMP/err" ] || diag "$(cat "$TMP/err")"
		compiles "$compiler" "$wrong"
		is $? 1 "${compiler%% *}: $kind: $wrong"
	done
done <<'END'
a time where none is read|shmlimit_take(l, rule, "k", 1, 1, r)|shmlimit_take(l, rule, "k", 1, 1, r, now_ns)
a time alone|shmlimit_set_time(l, &now_ns)|shmlimit_set_time(l, now_ns)
a key without its length|shmlimit_take(l, rule, "k", 1, 1, r)|shmlimit_take(l, rule, "k", 1, r)
count's numbers as arguments|shmlimit_count(l, rule, "k", 1, c, count)|shmlimit_count(l, rule, "k", 1, 1, 0, 5, count)
what count found for what it is asked|shmlimit_count(l, rule, "k", 1, c, count)|shmlimit_count(l, rule, "k", 1, count, c)
a lease's numbers as arguments|shmlimit_lease_take(l, rule, "k", 1, q, lease, r)|shmlimit_lease_take(l, rule, "k", 1, 1, 2, lease, r)
what is leased for what is asked|shmlimit_lease_take(l, rule, "k", 1, q, lease, r)|shmlimit_lease_take(l, rule, "k", 1, lease, q, r)
the result for the place|shmlimit_enter(l, rule, "k", 1, place, r)|shmlimit_enter(l, rule, "k", 1, r, place)
a cost of a place|shmlimit_enter(l, rule, "k", 1, place, r)|shmlimit_enter(l, rule, "k", 1, 1, place, r)
a rule's name for its id|shmlimit_take(l, rule, "k", 1, 1, r)|shmlimit_take(l, "api", "k", 1, 1, r)
options for flags|shmlimit_open("web", SHMLIMIT_OPEN_CREATE, options, out)|shmlimit_open("web", options, SHMLIMIT_OPEN_CREATE, out)
a limit for options|shmlimit_create("web", options, out)|shmlimit_create("web", limit, out)
a handle for where it goes|shmlimit_create("web", options, out)|shmlimit_create("web", options, l)
a limit's text for the limit|shmlimit_rule_ensure(l, "api", limit)|shmlimit_rule_ensure(l, "api", "5/minute")
END
if [ "$(uname -m)" = x86_64 ]; then
	echo '#include "atomic.h"' >"$TMP/machine.c"
	like "$(gcc -m32 -ffreestanding -fsyntax-only -I "$SOURCE/include" -I "$SOURCE/lib/segment" -I "$SOURCE/lib/base" "$TMP/machine.c" 2>&1)" \
		'#error "shmlimit needs a 64-bit machine: ' "a build for a 32-bit machine is refused, with the reason"
fi
done_testing
