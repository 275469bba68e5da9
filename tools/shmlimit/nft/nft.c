/*
 * nft.c: see nft.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "address.h"
#include "command.h"
#include "decimal.h"
#include "fail.h"
#include "key_text.h"
#include "nft.h"

int nft_check_name(const char *what, const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	if (is_letter(name[0]) && name[len] == '\0' && len <= NFT_NAME_MAX)
		return STATUS_OK;
	return fail("%s %s: must be a letter, then letters, digits and _, 63 at most", what, name);
}

/* ---- Nets ---- */

static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

/* An IPv4-mapped address is IPv4. Returns 0 if there are more bits than the address has. */
static int add_address(struct nets *nets, const struct address *address, unsigned bits, uint64_t ms)
{
	size_t v4_at = address->len == 16 && memcmp(address->bytes, mapped, sizeof(mapped)) == 0 ? sizeof(mapped) : 0;

	if (bits > 8 * address->len || bits < 8 * v4_at)
		return 0;
	nets_add(nets, address->bytes + v4_at, address->len - v4_at, bits - 8 * (unsigned)v4_at, ms);
	return 1;
}

int nft_keep(struct nets *nets, const char *text)
{
	const char *slash = strchr(text, '/'), *rest = slash != NULL ? slash + 1 : "";
	struct address address;
	uint64_t bits;

	if (address_read(text, slash != NULL ? (size_t)(slash - text) : strlen(text), &address)) {
		bits = 8 * address.len;
		if ((slash == NULL || digits_scan(&rest, &bits) == 0) && *rest == '\0' && bits <= 128 &&
		    add_address(nets, &address, (unsigned)bits, 0))
			return STATUS_OK;
	}
	return fail("--keep %s: must be an address or a net, such as 203.0.113.9 or 2001:db8::/32", text);
}

enum nft_added nft_add_key(struct nets *nets, const void *bytes, size_t len, uint64_t ms, const unsigned widest[2])
{
	const unsigned char *key = bytes;
	char text[KEY_TEXT_LEN];
	struct address address;

	if (key_ip_show(text, key, len)) {
		if (key[1] < widest[len > 6])
			return NFT_TOO_WIDE;
		nets_add(nets, key + 2, len - 2, key[1], ms);
		return NFT_ADDED;
	}
	return address_read(bytes, len, &address) && !address.has_port &&
	                       add_address(nets, &address, 8 * (unsigned)address.len, ms)
	               ? NFT_ADDED
	               : NFT_NO_ADDRESS;
}

/* The address before the first blank of SSH_CONNECTION. */
static void keep_session(struct nets *nets, const char *connection)
{
	struct address address;

	if (address_read(connection, strcspn(connection, " "), &address))
		add_address(nets, &address, 8 * (unsigned)address.len, 0);
}

