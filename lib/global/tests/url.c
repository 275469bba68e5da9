/*
 * url: what a backend's URL says, and what is said of one that is wrong.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "url.h"
#include "scheme.h"
#include "tap.h"

static void good(const char *text, const char *user, const char *password, const char *shown)
{
	char why[URL_WHY_MAX] = "", again[URL_TEXT_MAX];
	struct url url;

	is(url_parse(text, &url, why), 0, "%s is read %s", text, why);
	is_str(url.user, user, "%s: its user", text);
	is_str(url.password, password, "%s: its password", text);
	is_str(url_text(&url, again), shown, "%s: where it is", text);
}

static void bad(const char *text, int error, const char *start)
{
	char why[URL_WHY_MAX] = "";
	struct url url;

	is(url_parse(text, &url, why), error, "%s is refused", text);
	ok(strncmp(why, start, strlen(start)) == 0, "%s: %s", start, why);
	ok(strstr(why, "must be") != NULL || strstr(why, "must begin") != NULL || strstr(why, "must have") != NULL,
	   "what would be right is said");
	ok(strstr(why, "secret") == NULL && strstr(why, "cret") == NULL, "no error about a URL shows its password");
}

static void long_parts(void)
{
	char text[1200];

	snprintf(text, sizeof(text), "redis://%0300d", 1);
	bad(text, -EINVAL, "host:");
	snprintf(text, sizeof(text), "redis://u:%0600d@h", 1);
	bad(text, -EINVAL, "password:");
	snprintf(text, sizeof(text), "unix:///%0107d", 1);
	bad(text, -EINVAL, "path:");
	snprintf(text, sizeof(text), "redis://%0250d,%0250d", 1, 1);
	bad(text, -EINVAL, "host: all hosts");
	snprintf(text, sizeof(text), "unix:///%0106d", 1);
	good(text, "", "", strcat(strcpy(text + 600, text + strlen("unix://")), "?db=0"));
}

static void files(void)
{
	char why[URL_WHY_MAX];
	struct url url;

	url_parse("rediss://a?cert=/c%26.pem&key=/k.pem&cacert=/a.pem", &url, why);
	is(url.tls, 1, "rediss: is TLS");
	is_str(url.cacert, "/a.pem", "cacert has a file");
	is_str(url.cert, "/c&.pem", "cert has a file");
	is_str(url.key, "/k.pem", "key has a file");
	url_parse("redis://a", &url, why);
	is(url.tls, 0, "redis: is not TLS");
}

static void rotation(void)
{
	char why[URL_WHY_MAX], text[URL_TEXT_MAX];
	struct url url;

	url_parse("redis://a,b:2,c/5", &url, why);
	url_next(&url);
	is_str(url_text(&url, text), "b:2,c:6379,a:6379/5", "the next host is the second one");
	url_next(&url);
	url_next(&url);
	is_str(url_text(&url, text), "a:6379,b:2,c:6379/5", "after the last host comes the first one");
	url_parse("redis://a", &url, why);
	url_next(&url);
	is_str(url_text(&url, text), "a:6379/0", "a single host is its own next one");
}

/* How often a text is in another. */
static int count(const char *all, const char *text)
{
	int n = 0;

	for (const char *at = strstr(all, text); at != NULL; at = strstr(at + 1, text))
		n++;
	return n;
}

static void names(void)
{
	size_t n = sizeof(schemes) / sizeof(schemes[0]);

	is(count(SCHEME_NAMES, "://"), n, "messages name as many schemes as there are");
	for (size_t i = 0; i < n; i++)
		ok(count(SCHEME_NAMES, schemes[i].name) >= 1, "messages name %s", schemes[i].name);
	bad("http://host", -EINVAL, "scheme: must be redis://, rediss://, ");
}

