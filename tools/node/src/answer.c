/*
 * answer: what JavaScript gets of an answer, besides the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "gate.h"

#define FIELD_NAME 64 /* bytes for a field's name, and what separates it */

napi_value answer_fields(napi_env env, const struct shmlimit_gate_answer *answer)
{
	char lines[SHMLIMIT_GATE_BUFFER + SHMLIMIT_GATE_FIELDS_MAX * FIELD_NAME], *at = lines;
	napi_value text = NULL;

	for (uint32_t i = 0; i < answer->field_count; i++) {
		const struct shmlimit_gate_field *field = &answer->fields[i];

		if (field->name_length + 2 > FIELD_NAME)
			continue;
		at = mempcpy(at, field->name, field->name_length);
		*at++ = '\n';
		at = mempcpy(at, field->value, field->value_length);
		*at++ = '\n';
	}
	napi_create_string_latin1(env, lines, at == lines ? 0 : (size_t)(at - lines) - 1, &text);
	return text;
}

napi_value answer_array(napi_env env, int answer, const struct shmlimit_gate_answer *out,
                        const struct shmlimit_gate_key *keys, napi_value places)
{
	double numbers[NUMBERS];
	napi_value array = NULL, value;

	if (napi_create_array_with_length(env, NUMBERS - OUTCOME + 3, &array) != napi_ok)
		return NULL;
	napi_set_element(env, array, 0, integer(env, answer));
	if (places != NULL)
		napi_set_element(env, array, NUMBERS - OUTCOME + 2, places);
	if (answer < 0)
		return array;
	answer_note(numbers, out, keys);
	for (uint32_t i = OUTCOME; i < NUMBERS; i++) {
		napi_create_double(env, numbers[i], &value);
		napi_set_element(env, array, i - OUTCOME + 1, value);
	}
	napi_set_element(env, array, NUMBERS - OUTCOME + 1, answer_fields(env, out));
	return array;
}