static FILE *open_process(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

static void keep_session_of(struct nets *nets, pid_t pid)
{
	static const char name[] = "SSH_CONNECTION=";
	FILE *environment = open_process(pid, "environ");
	char *variable = NULL;
	size_t room = 0;

	while (environment != NULL && getdelim(&variable, &room, '\0', environment) > 0)
		if (strncmp(variable, name, sizeof(name) - 1) == 0)
			keep_session(nets, variable + sizeof(name) - 1);
	free(variable);
	if (environment != NULL)
		fclose(environment);
}

/* 0: it has none, or cannot be read. */
static pid_t parent_of(pid_t pid)
{
	FILE *status = open_process(pid, "status");
	char line[256];
	int parent = 0;

	while (status != NULL && fgets(line, sizeof(line), status) != NULL && sscanf(line, "PPid: %d", &parent) != 1)
		;
	if (status != NULL)
		fclose(status);
	return parent;
}

/* ---- What the host needs ---- */

/* Routes have addresses in network order, each written as a number of this machine. */
static void keep_route(struct nets *nets, uint32_t address, uint32_t mask)
{
	nets_add(nets, &address, sizeof(address), (unsigned)__builtin_popcount(mask), 0);
}

/* The gateways of default routes, each with the net of its interface. */
static void keep_gateways_v4(struct nets *nets)
{
	FILE *routes = fopen("/proc/net/route", "re");
	uint32_t gateway[16];
	size_t gateways = 0;
	char line[256];

	for (int pass = 0; routes != NULL && pass < 2; pass++) {
		rewind(routes);
		while (fgets(line, sizeof(line), routes) != NULL) {
			unsigned to, by, flags, mask;

			if (sscanf(line, "%*s %x %x %x %*d %*d %*d %x", &to, &by, &flags, &mask) != 4)
				continue;
			if (pass == 0 && to == 0 && mask == 0 && by != 0 && gateways < 16)
				keep_route(nets, gateway[gateways++] = by, UINT32_MAX);
			for (size_t i = 0; pass == 1 && by == 0 && mask != 0 && i < gateways; i++)
				if ((gateway[i] & mask) == to)
					keep_route(nets, to, mask);
		}
	}
	if (routes != NULL)
		fclose(routes);
}

static void keep_gateways_v6(struct nets *nets)
{
	FILE *routes = fopen("/proc/net/ipv6_route", "re");
	char to[33], by[33];
	unsigned bits;

	while (routes != NULL && fscanf(routes, "%32s %x %*s %*s %32s%*[^\n]", to, &bits, by) == 3) {
		unsigned char address[16];

		for (size_t i = 0; i < sizeof(address); i++)
			if (sscanf(by + 2 * i, "%2hhx", &address[i]) != 1)
				address[i] = 0;
		if (bits == 0 && strspn(to, "0") == 32 && strspn(by, "0") < 32)
			nets_add(nets, address, sizeof(address), 64, 0);
	}
	if (routes != NULL)
		fclose(routes);
}

static void keep_resolvers(struct nets *nets)
{
	FILE *file = fopen("/etc/resolv.conf", "re");
	char line[256], text[128];
	struct address address;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, " nameserver %127s", text) == 1 && address_read(text, strlen(text), &address))
			add_address(nets, &address, 8 * (unsigned)address.len, 0);
	if (file != NULL)
		fclose(file);
}

static const char *const private_nets[] = { "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10",
	                                    "fc00::/7" };

