/*
 * key_ip: two clients share a key exactly when they share a family, a prefix
 * length and a net.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <limits.h>

#include "unit.h"

struct key {
	unsigned char bytes[SHMLIMIT_KEY_IP_MAX];
	int length;
};

/* The text in a title: what a terminal, or a reader of TAP, would act on becomes a question mark. */
static const char *shown(const char *text)
{
	static char out[128];
	size_t n = 0;

	for (; text[n] != '\0' && n < sizeof(out) - 1; n++)
		out[n] = text[n] < ' ' || text[n] > '~' || text[n] == '#' ? '?' : text[n];
	out[n] = '\0';
	return out;
}

static struct key of(const char *text, unsigned prefix_v4, unsigned prefix_v6)
{
	struct key key = { .length = 0 };

	key.length = shmlimit_key_ip_text(text, 0, prefix_v4, prefix_v6, key.bytes, sizeof(key.bytes));
	return key;
}

static int same(struct key a, struct key b)
{
	return a.length > 0 && a.length == b.length && memcmp(a.bytes, b.bytes, (size_t)a.length) == 0;
}

static void nets(void)
{
	ok(same(of("10.1.2.3", 24, 64), of("10.1.2.200", 24, 64)), "addresses of one net have one key");
	ok(!same(of("10.1.2.3", 24, 64), of("10.1.3.3", 24, 64)), "addresses of two nets have two keys");
	ok(!same(of("10.1.2.0", 24, 64), of("10.1.2.0", 25, 64)), "nets of two sizes that begin alike have two keys");
	ok(same(of("2001:db8::1", 32, 64), of("2001:db8::ffff:ffff:ffff:ffff", 32, 64)), "a /64 is one client");
	ok(!same(of("2001:db8:0:1::1", 32, 64), of("2001:db8::1", 32, 64)), "the next /64 is another client");
	ok(same(of("2001:db8:0:1::1", 32, 63), of("2001:db8::1", 32, 63)), "two /64 are one client in a /63");
	ok(same(of("1.2.3.4", 0, 0), of("200.2.3.4", 0, 0)), "the net /0 has everybody of a family");
	ok(!same(of("0.0.0.0", 0, 0), of("::", 0, 0)), "the net /0 of one family has nobody of the other");
}

static void mapped(void)
{
	ok(same(of("::ffff:10.0.0.7", 32, 64), of("10.0.0.7", 32, 64)), "an IPv4-mapped address is the IPv4 address");
	ok(!same(of("::ffff:10.0.0.7", 32, 64), of("::ffff:10.0.0.8", 32, 64)),
	   "IPv4-mapped addresses are not merged by a /64");
	ok(same(of("::ffff:10.0.0.7", 24, 64), of("10.0.0.9", 24, 64)),
	   "an IPv4-mapped address has the prefix length of IPv4");
	is(of("::10.0.0.7", 32, 128).length, 18, "an IPv6 address that is not IPv4-mapped stays IPv6");
	is(of("::fffe:10.0.0.7", 32, 128).length, 18, "an IPv6 address that lacks a bit of the mapping stays IPv6");
}

static void bytes(void)
{
	static const unsigned char v4[6] = { 4, 20, 10, 1, 0xf0, 0 };
	static const unsigned char v6[18] = { 6, 64, 0x20, 0x01, 0x0d, 0xb8, 1, 2, 3, 4 };
	struct key key = of("10.1.255.255", 20, 64);

	ok(key.length == 6 && memcmp(key.bytes, v4, 6) == 0, "a key is family, prefix length and net, of IPv4");
	key = of("2001:db8:102:304:506:708:90a:b0c", 20, 64);
	ok(key.length == 18 && memcmp(key.bytes, v6, 18) == 0, "a key is family, prefix length and net, of IPv6");
}

static struct key of_bytes(const unsigned char *address, size_t len, unsigned prefix)
{
	struct key key = { .length = 0 };

	key.length = shmlimit_key_ip(address, len, prefix % 33, prefix, key.bytes, sizeof(key.bytes));
	return key;
}

