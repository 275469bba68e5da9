/*
 * spec: any text is a gate's spec or is refused at a word that is in it; what is accepted holds together.
 *
 *	input  [ text ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"
#include "spec.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	setenv("SHMLIMIT_BACKEND", "redis://host", 1);
	return 0;
}

static void check_rate(const struct spec *spec, const struct spec_rule *rule)
{
	uint64_t capacity_max;

	if (!rule->has_rate)
		return;
	law(spec->create, "%s: a rate without create=yes", rule->name);
	law(shmlimit_rule_capacity_max(&rule->rate, &capacity_max) == 0 && rule->rate.capacity <= capacity_max,
	    "%s: a rate that no rule can have", rule->name);
}

static void check_spec(const struct spec *spec)
{
	law(shmlimit_check_names(spec->segment, NULL) == 0, "segment %s", spec->segment);
	law(spec->rule_count <= spec->limit_count && spec->limit_count <= SHMLIMIT_GATE_LIMITS_MAX,
	    "%zu rules, %zu limits", spec->rule_count, spec->limit_count);
	for (size_t i = 0; i < spec->rule_count; i++) {
		law(shmlimit_check_names(NULL, spec->rules[i].name) == 0, "rule %s", spec->rules[i].name);
		for (size_t j = 0; j < i; j++)
			law(strcmp(spec->rules[i].name, spec->rules[j].name) != 0, "%s comes twice",
			    spec->rules[i].name);
		check_rate(spec, &spec->rules[i]);
	}
	for (size_t i = 0; i < spec->limit_count; i++) {
		const struct spec_limit *limit = &spec->limits[i];

		law(limit->rule < spec->rule_count, "limit %zu has no rule", i);
		law(limit->cost > 0 && limit->status >= 400 && limit->status <= 599 && limit->prefix_v4 <= 32 &&
		            limit->prefix_v6 <= 128,
		    "limit %zu is out of range", i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shmlimit_gate_wrong wrong = { .length = 0 };
	char *text = strndup((const char *)data, size);
	struct spec spec;

	if (spec_read(text, &spec, &wrong) == 0) {
		check_spec(&spec);
		spec_free(&spec);
	} else {
		law(wrong.offset + (size_t)wrong.length <= strlen(text), "%u bytes from %u are not in the text",
		    wrong.length, wrong.offset);
		law(wrong.text[0] != '\0' && strlen(wrong.text) < sizeof(wrong.text) - 1,
		    "what is wrong is not said, or cut");
	}
	free(text);
	return 0;
}
