/*
 * grown: what grown.sh builds against today's header, and runs with a library whose structures have one member more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <shmlimit.h>
#include <stdio.h>

int main(int argc, char *argv[])
{
	const char *name = argc > 1 ? argv[1] : "test.grown";
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };
	struct shmlimit_rule places = {
		.struct_size = sizeof(places), .algorithm = SHMLIMIT_HOLD, .capacity = 2, .period_ns = 60000000000
	};
	struct shmlimit_rule counter = { .struct_size = sizeof(counter), .algorithm = SHMLIMIT_COUNTER, .capacity = 5 };
	struct shmlimit_count_request three = { .struct_size = sizeof(three), .n = 3, .bound = 5 };
	/* What is written beyond the first element would be seen in the second one. */
	struct shmlimit_place hold[2] = { { .struct_size = sizeof(hold[0]) }, { .value = 77 } };
	struct shmlimit_count count[2] = { { .struct_size = sizeof(count[0]) }, { .count = 77 } };
	struct shmlimit_info info[2] = { { .struct_size = sizeof(info[0]) }, { .size = 77 } };
	struct shmlimit *l;

	printf("open %d\n", shmlimit_open(name, SHMLIMIT_OPEN_CREATE, &options, &l));
	printf("rule %d\n", shmlimit_rule_set(l, "places", &places));
	printf("rule %d\n", shmlimit_rule_set(l, "count", &counter));
	printf("enter %d\n", shmlimit_enter(l, 0, "user:42", 7, hold, NULL));
	printf("renew %d\n", shmlimit_renew(l, 0, "user:42", 7, hold));
	printf("leave %d\n", shmlimit_leave(l, 0, "user:42", 7, hold));
	printf("count %d\n", shmlimit_count(l, 1, "user:42", 7, &three, count));
	printf("info %d\n", shmlimit_info(l, info));
	printf("it is %d, of %d slots\n", (int)count[0].count, (int)info[0].slots);
	printf("beyond: %d %d %d\n", (int)hold[1].value + (int)hold[1].struct_size,
	       (int)count[1].count + (int)count[1].struct_size, (int)info[1].size + (int)info[1].struct_size);
	shmlimit_close(l);
	return shmlimit_destroy(name);
}
