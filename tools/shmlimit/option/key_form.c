/*
 * key_form.c: see key_form.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "address.h"
#include "fail.h"
#include "key_form.h"
#include "key_text.h"

static void make_net(const struct address *address, unsigned v4, unsigned v6, struct key *key)
{
	int len = shmlimit_key_ip(address->bytes, address->len, v4, v6, key->bytes, sizeof(key->bytes));

	key->len = len > 0 ? (size_t)len : 0;
}

/*
 * Has the key taken tokens that are not back yet? An algorithm that cannot be peeked at does not
 * say.
 */
static int lives(struct shmlimit *limiter, int rule, const struct key *key)
{
	struct shmlimit_result r;
	int answer = shmlimit_peek(limiter, rule, key->bytes, key->len, 1, &r);

	return answer == SHMLIMIT_DENIED || (answer == SHMLIMIT_ALLOWED && r.reset_after_ns > 0);
}

/* The longest prefix whose key lives becomes *net. Returns whether there is one. */
int key_find_net(struct shmlimit *limiter, int rule, const struct address *address, struct key *net)
{
	for (int bits = 128; bits > 0; bits--) {
		if (address->len == 4 && bits > 32)
			continue;
		make_net(address, bits > 32 ? 32 : (unsigned)bits, (unsigned)bits, net);
		/* An IPv4-mapped address is IPv4. */
		if (net->bytes[1] == bits && lives(limiter, rule, net))
			return 1;
	}
	return 0;
}

static void note(const unsigned char *key, size_t len, struct key_traces *traces)
{
	char text[KEY_TEXT_LEN];
	struct address ignored;

	if (key_ip_show(text, key, len)) {
		int *longest = len == 6 ? &traces->v4 : &traces->v6;

		if (key[1] > *longest)
			*longest = key[1];
	} else if (address_read((const char *)key, len, &ignored)) {
		traces->text = 1;
	}
}

static int has_any(const struct key_traces *traces)
{
	return traces->text || traces->v4 >= 0 || traces->v6 >= 0;
}

/* Those of the rule, and those of all others. */
static void find_traces(struct shmlimit *limiter, int rule, struct key_traces *own, struct key_traces *others)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	unsigned char key[SHMLIMIT_KEY_MAX];
	uint64_t now_ns = shmlimit_now(limiter);

	*own = *others = (struct key_traces){ 0, -1, -1 };
	if (shmlimit_info(limiter, &info) != 0 || info.store_keys == 0)
		return;
	for (uint64_t i = 0; i < info.slots + info.old_slots; i++) {
		size_t key_len = 0;
		int len;

		if (shmlimit_slot(limiter, i, &slot, now_ns) != 0 || slot.rule < 0)
			continue;
		len = shmlimit_slot_key(limiter, i, &slot, key, sizeof(key), &key_len);
		if (len > 0 && (size_t)len == key_len)
			note(key, key_len, slot.rule == rule ? own : others);
	}
}

struct key_traces key_traces_of_others(struct shmlimit *limiter, int rule)
{
	struct key_traces own, others;

	find_traces(limiter, rule, &own, &others);
	return others;
}

/* The rule's own keys are what counts; those of other rules count if it has none. */
static struct key_traces traces_of(struct shmlimit *limiter, int rule)
{
	struct key_traces own, others;

	find_traces(limiter, rule, &own, &others);
	return has_any(&own) ? own : others;
}

static void add(struct key_forms *forms, const struct key *key)
{
	forms->key[forms->count++] = *key;
}

/* What other addresses show, or both forms. */
static void guess(struct shmlimit *limiter, int rule, const struct key *text, const struct address *address,
                  struct key_forms *forms)
{
	struct key_traces traces = traces_of(limiter, rule);
	unsigned v4 = traces.v4 >= 0 ? (unsigned)traces.v4 : KEY_PREFIX_V4;
	unsigned v6 = traces.v6 >= 0 ? (unsigned)traces.v6 : KEY_PREFIX_V6;
	struct key net = { .text = NULL };
	int nets = traces.v4 >= 0 || traces.v6 >= 0;

	make_net(address, v4, v6, &net);
	forms->known = nets != traces.text;
	if (!nets || traces.text)
		add(forms, text);
	if (nets || !traces.text)
		add(forms, &net);
}

void key_forms(struct shmlimit *limiter, int rule, const struct key *given, struct key_forms *forms)
{
	struct address address;
	struct key net = { .text = NULL };

	*forms = (struct key_forms){ .known = 1 };
	if (given->text == NULL || !address_read(given->text, strlen(given->text), &address)) {
		add(forms, given);
		return;
	}
	if (rule >= 0 && lives(limiter, rule, given))
		add(forms, given);
	if (rule >= 0 && key_find_net(limiter, rule, &address, &net))
		add(forms, &net);
	if (forms->count == 0)
		guess(limiter, rule, given, &address, forms);
}

void key_choose(struct shmlimit *limiter, int rule, struct key *key)
{
	struct key_forms forms;
	const char *text = key->text;
	char shown[KEY_TEXT_LEN];

	key_forms(limiter, rule, key, &forms);
	if (forms.count == 1 && forms.key[0].text == text)
		return;
	if (forms.known) {
		*key = forms.key[forms.count - 1];
		key_show(shown, key->bytes, key->len, key->len);
		fail("key %s: taken for the address %s, as servers with prefix= store it (the text itself: --key-text %s)",
		     text, shown, text);
	} else {
		fail("key %s: taken as text; servers with prefix= store an address in another form: --key-ip %s (without "
		     "this message: --key-text %s)",
		     text, text, text);
	}
}