/* For every prefix length of a family, and each bit of the address: flip it. */
static void every_bit(size_t len, unsigned bits)
{
	unsigned char address[16] = "\xa5\x5a\x3c\xc3\x99\x66\xff\0\1\x80\x7f\xfe\x55\xaa\xf0";
	unsigned wrong = 0, tried = 0;

	for (unsigned prefix = 0; prefix <= bits; prefix++)
		for (unsigned bit = 0; bit < bits; bit++, tried++) {
			struct key before = of_bytes(address, len, prefix), after;

			address[bit / 8] ^= (unsigned char)(0x80 >> bit % 8);
			after = of_bytes(address, len, prefix);
			address[bit / 8] ^= (unsigned char)(0x80 >> bit % 8);
			wrong += same(before, after) != (bit >= prefix);
		}
	is(wrong, 0, "exactly the first n of %u bits count, in all %u cases", bits, tried);
}

/* Every prefix length of two addresses: all keys differ. */
static void all_differ(void)
{
	static struct key keys[33 + 129];
	unsigned duplicates = 0, n = 0;

	for (unsigned prefix = 0; prefix <= 32; prefix++)
		keys[n++] = of("0.0.0.0", prefix, 0);
	for (unsigned prefix = 0; prefix <= 128; prefix++)
		keys[n++] = of("::", 0, prefix);
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++)
			duplicates += same(keys[i], keys[j]);
	is(duplicates, 0, "the nets that begin with zeros, of all %u sizes, share no key", n);
}

/* A text that is an address, and the plain form of the same. */
static const struct {
	const char *text, *plain;
} good[] = {
	/* as inet_pton(3) has it */
	{ "203.0.113.9", "203.0.113.9" },
	{ "0.0.0.0", "0.0.0.0" },
	{ "255.255.255.255", "255.255.255.255" },
	{ "2001:db8::1", "2001:db8::1" },
	{ "2001:DB8::A", "2001:db8::a" },
	{ "2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1" },
	{ "::", "::" },
	{ "::1", "::1" },
	{ "FE80:0:0::0.0.0.1", "fe80::1" },
	/* IPv4 in IPv6 */
	{ "::ffff:203.0.113.9", "203.0.113.9" },
	{ "::FFFF:cb00:7109", "203.0.113.9" },
	{ "0000:0000:0000:0000:0000:ffff:255.255.255.255", "255.255.255.255" },
	{ "[::ffff:203.0.113.9]:443", "203.0.113.9" },
	{ "::ffff:203.0.113.9%eth0", "203.0.113.9" },
	/* zones */
	{ "fe80::1%eth0", "fe80::1" },
	{ "fe80::1%25eth0", "fe80::1" },
	{ "fe80::1%3", "fe80::1" },
	{ "[fe80::1%eth0]", "fe80::1" },
	{ "[fe80::1%en0]:8080", "fe80::1" },
	/* ports: nginx's $remote_addr:$remote_port, Envoy, Azure, AWS, Node's and Go's RemoteAddr */
	{ "203.0.113.9:443", "203.0.113.9" },
	{ "203.0.113.9:0", "203.0.113.9" },
	{ "203.0.113.9:65535", "203.0.113.9" },
	{ "203.0.113.9:00080", "203.0.113.9" },
	{ "[2001:db8::1]:443", "2001:db8::1" },
	{ "[2001:db8::1]", "2001:db8::1" },
	{ "[::]:0", "::" },
	/* quotes: RFC 7239, and logs */
	{ "\"203.0.113.9\"", "203.0.113.9" },
	{ "\"203.0.113.9:47011\"", "203.0.113.9" },
	{ "\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17" },
	{ "\" 203.0.113.9 \"", "203.0.113.9" },
	/* blanks and the ends of lines */
	{ " 203.0.113.9", "203.0.113.9" },
	{ "203.0.113.9 ", "203.0.113.9" },
	{ "\t203.0.113.9\t", "203.0.113.9" },
	{ "203.0.113.9\r", "203.0.113.9" },
	{ "203.0.113.9\r\n", "203.0.113.9" },
	{ "2001:db8::1\r", "2001:db8::1" },
	/* looks like an address with a port, and is one without */
	{ "2001:db8::1:443", "2001:db8::1:443" },
	{ "::1:80", "::1:80" },
};

