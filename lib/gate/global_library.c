/*
 * global_library: see global_library.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dlfcn.h>
#include <pthread.h>

#include "global_library.h"

#pragma weak shmlimit_global_open
#pragma weak shmlimit_global_take
#pragma weak shmlimit_global_begin
#pragma weak shmlimit_global_poll
#pragma weak shmlimit_global_cancel
#pragma weak shmlimit_global_close

static struct global_library loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
	struct global_library found = { shmlimit_global_open, shmlimit_global_take, shmlimit_global_begin, shmlimit_global_poll,
		                shmlimit_global_cancel, shmlimit_global_close };
	void *library;

	if (found.open == NULL) {
		library = dlopen("libshmlimit-global.so.0", RTLD_NOW | RTLD_LOCAL);
		if (library == NULL)
			return;
		/* ISO C does not convert a data pointer to a function pointer; POSIX allows this assignment. */
		*(void **)&found.open = dlsym(library, "shmlimit_global_open");
		*(void **)&found.take = dlsym(library, "shmlimit_global_take");
		*(void **)&found.begin = dlsym(library, "shmlimit_global_begin");
		*(void **)&found.poll = dlsym(library, "shmlimit_global_poll");
		*(void **)&found.cancel = dlsym(library, "shmlimit_global_cancel");
		*(void **)&found.close = dlsym(library, "shmlimit_global_close");
	}
	loaded = found;
}

const struct global_library *global_library_load(void)
{
	pthread_once(&once, load);
	return loaded.open != NULL && loaded.take != NULL && loaded.begin != NULL && loaded.poll != NULL &&
	                       loaded.cancel != NULL && loaded.close != NULL ?
	               &loaded :
	               NULL;
}
