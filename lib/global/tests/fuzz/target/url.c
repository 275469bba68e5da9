/*
 * url: any text is a backend's URL or is refused with a reason. A URL that is accepted has the hosts that its text
 * shows, in order, and its text is a URL of the same backend.
 *
 *	input  [ text ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz/target/fuzz.h"
#include "url.h"

static void check_url(const struct url *url)
{
	char text[URL_TEXT_MAX], whole[URL_TEXT_MAX + 32], why[URL_WHY_MAX];
	struct url again = *url;

	law((url->path[0] != '\0') == (url->host[0] == '\0'), "a path and a host, or neither");
	law(url->others < URL_HOSTS_MAX && url->db <= 65535, "%u others, database %u", url->others, url->db);
	for (unsigned i = 0; i <= url->others; i++)
		url_next(&again);
	url_text(url, text);
	law(strcmp(url_text(&again, whole), text) == 0, "%s, and after the last host %s", text, whole);
	/* A host with a reserved character is %-encoded in a URL, and not in the text. */
	snprintf(whole, sizeof(whole), "%s%s",
	         url->path[0] != '\0'      ? "unix://"
	         : url->primary[0] != '\0' ? "redis+sentinel://"
	                                   : "rediss://",
	         text);
	if (strcspn(text + (url->path[0] != '\0'), "%@?#") < strlen(text + (url->path[0] != '\0')) ||
	    url_parse(whole, &again, why) != 0)
		return;
	if (again.others == url->others)
		law(strcmp(again.host, url->host) == 0 && strcmp(again.port, url->port) == 0 && again.db == url->db,
		    "%s", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), why[URL_WHY_MAX] = "";
	struct url url;

	if (url_parse(text, &url, why) == 0)
		check_url(&url);
	else
		law(why[0] != '\0', "\"%s\" is refused without a reason", text);
	free(text);
	return 0;
}
