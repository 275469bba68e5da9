/*
 * global_library: the functions of libshmlimit-global that a gate calls. If the program is linked
 * with the library, these are used. Otherwise it is loaded, once, when a gate with backend= needs
 * it. So a gate without backend= needs neither the library nor hiredis.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_GLOBAL_LIBRARY_H
#define SHMLIMIT_GATE_GLOBAL_LIBRARY_H

#include "shmlimit_global.h"

struct global_library {
	__typeof__(&shmlimit_global_open) open;
	__typeof__(&shmlimit_global_take_all) take_all;
	__typeof__(&shmlimit_global_begin_all) begin_all;
	__typeof__(&shmlimit_global_poll_all) poll_all;
	__typeof__(&shmlimit_global_cancel_all) cancel_all;
	__typeof__(&shmlimit_global_status) status;
	__typeof__(&shmlimit_global_close) close;
};

/* Returns NULL if the library is not installed, or is of another version. Threads: safe. */
const struct global_library *global_library_load(void);

/*
 * Returns 0, or -EINVAL: the library that is installed now says in `why` what is wrong with a
 * backend's URL. 0 also where none is installed, or one of another version.
 */
int global_library_check_url(const char *url, struct shmlimit_problem *why);

/* Why global_library_load() returned NULL: -ELIBACC or -ELIBBAD. */
int global_library_error(void);

/*
 * Keep the library that is installed now in this process and in children that it forks, where an
 * upgrade may replace the file before they load it: the old workers of a server go on with the old
 * one.
 */
void global_library_pin(void);

#endif