int main(void)
{
	names();
	good("redis://backend", "", "", "backend:6379/0");
	good("redis://backend/", "", "", "backend:6379/0");
	good("redis://10.0.0.1:7000/3", "", "", "10.0.0.1:7000/3");
	good("redis://[::1]:7000", "", "", "[::1]:7000/0");
	good("redis://:secret@backend", "", "secret", "backend:6379/0");
	good("redis://me:se%40cr%2Fet%3a@backend/15", "me", "se@cr/et:", "backend:6379/15");
	good("redis://m%25e:se@cret@backend", "m%e", "se@cret", "backend:6379/0");
	good("unix:///run/redis.sock", "", "", "/run/redis.sock?db=0");
	good("redis+unix:///run/a%3fb?db=7", "", "", "/run/a?b?db=7");
	good("unix://me:secret@/run/redis.sock", "me", "secret", "/run/redis.sock?db=0");
	good("unix:///run/at@redis", "", "", "/run/at@redis?db=0");

	good("redis://a,b:7000,[::1],[::2]:1/3", "", "", "a:6379,b:7000,[::1]:6379,[::2]:1/3");
	good("redis://me:se,cret@a,b", "me", "se,cret", "a:6379,b:6379/0");
	good("redis://1,2,3,4,5,6,7,8", "", "", "1:6379,2:6379,3:6379,4:6379,5:6379,6:6379,7:6379,8:6379/0");

	good("redis+sentinel://a/mymaster", "", "", "a:26379/mymaster/0");
	good("redis+sentinel://me:secret@a:1,b,[::1]/my-master_2.x/7", "me", "secret",
	     "a:1,b:26379,[::1]:26379/my-master_2.x/7");
	good("redis+sentinel://a/mymaster/", "", "", "a:26379/mymaster/0");

	good("rediss://:secret@backend", "", "secret", "backend:6379/0");
	good("rediss://a,b/3?cacert=/etc/ca.pem", "", "", "a:6379,b:6379/3");
	good("rediss://a?cert=/c%26.pem&key=/k.pem&cacert=/a.pem", "", "", "a:6379/0");
	good("rediss+sentinel://a/mymaster/?cacert=/a.pem", "", "", "a:26379/mymaster/0");

	bad("", -EINVAL, "scheme:");
	bad("backend:6379", -EINVAL, "scheme:");
	bad("http://backend", -EINVAL, "scheme:");
	bad("redis://", -EINVAL, "host:");
	bad("redis://:7000", -EINVAL, "host:");
	bad("redis://[::1", -EINVAL, "host:");
	bad("redis://[::1]x", -EINVAL, "host:");
	bad("redis://backend:", -EINVAL, "port:");
	bad("redis://backend:0", -EINVAL, "port:");
	bad("redis://backend:65536", -EINVAL, "port:");
	bad("redis://backend:07", -EINVAL, "port:");
	bad("redis://me:secret", -EINVAL, "port:");
	bad("redis://me:se/cret@backend", -EINVAL, "user:");
	bad("redis://secret@backend", -EINVAL, "user:");
	bad("redis://me:@backend", -EINVAL, "password:");
	bad("redis://me:secret%4@backend", -EINVAL, "password:");
	bad("redis://me:secret%@backend", -EINVAL, "password:");
	bad("redis://me:secret%00@backend", -EINVAL, "password:");
	bad("redis://eng%0aine", -EINVAL, "host:");
	bad("redis://backend/secret", -EINVAL, "database:");
	bad("redis://backend/65536", -EINVAL, "database:");
	bad("redis://backend/-1", -EINVAL, "database:");
	bad("redis://backend?db=1", -EINVAL, "'?'");
	bad("redis://backend#x", -EINVAL, "'#'");
	bad("unix://", -EINVAL, "path:");
	bad("unix://run/redis.sock", -EINVAL, "path:");
	bad("unix:///run/redis.sock?db=", -EINVAL, "database:");
	bad("unix:///run/redis.sock?x=1", -EINVAL, "'?'");
	bad("redis://a,", -EINVAL, "host:");
	bad("redis://,a", -EINVAL, "host:");
	bad("redis://a,,b", -EINVAL, "host:");
	bad("redis://a,b:0", -EINVAL, "port:");
	bad("redis://a,redis://secret", -EINVAL, "port:");
	bad("redis://a,b/x,secret", -EINVAL, "database:");
	bad("redis://1,2,3,4,5,6,7,8,9", -EINVAL, "host: more than 8");
	bad("rediss://a?", -EINVAL, "file:");
	bad("rediss://a?cacert", -EINVAL, "file:");
	bad("rediss://a?cacert=", -EINVAL, "cacert:");
	bad("rediss://a?cacert=/a&", -EINVAL, "file:");
	bad("rediss://a?ca=secret", -EINVAL, "file:");
	bad("rediss://a?key=/k", -EINVAL, "key:");
	bad("rediss://a/x?cacert=/a", -EINVAL, "database:");
	bad("redis://a?cacert=/a", -EINVAL, "'?'");
	bad("redis+sentinel://", -EINVAL, "host:");
	bad("redis+sentinel://a", -EINVAL, "primary:");
	bad("redis+sentinel://a/", -EINVAL, "primary:");
	bad("redis+sentinel://a//0", -EINVAL, "primary:");
	bad("redis+sentinel://a?mymaster", -EINVAL, "primary:");
	bad("redis+sentinel://a/0123456789012345678901234567890123456789012345678901234567890123", -EINVAL, "primary:");
	bad("redis+sentinel://a/mymaster?db=1", -EINVAL, "'?' behind the primary");
	bad("redis+sentinel://a/my\033[2J", -EINVAL, "'?' behind the primary: "); /* no terminal acts on it */
	bad("redis+sentinel://a/my%2dmaster", -EINVAL, "'%' behind the primary");
	bad("redis+sentinel://a/mymaster/secret", -EINVAL, "database:");
	long_parts();
	rotation();
	files();
	return tap_done();
}
