/*
 * choice.c: the words for what the library numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "choice.h"
#include "command.h"
#include "fail.h"
#include "number_text.h"
#include "traits.h"

const struct choice choices_on_full[] = {
	{ "evict", SHMLIMIT_FULL_EVICT },
	{ "allow", SHMLIMIT_FULL_ALLOW },
	{ "deny", SHMLIMIT_FULL_DENY },
	{ 0 },
};

const struct choice choices_clock[] = {
	{ "precise", SHMLIMIT_CLOCK_PRECISE },
	{ "coarse", SHMLIMIT_CLOCK_COARSE },
	{ 0 },
};

const struct choice choices_mode[] = {
	{ "enforce", SHMLIMIT_ENFORCE },
	{ "dry-run", SHMLIMIT_DRY_RUN },
	{ "off", SHMLIMIT_OFF },
	{ "block", SHMLIMIT_BLOCK },
	{ 0 },
};

/* What a slot of a lease says. */
const struct choice choices_lease[] = {
	{ "tokens", SHMLIMIT_SLOT_TOKENS },
	{ "denied", SHMLIMIT_SLOT_DENIED },
	{ "asked", SHMLIMIT_SLOT_ASKED },
	{ 0 },
};

const struct choice choices_law[] = {
	{ "none", 0 },
	{ "vegas", SHMLIMIT_LAW_VEGAS },
	{ "gradient2", SHMLIMIT_LAW_GRADIENT2 },
	{ "aimd", SHMLIMIT_LAW_AIMD },
	{ 0 },
};

const struct choice choices_yes[] = {
	{ "yes", 1 },
	{ "no", 0 },
	{ 0 },
};

const struct choice *choices_algorithm(void)
{
	static struct choice choices[2 * ALGORITHMS + 1];
	struct choice *c = choices;

	if (c->word != NULL)
		return choices;
	for (uint32_t i = 0; i < ALGORITHMS; i++) {
		*c++ = (struct choice){ traits_of(i)->name, i };
		if (traits_of(i)->alias != NULL)
			*c++ = (struct choice){ traits_of(i)->alias, i };
	}
	return choices;
}

int choice_parse(const char *what, const char *text, const struct choice *choices, uint32_t *value)
{
	char words[4 * TEXT_LEN] = "";

	for (const struct choice *c = choices; c->word != NULL; c++) {
		if (strcmp(c->word, text) == 0) {
			*value = c->value;
			return STATUS_OK;
		}
		strcat(words, c == choices ? "" : c[1].word != NULL ? ", " : " or ");
		strcat(words, c->word);
	}
	return fail("%s %s: must be %s", what, text, words);
}

const char *choice_word(const struct choice *choices, uint32_t value)
{
	for (; choices->word != NULL; choices++)
		if (choices->value == value)
			return choices->word;
	return "unknown";
}
