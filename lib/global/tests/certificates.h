/*
 * certificates: an authority of the test's own, and what it signed, made by openssl in a folder.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_GLOBAL_CERTIFICATES_H
#define TESTS_GLOBAL_CERTIFICATES_H

#include "process/process.h"

static inline int openssl_missing(void)
{
	return system("openssl version >/dev/null 2>&1") != 0;
}

/* Run openssl in the folder. */
static inline void openssl(const char *folder, const char *arguments)
{
	char command[512];

	snprintf(command, sizeof(command), "cd '%s' && openssl %s 2>/dev/null >/dev/null", folder, arguments);
	if (system(command) != 0)
		bail("openssl %s", arguments);
}

/* authority.pem, and what it signed: certificates for this host, for another host, and for a client. */
static inline void certificates_make(const char *folder)
{
	static const char *const names[][2] = {
		{ "here", "IP:127.0.0.1,DNS:localhost" },
		{ "elsewhere", "DNS:elsewhere.example" },
		{ "client", "DNS:client.example" },
	};
	char arguments[384];

	openssl(folder, "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 9999 "
	                "-subj /CN=authority -keyout authority.key -out authority.pem");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(arguments, sizeof(arguments),
		         "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 9999 -subj /CN=%s "
		         "-addext subjectAltName=%s -CA authority.pem -CAkey authority.key -keyout %s.key -out %s.pem",
		         names[i][0], names[i][1], names[i][0], names[i][0]);
		openssl(folder, arguments);
	}
}

#endif
