/*
 * key_ip: any text is an address in one of the forms that shmlimit(3) has, or
 * none, and so is an element of a list; two keys are the same if, and only if,
 * family, prefix and net are.
 *
 *	input  [ prefix of IPv4, 1 ] [ of IPv6, 1 ] [ which element, signed, 1 ] [ text ... ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <regex.h>

#include "fuzz.h"
#include "shmlimit.h"

#define PREFIX_MAX_4 32
#define PREFIX_MAX_6 128

#define BLANK " \t\r\n"

/* The text without blanks at its ends, and then without the only quotes in it, at its ends. Changes the text. */
static char *bare_of(char *text)
{
	for (int quoted = 0; quoted < 2; quoted++) {
		size_t len;

		text += strspn(text, BLANK);
		len = strlen(text);
		while (len > 0 && strchr(BLANK, text[len - 1]) != NULL)
			text[--len] = '\0';
		if (quoted || len < 2 || text[0] != '"' || strchr(text + 1, '"') != text + len - 1)
			continue;
		text[len - 1] = '\0';
		text++;
	}
	return text;
}

static int matches(const char *pattern, const char *text, regmatch_t part[4])
{
	regex_t regex;
	int found;

	law(regcomp(&regex, pattern, REG_EXTENDED) == 0, "%s", pattern);
	found = regexec(&regex, text, 4, part, 0) == 0;
	regfree(&regex);
	return found;
}

/* As the manual says. Returns the address's length, or 0. Changes the text. */
static size_t read_address(char *text, unsigned char *address)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	char *t = bare_of(text);
	regmatch_t part[4];
	size_t len = 0;
	int family = AF_INET6;

	if (matches("^\\[([^]%]*)(%[^]\"[,; \t\r\n]+)?](:[0-9]{1,5})?$", t, part)) {
		len = 16;
	} else if (matches("^([^]%[]*)(%[^]\"[,; \t\r\n]+)?()$", t, part) && strchr(t, ':') != NULL &&
	           (strchr(t, '.') == NULL || strchr(t, ':') < strchr(t, '.'))) {
		len = 16;
	} else if (matches("^([0-9.]+)()(:[0-9]{1,5})?$", t, part)) {
		len = 4;
		family = AF_INET;
	}
	if (len == 0 || (part[3].rm_so >= 0 && part[3].rm_so < part[3].rm_eo && atoi(t + part[3].rm_so + 1) > 65535))
		return 0;
	t[part[1].rm_eo] = '\0';
	if (inet_pton(family, t + part[1].rm_so, address) != 1)
		return 0;
	if (len != 16 || memcmp(address, mapped, sizeof(mapped)) != 0)
		return len;
	memmove(address, address + sizeof(mapped), 4);
	return 4;
}

/* An element of a list, or NULL. Changes the text. */
static char *element_of(char *text, int nth)
{
	char *list = bare_of(text), *elements[4096], *element;
	int count = 0;

	while ((element = strsep(&list, ",")) != NULL && count < 4096)
		if (element[strspn(element, BLANK)] != '\0')
			elements[count++] = element;
	if (nth < 0)
		nth += count + 1;
	return nth >= 1 && nth <= count ? elements[nth - 1] : NULL;
}

static void check_key(const unsigned char *key, const unsigned char *address, size_t len, unsigned prefix)
{
	law(key[0] == (len == 4 ? 4 : 6) && key[1] == prefix, "family %u, prefix %u", key[0], key[1]);
	for (unsigned bit = 0; bit < 8 * len; bit++) {
		int is = key[2 + bit / 8] >> (7 - bit % 8) & 1, was = address[bit / 8] >> (7 - bit % 8) & 1;

		law(is == (bit < prefix ? was : 0), "bit %u", bit);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	unsigned prefix_v4 = (unsigned)input_number(&in, 1), prefix_v6 = (unsigned)input_number(&in, 1);
	int nth = (int8_t)input_number(&in, 1);
	unsigned char key[SHMLIMIT_KEY_IP_MAX], address[16];
	char *text = strndup((const char *)in.at, in.left), *copy = strdup(text);
	char *element = nth == 0 ? copy : element_of(copy, nth);
	int in_range = prefix_v4 <= PREFIX_MAX_4 && prefix_v6 <= PREFIX_MAX_6;
	int len = shmlimit_key_ip_text(text, nth, prefix_v4, prefix_v6, key, sizeof(key));
	size_t want = element != NULL ? read_address(element, address) : 0;

	law(len == (want != 0 && in_range ? (int)want + 2 : -EINVAL), "%d of \"%s\": %d", nth, text, len);
	if (len > 0) {
		unsigned char *exact = malloc((size_t)len);

		check_key(key, address, want, want == 4 ? prefix_v4 : prefix_v6);
		law(shmlimit_key_ip(address, want, prefix_v4, prefix_v6, exact, (size_t)len) == len &&
		            memcmp(exact, key, (size_t)len) == 0,
		    "the same address makes another key");
		law(shmlimit_key_ip(address, want, prefix_v4, prefix_v6, exact, (size_t)len - 1) == -ENOBUFS,
		    "a key that does not fit");
		free(exact);
	}
	free(copy);
	free(text);
	return 0;
}