static void keep_host(struct nets *nets)
{
	struct ifaddrs *list = NULL;

	if (getifaddrs(&list) != 0)
		return;
	for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
		if (at->ifa_addr != NULL && at->ifa_addr->sa_family == AF_INET)
			nets_add(nets, &((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr, 4, 32, 0);
		if (at->ifa_addr != NULL && at->ifa_addr->sa_family == AF_INET6)
			nets_add(nets, &((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr, 16, 128,
			         0);
	}
	freeifaddrs(list);
}

void nft_keep_private(struct nets *nets)
{
	for (size_t i = 0; i < sizeof(private_nets) / sizeof(private_nets[0]); i++)
		nft_keep(nets, private_nets[i]);
	keep_host(nets);
}

int nft_is_private(const void *key, size_t len)
{
	static const unsigned any[2] = { 0, 0 };
	struct nets kept = { 0 }, one = { 0 };
	int found = 0;

	nft_keep(&kept, "127.0.0.0/8");
	nft_keep(&kept, "::/64");
	nft_keep_private(&kept);
	if (nft_add_key(&one, key, len, 1, any) == NFT_ADDED)
		for (size_t i = 0; i < kept.count; i++)
			found |= kept.net[i].len == one.net->len &&
			         memcmp(kept.net[i].first, one.net->last, one.net->len) <= 0 &&
			         memcmp(one.net->first, kept.net[i].last, one.net->len) <= 0;
	free(kept.net);
	free(one.net);
	return found;
}

void nft_keep_own(struct nets *nets)
{
	static const char *const always[] = { "127.0.0.0/8", "::/64", "fe80::/10" };
	const char *connection = getenv("SSH_CONNECTION");

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		nft_keep(nets, always[i]);
	keep_gateways_v4(nets);
	keep_gateways_v6(nets);
	keep_resolvers(nets);
	if (connection != NULL)
		keep_session(nets, connection);
	/*
	 * BOUND: no process has this many ancestors, unless ids of processes are used again while
	 * it looks.
	 */
	for (pid_t pid = getppid(), n = 0; pid > 1 && n < 1000; pid = parent_of(pid), n++)
		keep_session_of(nets, pid);
}

/* ---- The transaction ---- */

static void write_sets(FILE *to, const char *table, const char *set)
{
	fprintf(to, "add table inet %s\n", table);
	for (int family = 4; family <= 6; family += 2) {
		fprintf(to, "add set inet %s %s%d { type ipv%d_addr; flags interval,timeout; }\n", table, set, family,
		        family);
		fprintf(to, "flush set inet %s %s%d\n", table, set, family);
	}
}

/*
 * WHY at this priority: before connections are tracked (-200), and after fragments are put together
 * (-400).
 */
static void write_chain(FILE *to, const char *table, const char *set)
{
	fprintf(to,
	        "add chain inet %s input { type filter hook prerouting priority -310; policy accept; }\n"
	        "flush chain inet %s input\n"
	        "add rule inet %s input ip saddr @%s4 counter drop\n"
	        "add rule inet %s input ip6 saddr @%s6 counter drop\n",
	        table, table, table, set, table, set);
}

static void write_range(FILE *to, const struct net *range)
{
	int family = range->len == 4 ? AF_INET : AF_INET6;
	char first[INET6_ADDRSTRLEN], last[INET6_ADDRSTRLEN];

	inet_ntop(family, range->first, first, sizeof(first));
	inet_ntop(family, range->last, last, sizeof(last));
	fprintf(to, "\t%s", first);
	if (memcmp(range->first, range->last, range->len) != 0)
		fprintf(to, "-%s", last);
	fprintf(to, " timeout %" PRIu64 "ms,\n", range->ms);
}

static void write_all(FILE *to, const struct nft *nft, const struct nets *ranges)
{
	const char *table = nft->table != NULL ? nft->table : NFT_TABLE, *set = nft->set != NULL ? nft->set : NFT_SET;
	size_t len = 0;

	write_sets(to, table, set);
	if (nft->table == NULL)
		write_chain(to, table, set);
	for (size_t i = 0; i < ranges->count; i++) {
		if (ranges->net[i].len != len)
			fprintf(to, "%sadd element inet %s %s%d {\n", len != 0 ? "}\n" : "", table, set,
			        ranges->net[i].len == 4 ? 4 : 6);
		len = ranges->net[i].len;
		write_range(to, &ranges->net[i]);
	}
	if (len != 0)
		fputs("}\n", to);
}

int nft_print(const struct nft *nft, const struct nets *ranges)
{
	write_all(stdout, nft, ranges);
	return STATUS_OK;
}

static int start(FILE *script, pid_t *pid)
{
	char program[] = "nft", option[] = "-f", input[] = "-";
	char *argv[] = { program, option, input, NULL };
	posix_spawn_file_actions_t actions;
	int error = posix_spawn_file_actions_init(&actions);

	if (error != 0)
		return error;
	error = posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
	if (error == 0)
		error = posix_spawnp(pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

/* WHY NOT a pipe: nft may end before it has read all. */
int nft_apply(const struct nft *nft, const struct nets *ranges)
{
	FILE *script = tmpfile();
	int error, end = 0;
	pid_t pid = -1;

	if (script == NULL)
		return fail("no temporary file for nft: %s", strerror(errno));
	write_all(script, nft, ranges);
	rewind(script); /* and flushes it */
	error = ferror(script) ? EIO : start(script, &pid);
	while (error == 0 && waitpid(pid, &end, 0) < 0)
		error = errno == EINTR ? 0 : errno;
	fclose(script);
	if (error == ENOENT)
		return fail("nft is not installed (on Debian: apt install nftables)");
	if (error != 0)
		return fail("nft: %s", strerror(error));
	return WIFEXITED(end) && WEXITSTATUS(end) == 0 ? STATUS_OK : fail("nft changed nothing: see above");
}
