/*
 * global_library: see global_library.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "global_library.h"

#pragma weak shmlimit_global_open
#pragma weak shmlimit_global_take_all
#pragma weak shmlimit_global_begin_all
#pragma weak shmlimit_global_poll_all
#pragma weak shmlimit_global_cancel_all
#pragma weak shmlimit_global_status
#pragma weak shmlimit_global_close

#define NAME "libshmlimit-global.so.1"

static struct global_library loaded;
static int is_other_version;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * A module of a server can have its libshmlimit within it, and libshmlimit-global brings the one
 * that is installed. A handle goes from the first to the second, so both must be of one version.
 */
static int is_of_this_version(void *library)
{
	__typeof__(&shmlimit_layout) layout;

	*(void **)&layout = dlsym(library, "shmlimit_layout");
	return layout != NULL && layout() == shmlimit_layout();
}

static void load(void)
{
	struct global_library found = { shmlimit_global_open,     shmlimit_global_take_all,   shmlimit_global_begin_all,
		                        shmlimit_global_poll_all, shmlimit_global_cancel_all, shmlimit_global_status,
		                        shmlimit_global_close };
	void *library;

	if (found.open == NULL) {
		library = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
		if (library == NULL)
			return;
		is_other_version = !is_of_this_version(library);
		if (is_other_version)
			return;
		/*
		 * ISO C does not convert a data pointer to a function pointer; POSIX allows this
		 * assignment.
		 */
		*(void **)&found.open = dlsym(library, "shmlimit_global_open");
		*(void **)&found.take_all = dlsym(library, "shmlimit_global_take_all");
		*(void **)&found.begin_all = dlsym(library, "shmlimit_global_begin_all");
		*(void **)&found.poll_all = dlsym(library, "shmlimit_global_poll_all");
		*(void **)&found.cancel_all = dlsym(library, "shmlimit_global_cancel_all");
		*(void **)&found.status = dlsym(library, "shmlimit_global_status");
		*(void **)&found.close = dlsym(library, "shmlimit_global_close");
	}
	loaded = found;
}

/*
 * WHY NOT global_library_load(): where the library is not installed yet, forked children would not
 * look for it again.
 */
void global_library_pin(void)
{
	if (shmlimit_global_open == NULL)
		(void)dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
}

static void keep_reason(void *why, const char *text)
{
	struct shmlimit_problem *problem = why;

	snprintf(problem->text, sizeof(problem->text), "%s", text);
}

/*
 * WHY NOT global_library_load(): see global_library_pin(). The library is not kept either: this
 * may be a process that only checks.
 */
int global_library_check_url(const char *url, struct shmlimit_problem *why)
{
	const struct shmlimit_global_options options = { .struct_size = sizeof(options),
		                                         .report = keep_reason,
		                                         .arg = why };
	__typeof__(&shmlimit_global_open) open = shmlimit_global_open;
	void *library = open == NULL ? dlopen(NAME, RTLD_NOW | RTLD_LOCAL) : NULL;
	int error = 0;

	if (library != NULL && is_of_this_version(library))
		*(void **)&open = dlsym(library, "shmlimit_global_open");
	if (open != NULL)
		error = open(NULL, url, &options, NULL);
	if (library != NULL)
		dlclose(library);
	return error == -EINVAL ? error : 0;
}

int global_library_error(void)
{
	return is_other_version ? -ELIBBAD : -ELIBACC;
}

const struct global_library *global_library_load(void)
{
	pthread_once(&once, load);
	return loaded.open != NULL && loaded.take_all != NULL && loaded.begin_all != NULL && loaded.poll_all != NULL &&
	                       loaded.cancel_all != NULL && loaded.status != NULL && loaded.close != NULL
	               ? &loaded
	               : NULL;
}