/* clang-format off */
static const char *const bad[] = { "", " ", "\r\n", "%", "%eth0", "10.0.0", "10.0.0.256", "10.0.0.1.2", "10.0.0.1%eth0",
	"10.0.0.1%eth0:80", "::1%", "[::1%]:80", ":::", "1::2::3", "fe80::g", "localhost", "localhost:80", "010.0.0.1",
	"0:0:0:0:0:0:0:0:0", "0000:0000:0000:0000:0000:ffff:255.255.255.2555", "10.0.0.1:", "10.0.0.1:65536",
	"10.0.0.1:000080", "10.0.0.1:99999", "10.0.0.1:-1", "10.0.0.1:+1", "10.0.0.1:80:90", "10.0.0.1:80 x", "10.0.0.1:http",
	"10.0.0.1 10.0.0.2", "10.0.0.1,10.0.0.2", "10.0.0.1, 10.0.0.2", "10.0.0.1,", ",10.0.0.1", "10.0.0.0/8",
	"2001:db8::/32", "[::1", "::1]", "[]", "[]:80", "[10.0.0.1]", "[10.0.0.1]:80", "[::1]80", "[::1]:", "[::1]:65536",
	"[::1]:80]", "[[::1]]", "[ ::1 ]", "[localhost]:80", "2001:db8:1:2:3:4:5:6:443", "\"", "\"\"", "\"10.0.0.1",
	"10.0.0.1\"", "\"10.0.0.1\":80", "\"\"10.0.0.1\"\"", "'10.0.0.1'", "fe80::1%eth0 x", "fe80::1%eth0,::1",
	"[fe80::1%eth 0]", "fe80::1%\"", "unknown", "_hidden", "-", "unix:", "unix:/run/x.sock", "for=10.0.0.1",
	"for=\"[::1]:80\"", "http://10.0.0.1/", "//10.0.0.1", "10.0.0.1/", "10.0.0.1#80", "10.0.0.1.80", "0x7f.0.0.1",
	"2130706433", "127.1", "0x7f000001", "10.0.0.\xd9\xa1", "\xff\xfe", "::ffff:10.0.0.1:80", "tcp:10.0.0.1:80",
	"ipv4:10.0.0.1:80", "4:10.0.0.1", "10,0,0,1", "10.0.0.1;", "10.0.0.1|", "<10.0.0.1>", "(10.0.0.1)", "!10.0.0.1" };
/* clang-format on */

static void text(void)
{
	char longest[4096];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ok(same(of(good[i].text, 32, 128), of(good[i].plain, 32, 128)), "%zu: \"%s\" is the address %s", i,
		   shown(good[i].text), good[i].plain);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is(of(bad[i], 32, 64).length, -EINVAL, "%zu: \"%s\" is not an address", i, shown(bad[i]));
	memset(longest, '1', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	is(of(longest, 32, 64).length, -EINVAL, "4095 digits are no address");
	memcpy(longest, "fe80::1%", 8);
	ok(same(of(longest, 32, 128), of("fe80::1", 32, 128)), "a zone of any length is left out");
}

/* A list, which of it, and the plain form of the address there; NULL: none. */
static const struct {
	const char *list;
	int nth;
	const char *plain;
} lists[] = {
	{ "203.0.113.9", 1, "203.0.113.9" },
	{ "203.0.113.9", -1, "203.0.113.9" },
	{ "203.0.113.9", 2, NULL },
	{ "203.0.113.9", -2, NULL },
	{ "203.0.113.9, 198.51.100.7", 1, "203.0.113.9" },
	{ "203.0.113.9, 198.51.100.7", 2, "198.51.100.7" },
	{ "203.0.113.9, 198.51.100.7", -1, "198.51.100.7" },
	{ "203.0.113.9, 198.51.100.7", -2, "203.0.113.9" },
	{ "203.0.113.9, 198.51.100.7", 0, NULL },
	{ "203.0.113.9,198.51.100.7,192.0.2.1", -2, "198.51.100.7" },
	{ "203.0.113.9 ,\t198.51.100.7\r\n", -1, "198.51.100.7" },
	{ "203.0.113.9:50001, 198.51.100.7:443", 1, "203.0.113.9" },
	{ "203.0.113.9:50001, 198.51.100.7:443", -1, "198.51.100.7" },
	{ "[2001:db8::1]:50001, 198.51.100.7", 1, "2001:db8::1" },
	{ "198.51.100.7, 2001:db8::1", -1, "2001:db8::1" },
	{ "fe80::1%eth0, 10.0.0.1", 1, "fe80::1" },
	{ "\"203.0.113.9, 198.51.100.7\"", 1, "203.0.113.9" },
	{ "\"203.0.113.9, 198.51.100.7\"", -1, "198.51.100.7" },
	{ "\"203.0.113.9\", \"[2001:db8::1]:80\"", -1, "2001:db8::1" },
	{ "unknown, 203.0.113.9", 1, NULL },
	{ "unknown, 203.0.113.9", -1, "203.0.113.9" },
	{ "203.0.113.9, unknown", -1, NULL },
	{ "<script>, 203.0.113.9", -1, "203.0.113.9" },
	{ ", 203.0.113.9", 1, "203.0.113.9" },
	{ "203.0.113.9,", -1, "203.0.113.9" },
	{ "203.0.113.9,,198.51.100.7", 2, "198.51.100.7" },
	{ "203.0.113.9,,198.51.100.7", -2, "203.0.113.9" },
	{ "", 1, NULL },
	{ "", -1, NULL },
	{ ",", 1, NULL },
	{ " , , ", -1, NULL },
	{ "203.0.113.9", INT_MAX, NULL },
	{ "203.0.113.9", INT_MIN, NULL },
	{ "203.0.113.9", -INT_MAX, NULL },
};

static void nth(void)
{
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct key key = { .length = 0 };

		key.length = shmlimit_key_ip_text(lists[i].list, lists[i].nth, 32, 128, key.bytes, sizeof(key.bytes));
		if (lists[i].plain != NULL)
			ok(same(key, of(lists[i].plain, 32, 128)), "%zu: element %d of \"%s\" is %s", i, lists[i].nth,
			   shown(lists[i].list), lists[i].plain);
		else
			is(key.length, -EINVAL, "%zu: element %d of \"%s\" is no address", i, lists[i].nth,
			   shown(lists[i].list));
	}
}

