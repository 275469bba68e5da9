/*
 * key_ip: two clients share a key exactly when they share a family, a prefix
 * length and a net.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>

#include "unit.h"

struct key {
	unsigned char bytes[SHMLIMIT_KEY_IP_MAX];
	int length;
};

static struct key of(const char *text, unsigned prefix_v4, unsigned prefix_v6)
{
	struct key key = { .length = 0 };

	key.length = shmlimit_key_ip_text(text, prefix_v4, prefix_v6, key.bytes, sizeof(key.bytes));
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
	unsigned twins = 0, n = 0;

	for (unsigned prefix = 0; prefix <= 32; prefix++)
		keys[n++] = of("0.0.0.0", prefix, 0);
	for (unsigned prefix = 0; prefix <= 128; prefix++)
		keys[n++] = of("::", 0, prefix);
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++)
			twins += same(keys[i], keys[j]);
	is(twins, 0, "the nets that begin with zeros, of all %u sizes, share no key", n);
}

static void text(void)
{
	/* clang-format off */
	static const char *const bad[] = { "", "%", "%eth0", "10.0.0", "10.0.0.256", "10.0.0.1.2", " 10.0.0.1",
		"10.0.0.1 ", "10.0.0.1:80", "10.0.0.1%eth0", "[::1]", "::1%", ":::", "1::2::3", "fe80::g", "localhost",
		"010.0.0.1", "0:0:0:0:0:0:0:0:0", "0000:0000:0000:0000:0000:ffff:255.255.255.2555" };
	/* clang-format on */
	char longest[4096];
	struct key key;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is(of(bad[i], 32, 64).length, -EINVAL, "\"%s\" is not an address", bad[i]);
	memset(longest, '1', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	is(of(longest, 32, 64).length, -EINVAL, "4095 digits are no address");
	ok(same(of("fe80::1%eth0", 32, 128), of("fe80::1", 32, 128)), "a zone is left out");
	ok(same(of("0000:0000:0000:0000:0000:ffff:255.255.255.255", 32, 64), of("255.255.255.255", 32, 64)),
	   "the longest spelling is an address");
	memcpy(longest, "fe80::1%", 8);
	ok(same(of(longest, 32, 128), of("fe80::1", 32, 128)), "however long the zone is");
	key = of("fe80::1", 32, 128);
	ok(same(of("FE80:0:0::0.0.0.1", 32, 128), key), "each spelling of an address has the same key");
}

static void errors(void)
{
	unsigned char key[SHMLIMIT_KEY_IP_MAX + 1], v6[16] = { 0x20, 1 };

	memset(key, 0x77, sizeof(key));
	is(shmlimit_key_ip(NULL, 4, 32, 64, key, sizeof(key)), -EINVAL, "no address");
	is(shmlimit_key_ip(v6, 16, 32, 64, NULL, sizeof(key)), -EINVAL, "nowhere to put the key");
	is(shmlimit_key_ip_text(NULL, 32, 64, key, sizeof(key)), -EINVAL, "no text");
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
	errors();
	return tap_done();
}
