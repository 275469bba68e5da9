/*
 * global_strerror: what errors mean.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <limits.h>

#include "export.h"
#include "shmlimit_global.h"
#include "errors.h"

EXPORT const char *shmlimit_global_strerror(int error)
{
	int positive = error < 0 && error != INT_MIN ? -error : error;

	switch (positive) {
	case 0:
	case EINVAL:
	case E2BIG:
	case EMSGSIZE:
	case EOPNOTSUPP:
	case ESRCH:
	case EROFS:
	case EHOSTDOWN:
	case ENOBUFS:
	case ENOMEM:
		return shmlimit_strerror(positive);
	case ELIBBAD:
		return "libshmlimit is of another version: restart the program after an upgrade";
	case EAGAIN:
		return "the host has no agent";
	default:
		return backend_error_strerror(positive);
	}
}