static void errors(void)
{
	unsigned char key[SHMLIMIT_KEY_IP_MAX + 1], v6[16] = { 0x20, 1 };

	memset(key, 0x77, sizeof(key));
	is(shmlimit_key_ip(NULL, 4, 32, 64, key, sizeof(key)), -EINVAL, "no address");
	is(shmlimit_key_ip(v6, 16, 32, 64, NULL, sizeof(key)), -EINVAL, "nowhere to put the key");
	is(shmlimit_key_ip_text(NULL, 0, 32, 64, key, sizeof(key)), -EINVAL, "no text");
	for (size_t len = 0; len <= 17; len += len == 3 || len == 15 ? 2 : 1)
		is(shmlimit_key_ip(v6, len, 32, 64, key, sizeof(key)), -EINVAL, "%zu bytes are no address", len);
	is(shmlimit_key_ip(v6, 16, 33, 64, key, sizeof(key)), -EINVAL, "a prefix of 33 bits of IPv4, also unused");
	is(shmlimit_key_ip(v6, 4, 32, 129, key, sizeof(key)), -EINVAL, "a prefix of 129 bits of IPv6");
	is(shmlimit_key_ip(v6, 4, UINT32_MAX, 64, key, sizeof(key)), -EINVAL, "a prefix of all ones");
	is(shmlimit_key_ip(v6, 16, 32, 64, key, 17), -ENOBUFS, "17 bytes are too few for a key of IPv6");
	is(shmlimit_key_ip(v6, 4, 32, 64, key, 5), -ENOBUFS, "5 are too few for one of IPv4");
	ok(key[0] == 0x77 && key[5] == 0x77 && key[17] == 0x77, "a call that was refused wrote no byte");
	is(shmlimit_key_ip(v6, 4, 32, 64, key, 6), 6, "6 suffice for IPv4");
	is(key[6], 0x77, "no more than 6 bytes are written for IPv4");
	is(shmlimit_key_ip(v6, 16, 32, 128, key, 18), SHMLIMIT_KEY_IP_MAX, "18 suffice for IPv6");
	is(key[18], 0x77, "no more than 18 bytes are written for IPv6");
}

int main(void)
{
	nets();
	mapped();
	bytes();
	every_bit(4, 32);
	every_bit(16, 128);
	all_differ();
	text();
	nth();
	errors();
	return tap_done();
}
